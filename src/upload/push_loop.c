/* The threads of a run, and the loop of the main thread. The loop starts the scan and the workers,
 * and sets the number of workers every 25 ms (queue/level.h), or less often while it is idle. It
 * also checks the limits of the run, reports progress, and answers a request to stop. It blocks
 * only to wait for the next of these. */
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "upload/feed.h"
#include "upload/file/worker.h"
#include "upload/push_struct.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#define TICK_MS 25 /* the time between two calls of on_tick() */
/* The same after IDLE_TICKS calls in a row without a task under way, as in a run that waits for the
 * files of other uploaders. */
#define IDLE_TICK_MS 100
#define IDLE_TICKS   20
/* Descriptors of a worker: its file and the next one, which it opens ahead, and connections to S3
 * and DynamoDB. */
#define DESCRIPTORS_EACH   4
#define DESCRIPTORS_OTHERS 64 /* other descriptors: directories of the scan, marks, libraries */

/* All workers, with their stacks and connections, may take this many times options.memory_bytes. */
#define MEMORY_TIMES     3
#define CAREFUL          0.8 /* the share of the memory that is used, since connections grow later */
#define WORKER_BYTES_MAX (192.0 * 1024) /* the most memory that a worker is expected to need */

/* Returns the resident memory of this process, or 0 if unknown. */
static uint64_t resident_bytes(void)
{
	size_t bytes;
	return uv_resident_set_memory(&bytes) ? 0 : bytes;
}

static uint64_t process_cpu_ns(void)
{
	uv_rusage_t used;
	if (uv_getrusage(&used))
		return 0;
	const long s = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
	const long us = used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	return (uint64_t)s * NS_PER_S + (uint64_t)us * 1000;
}

/* Returns the number of workers that fit into the memory, or UINT_MAX as long as the process has
 * not grown. All growth of the process since the run began counts as the workers'. Each further
 * worker is expected to need the mean of the present ones, but at most WORKER_BYTES_MAX. If the
 * process has grown beyond what is allowed, the result is less than the present level. */
static unsigned max_by_memory(const struct s3once_push *push)
{
	const double allowed = CAREFUL * MEMORY_TIMES * (double)push->run.options.memory_bytes;
	const double grown = (double)resident_bytes() - (double)push->bytes_before_worker;
	if (grown <= 0)
		return UINT_MAX;
	const double mean = grown / push->level.now;
	const double each = mean < WORKER_BYTES_MAX ? mean : WORKER_BYTES_MAX;
	const double max = push->level.now + (allowed - grown) / each;
	return max >= UINT_MAX ? UINT_MAX : max < 1 ? 1 : (unsigned)max;
}

/* Lowers *workers to the number of workers that the limit allows, but not below 1. A worker uses
 * `per_worker` units of the limit, and everything else together uses `others`. Returns whether it
 * has lowered *workers. */
static bool lower_to_limit(
	const struct rlimit *limit, unsigned others, unsigned per_worker, unsigned *workers)
{
	const uint64_t fit = limit->rlim_cur > others ? (limit->rlim_cur - others) / per_worker : 1;
	if (limit->rlim_cur == RLIM_INFINITY || fit >= *workers)
		return false;
	*workers = fit ? (unsigned)fit : 1;
	return true;
}

/* Sets the first and the greatest value of both levels, and notes the time and the figures at which
 * their first windows begin. A window is the time over which level_next() judges a level
 * (level.h). */
static void init_levels(struct s3once_push *push)
{
	enum s3once_limited_by why = S3ONCE_LIMITED_BY_CEILING;
	unsigned workers = push->run.options.concurrency;
	struct rlimit limit;
	if (!getrlimit(RLIMIT_NOFILE, &limit) &&
		lower_to_limit(&limit, DESCRIPTORS_OTHERS, DESCRIPTORS_EACH, &workers))
		why = S3ONCE_LIMITED_BY_DESCRIPTORS;
	/* The limit counts the user's other threads as well, so set_worker_count() may get fewer
	 * threads than this. */
	if (!getrlimit(RLIMIT_NPROC, &limit) &&
		lower_to_limit(&limit, PUSH_SPARE_THREADS, 1, &workers))
		why = S3ONCE_LIMITED_BY_THREADS;
	/* With a limit of bandwidth, only as many workers begin as can send small files within a
	 * second. With more, each file would only end later, perhaps none before --max-duration. */
	const struct bandwidth *bandwidth = push->run.bodies.bandwidth;
	const uint64_t rate = bandwidth ? bandwidth_rate_at(bandwidth, clock_wall_s()) : 0;
	const bool is_slow = rate && rate / S3ONCE_SMALL_BYTES_MAX < LEVEL_FIRST;
	level_init(&push->level, workers, why,
		is_slow ? (unsigned)(rate / S3ONCE_SMALL_BYTES_MAX) + 1 : LEVEL_FIRST);
	large_level_init(&push->large, workers < LARGE_BODIES_MAX ? workers : LARGE_BODIES_MAX);
	push->peak_workers = push->level.now;
	push->bytes_before_worker = resident_bytes();
	const uint64_t now_ns = clock_boot_ns();
	push->window_start = (struct window_start){.ns = now_ns, .cpu_ns = process_cpu_ns()};
	push->large_window_start = (struct large_window_start){.ns = now_ns};
	report_set_level(&push->run.report, push->level.now, push->level.why);
}

