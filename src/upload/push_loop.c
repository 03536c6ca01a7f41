#include "base/clock.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "upload/feed.h"
#include "upload/file/worker.h"
#include "upload/push_struct.h"
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#define LOOK_MS 25 /* how often the level is looked at */

/* The scan and all workers. */
static void all_have_ended(void *arg)
{
	struct s3once_push *push = arg;
	uv_async_send(&push->ended);
}

static void scan_files(void *arg)
{
	struct s3once_push *push = arg;
	push->whole = feed_run(&push->run);
}

static void work_on_files(void *arg)
{
	struct s3once_push *push = arg;
	thread_be_batch();
	struct run *run = &push->run;
	struct worker *worker;
	if (worker_new(run, &worker)) {
		struct problem problem;
		problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
		run_fail(run, &problem);
	} else {
		worker_run(worker);
		worker_free(worker);
	}
}

static void close_handles(struct s3once_push *push)
{
	atomic_store(&push->looping, false);
	wait_until(!atomic_load(&push->stopping)); /* another thread is just telling this handle */
	uv_close((uv_handle_t *)&push->stopped, NULL);
	uv_close((uv_handle_t *)&push->ended, NULL);
	uv_close((uv_handle_t *)&push->progress, NULL);
	uv_close((uv_handle_t *)&push->grace, NULL);
	uv_close((uv_handle_t *)&push->look, NULL);
}

static void on_ended(uv_async_t *async)
{
	struct s3once_push *push = async->data;
	if (atomic_load(&push->pool.at_work) || uv_is_closing((uv_handle_t *)async))
		return; /* a worker was started when the last one had just ended */
	pool_join(&push->pool);
	close_handles(push);
}

static void on_progress(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	report_stuck(&push->run.report, run_is_stuck(&push->run) || run_scan_is_stuck(&push->run));
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
	atomic_store(&push->run.was_asked_to_stop, true);
	atomic_fetch_add(&push->run.stop, 1);
	atomic_fetch_add(&push->stopping, 1);
	if (atomic_load(&push->looping))
		uv_async_send(&push->stopped);
	atomic_fetch_sub(&push->stopping, 1);
}

void s3once_push_toggle_bandwidth(struct s3once_push *push)
{
	if (push->run.bandwidth)
		bandwidth_toggle(push->run.bandwidth);
}

/* This host lets us have no more threads. Some workers end again. */
static void make_do(struct s3once_push *push)
{
	const unsigned there = push->pool.n - 1;
	const unsigned can = there > PUSH_SPARE_THREADS ? there - PUSH_SPARE_THREADS : 1;
	push_level_lower(push, can);
	queue_retire(push->run.queue, there - can);
	queue_set_level(push->run.queue, can, push->large.now);
}

/* So many workers may be at work now; those that are there already stay. False: there is none. */
static bool start_workers(struct s3once_push *push, unsigned n)
{
	bool can = true;
	while (can && push->pool.n < n + 1)
		can = pool_start(&push->pool, work_on_files, push);
	if (push->pool.n < 2)
		return false;
	if (can)
		queue_set_level(push->run.queue, n, push->large.now);
	else
		make_do(push);
	return true;
}

/* Not run_is_over(), which says that a worker moves. */
static bool goes_on(const struct s3once_push *push)
{
	const struct run *run = &push->run;
	return atomic_load(&push->pool.at_work) && !atomic_load(&run->stop) &&
	       !atomic_load(&run->fenced) && !atomic_load(&run->failed_setup);
}

/* A limit that is reached is answered as a stop is, with the grace from now on. */
static void look_for_limits(struct s3once_push *push)
{
	struct run *run = &push->run;
	const uint64_t most_ns = run->options.max_duration_ms * NS_PER_MS;
	struct problem said;
	if (most_ns && clock_boot_ns() - run->report.start_ns >= most_ns && goes_on(push)) {
		problem_set(&said,
			"--max-duration is over: nothing more is begun, and the next run goes on from "
			"there");
		run_reach_limit(run, &said);
	}
	if (atomic_load(&run->has_reached_limit) && atomic_load(&run->stop) == 1)
		on_stop(&push->stopped);
	const bool is_lifted = run->bandwidth && bandwidth_is_lifted(run->bandwidth);
	if (is_lifted != push->has_told_lifted) {
		problem_set(&said, is_lifted ? "the limit of bandwidth is lifted"
					     : "the limit of bandwidth holds again");
		report_run(&run->report, S3ONCE_EVENT_NOTE, &said);
	}
	push->has_told_lifted = is_lifted;
}

static void on_look(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	look_for_limits(push);
	if (goes_on(push))
		start_workers(push, push_level_next(push));
}

/* The scan feeds the queue of the run, and that feeds the workers. Each blocks for the whole run,
 * so they are threads of the run's own. False: told. */
static bool start_works(struct s3once_push *push)
{
	struct problem problem;
	push_level_init(push);
	const struct pool_options options = {
		.most = push->level.most + 1, .all_ended = all_have_ended, .arg = push};
	const bool has_pool = !pool_init(&push->pool, &options);
	if (has_pool && pool_start(&push->pool, scan_files, push) &&
		start_workers(push, push->level.now))
		return true;
	problem_set(&problem,
		has_pool ? "no thread can be started: raise ulimit -u and -v or the container's "
			   "limit of processes"
			 : "out of memory");
	run_fail(&push->run, &problem);
	return false;
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
	uv_timer_init(&push->loop, &push->look);
	push->stopped.data = push->ended.data = push->progress.data = push->grace.data =
		push->look.data = push;
	const uint64_t interval = push->run.options.progress_interval_ms;
	if (interval)
		uv_timer_start(&push->progress, on_progress, interval, interval);
	atomic_store(&push->looping, true);
	if (atomic_load(&push->run.stop)) /* nothing is begun after that */
		queue_close(push->run.queue);
	if (start_works(push))
		uv_timer_start(&push->look, on_look, LOOK_MS, LOOK_MS);
	else
		uv_async_send(&push->ended); /* the scan may be there, and ends */
	if (atomic_load(&push->run.stop))    /* asked for before there was anybody to tell */
		uv_async_send(&push->stopped);
	uv_run(&push->loop, UV_RUN_DEFAULT);
	if (push->pool.threads)
		pool_end(&push->pool);
	uv_loop_close(&push->loop);
	return true;
}
