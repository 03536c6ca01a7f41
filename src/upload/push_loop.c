#include "upload/feed.h"
#include "upload/push.h"
#include "upload/threads.h"
#include "upload/worker.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void work(uv_work_t *request)
{
	struct work *self = (struct work *)request->data;
	struct run *run = &self->push->run;
	struct worker *worker;
	if (self == self->push->works) { /* the first is the scan */
		self->push->whole = feed_run(run);
		return;
	}
	if (worker_new(run, self->push->buffer_bytes, &worker)) {
		struct problem problem;
		problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
		run_fail(run, &problem);
		return;
	}
	worker_run(worker);
	worker_free(worker);
}

static void close_handles(struct s3once_push *push)
{
	atomic_store(&push->looping, false);
	while (atomic_load(&push->stopping)) /* another thread is just telling this handle */
		sched_yield();
	uv_close((uv_handle_t *)&push->stopped, NULL);
	uv_close((uv_handle_t *)&push->progress, NULL);
	uv_close((uv_handle_t *)&push->grace, NULL);
}

static void after_work(uv_work_t *request, int status)
{
	struct work *self = (struct work *)request->data;
	(void)status;
	if (--self->push->n_works == 0)
		close_handles(self->push);
}

static void on_progress(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	report_counts(&push->run.report, S3ONCE_EVENT_PROGRESS);
}

static void on_grace_over(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	atomic_store(&push->run.stop, 2);
}

static void on_stop(uv_async_t *async)
{
	struct s3once_push *push = async->data;
	queue_close(push->run.queue);
	if (!uv_is_active((uv_handle_t *)&push->grace))
		uv_timer_start(&push->grace, on_grace_over, push->run.options.grace_ms, 0);
}

void s3once_push_stop(struct s3once_push *push)
{
	atomic_fetch_add(&push->run.stop, 1);
	atomic_fetch_add(&push->stopping, 1);
	if (atomic_load(&push->looping))
		uv_async_send(&push->stopped);
	atomic_fetch_sub(&push->stopping, 1);
}

static void out_of_threads(struct s3once_push *push, unsigned n_can, unsigned n)
{
	struct problem problem;
	problem_set(&problem,
		"only %u of %u threads can be started: lower --concurrency, or raise ulimit -u and -v "
		"or the container's limit of processes",
		n_can, n);
	run_fail(&push->run, &problem);
}

/* Signals are the main thread's: the pool's threads are born with all of them blocked. */
static int start_works(struct s3once_push *push)
{
	const unsigned n = push->run.options.concurrency + 1;
	push->works = calloc(n, sizeof *push->works);
	if (!push->works)
		return -ENOMEM;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const unsigned n_can = threads_try(n);
	push->n_works = n_can < n ? 0 : n;
	for (unsigned i = 0; i < push->n_works; i++) {
		push->works[i].push = push;
		push->works[i].request.data = &push->works[i];
		uv_queue_work(&push->loop, &push->works[i].request, work, after_work);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (n_can < n)
		out_of_threads(push, n_can, n);
	return n_can < n ? -EAGAIN : 0;
}

/* The pool is made at its first use, with as many threads as there are bodies: each of them blocks
 * for the whole run. */
static void size_pool(const struct s3once_push *push)
{
	char text[12];
	snprintf(text, sizeof text, "%u", push->run.options.concurrency + 1);
	setenv("UV_THREADPOOL_SIZE", text, 1);
}

bool push_loop(struct s3once_push *push)
{
	size_pool(push);
	if (!threads_loop_has_descriptors() || uv_loop_init(&push->loop))
		return false;
	if (uv_async_init(&push->loop, &push->stopped, on_stop)) {
		uv_loop_close(&push->loop);
		return false;
	}
	uv_timer_init(&push->loop, &push->progress);
	uv_timer_init(&push->loop, &push->grace);
	push->stopped.data = push->progress.data = push->grace.data = push;
	const uint64_t interval = push->run.options.progress_interval_ms;
	if (interval)
		uv_timer_start(&push->progress, on_progress, interval, interval);
	atomic_store(&push->looping, true);
	int error = start_works(push);
	if (error)
		close_handles(push);
	else if (atomic_load(&push->run.stop)) /* asked for before there was anybody to tell */
		uv_async_send(&push->stopped);
	uv_run(&push->loop, UV_RUN_DEFAULT);
	uv_loop_close(&push->loop);
	return !error;
}