/* Returns part / whole, but at most 1; 0 if both are 0. */
static double ratio(uint64_t part, uint64_t whole)
{
	return part < whole ? (double)part / (double)whole : whole ? 1 : 0;
}

/* Reports the most workers that were allowed so far, and the limit that keeps the level from
 * rising. */
static void report_new_level(struct s3once_push *push)
{
	/* level.why is only about small files. The limit of bandwidth is also named if, for
	 * half of the run, some thread was waiting for it, even with a large body. */
	const bool is_by_bandwidth = 2 * bandwidth_waited_ns(push->run.bodies.bandwidth) >=
				     clock_boot_ns() - push->run.report.start_ns;
	report_set_level(&push->run.report, push->peak_workers,
		is_by_bandwidth ? S3ONCE_LIMITED_BY_BANDWIDTH : push->level.why);
}

/* Sets the level of workers by the window that ends now. */
static void judge_window(struct s3once_push *push, const struct window_start *now)
{
	const struct window_start *start = &push->window_start;
	const uint64_t wall_ns = now->ns - start->ns;
	struct level_window window = {.now_ns = now->ns,
		.began_ns = start->ns,
		.files = now->queue.files - start->queue.files,
		.read_ns = now->queue.read_ns - start->queue.read_ns,
		.cpus_used = wall_ns ? (double)(now->cpu_ns - start->cpu_ns) / (double)wall_ns : 0,
		.cpus = uv_available_parallelism(),
		.bandwidth_share = ratio(now->waited_ns - start->waited_ns, wall_ns),
		.max_by_memory = max_by_memory(push),
		.was_throttled = now->throttlings != start->throttlings};
	for (int i = 0; i < WIRES; i++) {
		window.requests[i] = now->replies[i] - start->replies[i];
		window.wire_ns[i] = now->wire_ns[i] - start->wire_ns[i];
	}
	level_next(&push->level, &window);
}

/* Updates the level of workers by the small files that have ended since its window began. If the
 * window is over, the next one begins now. Only then are the figures of the process read, since the
 * kernel adds up those of all threads. */
static void update_file_level(
	struct s3once_push *push, const struct queue_figures *figures, uint64_t now_ns)
{
	const struct service *services[WIRES] = {
		s3_service(push->run.s3), push->run.store->service};
	const uint64_t files = figures->files - push->window_start.queue.files;
	if (level_window_goes_on(&push->level, now_ns - push->window_start.ns, files))
		return;
	struct window_start now = {.ns = now_ns,
		.queue = *figures,
		.cpu_ns = process_cpu_ns(),
		.waited_ns = bandwidth_waited_ns(push->run.bodies.bandwidth)};
	for (int i = 0; i < WIRES; i++) {
		if (!services[i])
			continue;
		now.throttlings += service_cuts(services[i]);
		service_wire(services[i], &now.replies[i], &now.wire_ns[i]);
	}
	if (files)
		judge_window(push, &now);
	push->window_start = now;
}

/* Updates the level of large bodies by the bytes of them that have moved since its window began. If
 * the window is over, the next one begins now. */
static void update_large_level(
	struct s3once_push *push, const struct queue_figures *figures, uint64_t now_ns)
{
	struct large_window_start *start = &push->large_window_start;
	const struct large_window_start now = {.ns = now_ns,
		.moved = atomic_load(&push->run.report.large_moved),
		.cuts = atomic_load(&push->run.report.large_cuts)};
	const struct large_window window = {.now_ns = now_ns,
		.began_ns = start->ns,
		.under_way = figures->large,
		.bytes = now.moved - start->moved,
		.was_cut = now.cuts != start->cuts};
	const bool next_window_begins = large_level_judge(&push->large, &window);
	if (next_window_begins)
		*start = now;
}

