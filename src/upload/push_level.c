/* How many workers there are: what the level is told, and what it says is done. Main thread. */
#include "base/clock.h"
#include "base/log.h"
#include "upload/push_struct.h"
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_EACH   3  /* a file, and a connection to S3 and one to DynamoDB */
#define DESCRIPTORS_OTHERS 64 /* directories of the scan, marks, libraries */

/* Of the memory for buffers the workers may take as many times in all, with their stacks and
 * connections. */
#define MEMORY_TIMES      3
#define CAREFUL           0.8 /* connections need more once they have been used for a while */
#define WORKER_BYTES_MOST (192.0 * 1024)

static void lower_most(
	unsigned *most, uint64_t can, enum s3once_limited_by *ret_why, enum s3once_limited_by why)
{
	if (can >= *most)
		return;
	*most = can ? (unsigned)can : 1;
	*ret_why = why;
}

/* 0 where it is not known. */
static uint64_t resident_bytes(void)
{
	size_t bytes;
	return uv_resident_set_memory(&bytes) ? 0 : bytes;
}

static uint64_t ns_of(uv_timeval_t time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static uint64_t process_cpu_ns(void)
{
	uv_rusage_t used;
	return uv_getrusage(&used) ? 0 : ns_of(used.ru_utime) + ns_of(used.ru_stime);
}

/* How many workers the memory is enough for. What has grown since the run began is taken, for
 * whatever it was. Each further worker needs as much again as those of now would need if it had all
 * been theirs, but no more than a worker can. */
static unsigned most_by_memory(const struct s3once_push *push)
{
	const double may = CAREFUL * MEMORY_TIMES * (double)push->run.options.memory_bytes;
	const double grown = (double)resident_bytes() - (double)push->memory_bytes;
	if (grown <= 0)
		return UINT_MAX;
	const double mean = grown / push->level.now;
	const double each = mean < WORKER_BYTES_MOST ? mean : WORKER_BYTES_MOST;
	const double most = push->level.now + (may - grown) / each;
	return most >= UINT_MAX ? UINT_MAX : most < 1 ? 1 : (unsigned)most;
}

void push_level_init(struct s3once_push *push)
{
	const struct s3once_options *o = &push->run.options;
	enum s3once_limited_by why = S3ONCE_LIMITED_BY_CEILING;
	unsigned most = o->concurrency;
	struct rlimit limit;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		lower_most(&most,
			limit.rlim_cur > DESCRIPTORS_OTHERS
				? (limit.rlim_cur - DESCRIPTORS_OTHERS) / DESCRIPTORS_EACH
				: 1,
			&why, S3ONCE_LIMITED_BY_DESCRIPTORS);
	/* The user's other threads count as well, so that there may be fewer still. */
	if (!getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur != RLIM_INFINITY)
		lower_most(&most,
			limit.rlim_cur > PUSH_SPARE_THREADS ? limit.rlim_cur - PUSH_SPARE_THREADS
							    : 1,
			&why, S3ONCE_LIMITED_BY_THREADS);
	level_init(&push->level, most, why);
	level_init_large(&push->large, most < LARGE_MOST ? most : LARGE_MOST);
	push->most_at_once = push->level.now;
	push->memory_bytes = resident_bytes();
	push->began = (struct push_window){.ns = clock_boot_ns(), .cpu_ns = process_cpu_ns()};
	push->large_began = push->began;
	report_level(&push->run.report, push->level.now, push->level.why);
}

static double share(uint64_t part, uint64_t whole)
{
	return part < whole ? (double)part / (double)whole : whole ? 1 : 0;
}

static bool is_throttled(struct s3once_push *push)
{
	const struct store *store = push->run.store;
	unsigned cuts = service_cuts(s3_service(push->run.s3));
	if (store->ops->cuts)
		cuts += store->ops->cuts(store);
	const bool is_throttled = cuts != push->cuts;
	push->cuts = cuts;
	return is_throttled;
}

/* For the limit of bandwidth. */
static uint64_t waited_ns(const struct s3once_push *push)
{
	return push->run.bandwidth ? bandwidth_waited_ns(push->run.bandwidth) : 0;
}

/* Of large bodies more are begun only with twice as many workers, since as many again are the small
 * files'. */
static unsigned workers_for(const struct s3once_push *push, const struct queue_seen *seen)
{
	const unsigned large = seen->has_large ? 2 * push->large.now : 0;
	const unsigned wanted = large > push->level.now ? large : push->level.now;
	return wanted < push->level.most ? wanted : push->level.most;
}

static void report_new_level(struct s3once_push *push, unsigned before)
{
	const struct level *level = &push->level;
	/* The level is that of small files. Large ones wait for the same line. */
	const bool is_by_line = 2 * waited_ns(push) >= clock_boot_ns() - push->run.report.start_ns;
	report_level(&push->run.report, push->most_at_once,
		is_by_line ? S3ONCE_LIMITED_BY_BANDWIDTH : level->why);
	if (level->now != before)
		log_debug("%u requests at once", level->now);
}

static void look_at_large(struct s3once_push *push, const struct queue_seen *seen, uint64_t now_ns)
{
	struct push_window *began = &push->large_began;
	const struct level_window window = {.now_ns = now_ns,
		.began_ns = began->ns,
		.under_way = seen->large,
		.bytes = seen->large_bytes - began->seen.large_bytes,
		.has_fallen = seen->cuts != began->seen.cuts};
	if (level_next_large(&push->large, &window))
		*began = (struct push_window){.ns = now_ns, .seen = *seen};
}

static void look_at_files(struct s3once_push *push, const struct queue_seen *seen, uint64_t now_ns)
{
	struct push_window *began = &push->began;
	struct level *level = &push->level;
	const struct push_window now = {.ns = now_ns,
		.seen = *seen,
		.cpu_ns = process_cpu_ns(),
		.waited_ns = waited_ns(push)};
	const uint64_t wall_ns = now_ns - began->ns;
	const uint64_t files_ns = seen->files_ns - began->seen.files_ns;
	const struct level_window window = {.now_ns = now_ns,
		.began_ns = began->ns,
		.under_way = seen->busy,
		.has_fallen = is_throttled(push),
		.files = seen->files - began->seen.files,
		.files_ns = files_ns,
		.cpus_used = wall_ns ? (double)(now.cpu_ns - began->cpu_ns) / (double)wall_ns : 0,
		.cpus = uv_available_parallelism(),
		.disk_share = share(seen->read_ns - began->seen.read_ns, files_ns),
		.bandwidth_share = share(now.waited_ns - began->waited_ns, wall_ns),
		.most_by_memory = most_by_memory(push),
		.is_cold = seen->warm + level->now / 8 < level->now,
		.has_company = seen->has_company};
	if (level_next(level, &window))
		*began = now;
}

unsigned push_level_next(struct s3once_push *push)
{
	struct queue_seen seen;
	const unsigned before = push->level.now;
	const uint64_t now_ns = clock_boot_ns();
	queue_look(push->run.queue, &seen);
	look_at_files(push, &seen, now_ns);
	look_at_large(push, &seen, now_ns);
	const unsigned at_once = workers_for(push, &seen);
	push->most_at_once = at_once > push->most_at_once ? at_once : push->most_at_once;
	report_new_level(push, before);
	return at_once;
}

void push_level_lower(struct s3once_push *push, unsigned can)
{
	level_lower_most(&push->level, can, S3ONCE_LIMITED_BY_THREADS);
	push->most_at_once = push->most_at_once < can ? push->most_at_once : can;
	report_new_level(push, push->level.now);
}
