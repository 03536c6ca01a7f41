#include "base/thread.h"
#include "upload/feed.h"
#include "upload/push.h"
#include "upload/worker.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Of the scan and of each worker. Whoever is the last tells the loop. */
static void has_ended(struct s3once_push *push)
{
	if (atomic_fetch_sub(&push->n_works, 1) == 1)
		uv_async_send(&push->ended);
}

static void *scan(void *arg)
{
	struct s3once_push *push = arg;
	push->whole = feed_run(&push->run);
	has_ended(push);
	return NULL;
}

static void *work(void *arg)
{
	struct s3once_push *push = arg;
	struct run *run = &push->run;
	struct worker *worker;
	if (worker_new(run, push->buffer_bytes, &worker)) {
		struct problem problem;
		problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
		run_fail(run, &problem);
	} else {
		worker_run(worker);
		worker_free(worker);
	}
	has_ended(push);
	return NULL;
}

static void close_handles(struct s3once_push *push)
{
	atomic_store(&push->looping, false);
	while (atomic_load(&push->stopping)) /* another thread is just telling this handle */
		sched_yield();
	uv_close((uv_handle_t *)&push->stopped, NULL);
	uv_close((uv_handle_t *)&push->ended, NULL);
	uv_close((uv_handle_t *)&push->progress, NULL);
	uv_close((uv_handle_t *)&push->grace, NULL);
}

static void on_ended(uv_async_t *async)
{
	struct s3once_push *push = async->data;
	while (push->n_threads)
		pthread_join(push->threads[--push->n_threads], NULL);
	close_handles(push);
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

/* Each blocks for the whole run, so they are threads of the run's own: the scan, then the workers.
 * If not all can be started, those that were end at once. 0 or -EAGAIN: told. */
static int start_works(struct s3once_push *push)
{
	const unsigned n = push->run.options.concurrency + 1;
	push->threads = calloc(n, sizeof *push->threads);
	if (!push->threads)
		return -ENOMEM;
	atomic_store(&push->n_works, n);
	while (push->n_threads < n &&
		!thread_start(&push->threads[push->n_threads], push->n_threads ? work : scan, push))
		push->n_threads++;
	const unsigned missing = n - push->n_threads;
	if (!missing)
		return 0;
	out_of_threads(push, push->n_threads, n);
	if (atomic_fetch_sub(&push->n_works, missing) == missing)
		uv_async_send(&push->ended);
	return -EAGAIN;
}

/* libuv aborts where it has not even the descriptors of its first loop: epoll, eventfd, and a pipe
 * for signals. */
static bool has_descriptors(void)
{
	int ends[4];
	if (pipe(ends))
		return false;
	const bool has = !pipe(ends + 2);
	for (int i = 0; i < (has ? 4 : 2); i++)
		close(ends[i]);
	return has;
}

bool push_loop(struct s3once_push *push)
{
	if (!has_descriptors() || uv_loop_init(&push->loop))
		return false;
	if (uv_async_init(&push->loop, &push->stopped, on_stop) ||
		uv_async_init(&push->loop, &push->ended, on_ended)) {
		uv_loop_close(&push->loop);
		return false;
	}
	uv_timer_init(&push->loop, &push->progress);
	uv_timer_init(&push->loop, &push->grace);
	push->stopped.data = push->ended.data = push->progress.data = push->grace.data = push;
	const uint64_t interval = push->run.options.progress_interval_ms;
	if (interval)
		uv_timer_start(&push->progress, on_progress, interval, interval);
	atomic_store(&push->looping, true);
	int error = start_works(push);
	if (error == -ENOMEM)
		close_handles(push);
	else if (atomic_load(&push->run.stop)) /* asked for before there was anybody to tell */
		uv_async_send(&push->stopped);
	uv_run(&push->loop, UV_RUN_DEFAULT);
	uv_loop_close(&push->loop);
	return !error;
}