/* Returns the number of workers that both levels call for. */
static unsigned wanted_workers(const struct s3once_push *push, const struct queue_figures *figures)
{
	/* Twice as many workers are needed as large bodies are to be sent, since half of the
	 * workers send small files. */
	const unsigned for_large = figures->has_large ? 2 * push->large.now : 0;
	const unsigned wanted = push->level.now > for_large ? push->level.now : for_large;
	return wanted < push->level.max ? wanted : push->level.max;
}

/* Called by the last thread of the pool, once the scan and all workers have ended. */
static void notify_ended(void *arg)
{
	struct s3once_push *push = arg;
	uv_async_send(&push->ended);
}

/* The thread of the scan. */
static void scan_files(void *arg)
{
	struct s3once_push *push = arg;
	feed_run(&push->run);
}

/* The thread of a worker. If there is no worker for it, the run ends. */
static void work_on_files(void *arg)
{
	struct s3once_push *push = arg;
	thread_be_batch();
	struct worker *worker = worker_new(&push->run);
	if (worker)
		worker_run(worker);
	else
		run_fail(&push->run, PROBLEM(PROBLEM_NO_DESCRIPTORS));
	worker_free(worker);
}

/* Joins all threads and closes the handles, which ends the loop. Does nothing if a worker was
 * started when the last thread had just ended, or if this was done before. */
static void on_ended(uv_async_t *async)
{
	struct s3once_push *push = async->data;
	if (atomic_load(&push->pool.at_work) || uv_is_closing((uv_handle_t *)async))
		return;
	pool_join(&push->pool);
	uv_close((uv_handle_t *)async, NULL);
	uv_close((uv_handle_t *)&push->progress, NULL);
	uv_close((uv_handle_t *)&push->tick, NULL);
}

static void on_progress(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	/* The run is stuck if the workers, or the scan, have given no sign of life for long, as
	 * where a file system does not answer. */
	atomic_store(&push->run.report.is_stuck,
		run_is_stuck(&push->run) || run_is_hung(&push->run, &push->run.scanning));
	report_counts(&push->run.report, S3ONCE_EVENT_PROGRESS);
}

void s3once_push_stop(struct s3once_push *push)
{
	run_ask_to_stop(&push->run);
}

void s3once_push_toggle_bandwidth(struct s3once_push *push)
{
	bandwidth_toggle(push->run.bodies.bandwidth);
}

/* Lets n workers work. Missing ones are started; if there are more already, the others wait. If no
 * more threads can be started, some workers are ended again, to leave PUSH_SPARE_THREADS for
 * others. Returns false if no worker was ever started. */
static bool set_worker_count(struct s3once_push *push, unsigned n)
{
	bool can_start = true; /* more threads */
	/* One thread of the pool is the scan's, and all others are workers. */
	while (can_start && push->pool.n < n + 1)
		can_start = pool_start(&push->pool, work_on_files, push);
	if (push->pool.n < 2)
		return false;
	if (!can_start) {
		const unsigned started = push->pool.n - 1;
		n = started > PUSH_SPARE_THREADS ? started - PUSH_SPARE_THREADS : 1;
		level_lower_max(&push->level, n, S3ONCE_LIMITED_BY_THREADS);
		/* More workers than n were allowed, but never ran at the same time. */
		push->peak_workers = push->peak_workers < n ? push->peak_workers : n;
		report_new_level(push);
		queue_retire_workers(push->run.queue, started - n);
	}
	queue_set_level(push->run.queue, n, push->large.now);
	return true;
}

/* Ends the run if it has lasted for --max-duration. */
static void check_duration(struct s3once_push *push)
{
	struct run *run = &push->run;
	const uint64_t max_ns = run->options.max_duration_ms * NS_PER_MS; /* 0: no limit */
	const bool is_at_end = max_ns && clock_boot_ns() - run->report.start_ns >= max_ns;
	/* Without a thread at work the run has ended by itself. */
	if (is_at_end && atomic_load(&push->pool.at_work) && !run_is_stopping(run))
		run_reach_limit(run,
			run->options.read
				? "--max-duration is over: output that is not whole is dropped, "
				  "and the next run begins again"
				: "--max-duration is over: the next run goes on");
}

/* Reports a change by s3once_push_toggle_bandwidth(), which may be called in a signal handler. */
static void check_bandwidth(struct s3once_push *push)
{
	const bool is_lifted = bandwidth_is_lifted(push->run.bodies.bandwidth);
	if (is_lifted != push->reported_lifted)
		report_run(&push->run.report, S3ONCE_EVENT_NOTE,
			PROBLEM(is_lifted ? "the limit of bandwidth is lifted"
					  : "the limit of bandwidth holds again"));
	push->reported_lifted = is_lifted;
}

/* Updates both levels, reports them, and sets the number of workers by them. */
static void adjust_workers(struct s3once_push *push)
{
	struct queue_figures figures;
	const unsigned before = push->level.now;
	const uint64_t now_ns = clock_boot_ns();
	queue_read_figures(push->run.queue, &figures);
	push->idle_ticks = figures.is_idle ? push->idle_ticks + 1 : 0;
	update_file_level(push, &figures, now_ns);
	update_large_level(push, &figures, now_ns);
	const unsigned workers = wanted_workers(push, &figures);
	push->peak_workers = workers > push->peak_workers ? workers : push->peak_workers;
	report_new_level(push);
	if (push->level.now != before)
		log_debug("%u requests at once", push->level.now);
	set_worker_count(push, workers); /* cannot fail, since push_loop() has started a worker */
}

/* Checks the conditions that end the run, gives workers what has become due, and adjusts their
 * number. Ticks come less often once IDLE_TICKS of them in a row have found no task under way. */
static void on_tick(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	struct run *run = &push->run;
	run_check_lease(run);
	run_check_progress(run);
	check_duration(push);
	check_bandwidth(push);
	if (run_is_stopping(run)) {
		queue_enter_phase(run->queue, QUEUE_CLOSED);
	} else if (atomic_load(&push->pool.at_work)) {
		queue_release_due(run->queue);
		adjust_workers(push);
	}
	const bool is_idle = push->idle_ticks >= IDLE_TICKS;
	uv_timer_start(timer, on_tick, is_idle ? IDLE_TICK_MS : TICK_MS, 0);
}

/* Whether four descriptors are left. libuv aborts if it cannot open those of its first loop: epoll,
 * an eventfd, and a pipe for signals. */
static bool has_descriptors(void)
{
	int ends[4];
	if (pipe2(ends, O_CLOEXEC))
		return false;
	const bool has_four = !pipe2(ends + 2, O_CLOEXEC);
	close(ends[0]);
	close(ends[1]);
	if (has_four) {
		close(ends[2]);
		close(ends[3]);
	}
	return has_four;
}

/* The scan fills the queue of the run, and the workers take from it. Each blocks for the whole run,
 * so the run has its own threads instead of libuv's pool. */
bool push_loop(struct s3once_push *push)
{
	struct run *run = &push->run;
	if (!has_descriptors() || uv_loop_init(&push->loop))
		return false;
	if (uv_async_init(&push->loop, &push->ended, on_ended)) {
		uv_loop_close(&push->loop);
		return false;
	}
	uv_timer_init(&push->loop, &push->progress);
	uv_timer_init(&push->loop, &push->tick);
	push->ended.data = push->progress.data = push->tick.data = push;
	const uint64_t interval = run->options.progress_interval_ms;
	if (interval)
		uv_timer_start(&push->progress, on_progress, interval, interval);
	if (run_is_stopping(run)) /* before the workers begin, so that they get no task */
		queue_enter_phase(run->queue, QUEUE_CLOSED);
	init_levels(push);
	const struct pool_options options = {
		.max_threads = push->level.max + 1, .all_ended = notify_ended, .arg = push};
	const bool has_pool = !pool_init(&push->pool, &options);
	if (has_pool && pool_start(&push->pool, scan_files, push) &&
		set_worker_count(push, push->level.now)) {
		uv_timer_start(&push->tick, on_tick, TICK_MS, 0);
	} else {
		run_fail(run,
			PROBLEM(has_pool ? "no thread can be started: raise ulimit -u and -v or "
					   "the container's limit of processes"
					 : "out of memory"));
		/* on_ended() ends the loop. If the scan is at work, it does nothing now, and is
		 * called again when the scan has ended. */
		uv_async_send(&push->ended);
	}
	uv_run(&push->loop, UV_RUN_DEFAULT);
	if (has_pool)
		pool_end(&push->pool);
	uv_loop_close(&push->loop);
	return true;
}
