/* How many go at once, against services and lines that are computed: what the level rises to, and
 * why no further. */
#include "../check.h"
#include "base/clock.h"
#include "upload/queue/level.h"
#include <limits.h>

#define CEILING 1024

/* A service that answers a file in latency_s, but no more than most_per_s. */
struct host {
	double latency_s, most_per_s;
	double cpu_s;            /* of a CPU, for a file */
	unsigned cpus;           /* of this host; 0: two */
	double read_share;       /* of a file's time */
	double line_share;       /* of the time somebody waits for the limit of bandwidth */
	unsigned memory;         /* workers that fit; 0: any number */
	unsigned throttles_from; /* at more at once the service throttles; 0: never */
	unsigned files;          /* that are there at a time; 0: any number */
	bool has_company;        /* other uploaders are seen */
	uint64_t now_ns;
};

static double rate_at(const struct host *host, unsigned level)
{
	const double cpu_most = host->cpu_s > 0 ? 1 / host->cpu_s : 1e9;
	double rate = level / (host->latency_s + host->cpu_s);
	rate = host->most_per_s > 0 && rate > host->most_per_s ? host->most_per_s : rate;
	return rate > cpu_most ? cpu_most : rate;
}

static struct level_window window_at(const struct host *host, unsigned level, uint64_t ns)
{
	const double rate = rate_at(host, level);
	const double each_s = level / rate;
	const uint64_t files = (uint64_t)(rate * (double)ns / 1e9);
	return (struct level_window){.now_ns = host->now_ns,
		.began_ns = host->now_ns - ns,
		.files = files,
		.files_ns = (uint64_t)((double)files * each_s * 1e9),
		.cpus_used = rate * host->cpu_s,
		.cpus = host->cpus ? host->cpus : 2,
		.disk_share = host->read_share,
		.bandwidth_share = host->line_share,
		.under_way = host->files && host->files < level ? host->files : level,
		.most_by_memory = host->memory ? host->memory : UINT_MAX,
		.has_company = host->has_company,
		.has_fallen = host->throttles_from && level > host->throttles_from};
}

static void go(struct level *level, struct host *host, double seconds)
{
	const uint64_t tick_ns = 25 * NS_PER_MS, end_ns = host->now_ns + (uint64_t)(seconds * 1e9);
	uint64_t ns = 0;
	while (host->now_ns < end_ns) {
		host->now_ns += tick_ns;
		ns += tick_ns;
		const struct level_window window = window_at(host, level->now, ns);
		if (level_next(level, &window))
			ns = 0;
	}
}

static struct level at_its_end(struct host host, double seconds)
{
	struct level level;
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, seconds);
	return level;
}

static void test_latency_is_outgrown(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.1}, 3);
	CHECK_INT(level.now, CEILING);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CEILING);
}

static void test_the_first_second_is_not_wasted(void)
{
	CHECK(at_its_end((struct host){.latency_s = 0.045}, 1).now >= 512);
	CHECK(at_its_end((struct host){.latency_s = 0.14}, 1.5).now >= 256);
}

/* Where workers only wait, no time is lost with doubling; but not once a service throttled. */
static void test_the_first_trial_is_large(void)
{
	struct level level;
	struct host host = {.latency_s = 0.14};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, 32 * LEVEL_FIRST);
	host.throttles_from = 1;
	go(&level, &host, 3);
	CHECK_INT(level.now, LEVEL_FIRST);
	host.throttles_from = 0;
	go(&level, &host, 1.7);
	CHECK_INT(level.now, LEVEL_FIRST);
	go(&level, &host, 0.4);
	CHECK(level.now > LEVEL_FIRST && level.now <= 8 * LEVEL_FIRST);
}

/* More at once means more blocks begun at once, and more claims that another one was first with. */
static void test_company(void)
{
	struct level level;
	struct host host = {.latency_s = 0.14, .has_company = true};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, 2 * LEVEL_FIRST);
	go(&level, &host, 5);
	CHECK_INT(level.now, CEILING);
}

/* It is no larger than half of the CPUs have work for. */
static void test_a_trial_is_as_large_as_the_cpus(void)
{
	struct level level;
	const struct host host = {.latency_s = 0.09, .cpu_s = 2e-4, .now_ns = NS_PER_S};
	const struct level_window window = window_at(&host, LEVEL_FIRST, NS_PER_S);
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, 451);
}

/* The first trial already is as large as it needs to be, but where the service is near it is no
 * larger than to twice as many: new connections cost more there than they bring. */
static void test_the_first_trial(void)
{
	struct level level;
	struct host host = {.latency_s = 0.03, .cpu_s = 2e-4};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 0.075);
	CHECK_INT(level.now, 150);

	host = (struct host){.latency_s = 0.002, .most_per_s = 3000, .cpu_s = 2e-4};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 0.075);
	CHECK_INT(level.now, 2 * LEVEL_FIRST);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_LATENCY);

	host.most_per_s = 0;
	host.cpus = 1;
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 5);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CPU);
}

static void test_a_service_that_takes_no_more(void)
{
	const struct level level =
		at_its_end((struct host){.latency_s = 0.02, .most_per_s = 4000}, 10);
	CHECK(level.now >= 64 && level.now <= 256);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_LATENCY);
}

/* More at once is tried again, in ever longer pauses, for a service may have become faster. */
static void test_a_service_that_becomes_faster(void)
{
	struct level level;
	struct host host = {.latency_s = 0.02, .most_per_s = 4000};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 10);
	host.most_per_s = 0;
	go(&level, &host, 40);
	CHECK_INT(level.now, CEILING);
}

static void test_cpu(void)
{
	const struct level level =
		at_its_end((struct host){.latency_s = 0.0005, .cpu_s = 1e-4, .cpus = 1}, 5);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CPU);
	/* Where requests take their time the CPU is the limit later, at ten thousand files a
	 * second. */
	const struct level later = at_its_end((struct host){.latency_s = 0.03, .cpu_s = 1e-4}, 5);
	CHECK(later.now >= 256 && later.now <= 512);
}

/* The only CPU is more than half busy with the files of so many workers, and more are not tried.
 * Where there are two CPUs they are. */
static void test_no_trial_on_a_busy_host(void)
{
	struct level level;
	const struct host host = {.latency_s = 0.005, .cpu_s = 2e-4, .cpus = 1, .now_ns = NS_PER_S};
	struct level_window window = window_at(&host, LEVEL_FIRST, NS_PER_S);
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CPU);
	window.cpus = 2;
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, 2 * LEVEL_FIRST);
}

static void test_threads_that_cannot_be_started(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 3);
	level_lower_most(&level, 700, S3ONCE_LIMITED_BY_THREADS);
	go(&level, &host, 3);
	CHECK_INT(level.now, 700);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_THREADS);
}

static void test_disk(void)
{
	const struct level level = at_its_end(
		(struct host){.latency_s = 0.05, .most_per_s = 500, .read_share = 0.9}, 5);
	CHECK(level.now <= 64);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_DISK);
}

/* Fifty files a second are all that the line takes. It is not searched on, and once it is lifted
 * the level rises. */
static void test_bandwidth(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1, .most_per_s = 50, .line_share = 1};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 10);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_BANDWIDTH);
	host.most_per_s = host.line_share = 0;
	go(&level, &host, 10);
	CHECK_INT(level.now, CEILING);
	/* A line that is filled only by more workers stops the trial. */
	host.line_share = 0.6;
	go(&level, &host, 1);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_BANDWIDTH);
}

static void test_memory(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.1, .memory = 400}, 5);
	CHECK_INT(level.now, 400);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_MEMORY);
}

static void test_throttling(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1, .throttles_from = 100};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 10);
	CHECK(level.now >= 20 && level.now <= 200);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_THROTTLING);
	host.throttles_from = 1;
	go(&level, &host, 10);
	CHECK_INT(level.now, LEVEL_FIRST);
	host.throttles_from = 0;
	go(&level, &host, 10);
	CHECK_INT(level.now, CEILING);
}

static void test_few_files(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.1, .files = 10}, 5);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_FILES);
}

static void test_new_workers_are_not_judged(void)
{
	struct level level;
	const struct host host = {.latency_s = 0.1, .now_ns = NS_PER_S};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	struct level_window window = window_at(&host, level.now, NS_PER_S);
	window.is_cold = true;
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, LEVEL_FIRST);
	window.is_cold = false;
	CHECK(level_next(&level, &window));
	CHECK(level.now >= 2 * LEVEL_FIRST);
}

static void test_ceiling(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1};
	level_init(&level, 3, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	CHECK_INT(level.now, 3);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 3);
	CHECK_INT(level.now, 3);
	level_init(&level, 100, S3ONCE_LIMITED_BY_DESCRIPTORS, LEVEL_FIRST);
	go(&level, &host, 3);
	CHECK_INT(level.now, 100);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_DESCRIPTORS);
}

/* Large bodies. */

#define MIB  (1ULL << 20)
#define TICK (50 * NS_PER_MS)

/* A line of so many bytes a second, of which one connection gets at most so many. */
struct line {
	double whole, each;
	unsigned bodies; /* that are there at a time; 0: any number */
	uint64_t now_ns, began_ns;
	double moved, moved_before;
};

static void look(struct line *line, struct level *level, bool is_cut)
{
	const unsigned under_way =
		line->bodies && line->bodies < level->now ? line->bodies : level->now;
	const struct level_window window = {.now_ns = line->now_ns,
		.began_ns = line->began_ns,
		.bytes = (uint64_t)(line->moved - line->moved_before),
		.under_way = under_way,
		.has_fallen = is_cut};
	if (!level_next_large(level, &window))
		return;
	line->began_ns = line->now_ns;
	line->moved_before = line->moved;
}

static void pass(struct line *line, struct level *level, double seconds, unsigned *ret_most)
{
	const uint64_t end_ns = line->now_ns + (uint64_t)(seconds * NS_PER_S);
	while (line->now_ns < end_ns) {
		const unsigned n =
			line->bodies && line->bodies < level->now ? line->bodies : level->now;
		const double rate = line->each * n;
		line->now_ns += TICK;
		line->moved += (rate < line->whole ? rate : line->whole) * TICK / NS_PER_S;
		look(line, level, false);
		if (ret_most && level->now > *ret_most)
			*ret_most = level->now;
	}
}

static void begin(struct line *line, struct level *level)
{
	line->now_ns = line->began_ns = 1000 * NS_PER_S;
	level_init(level, 64, S3ONCE_LIMITED_BY_CEILING, 1);
}

/* One connection fills it, and a second one is tried now and then. */
static void test_slow_line(void)
{
	struct level level;
	struct line line = {.whole = 0.5 * MIB, .each = 0.5 * MIB};
	unsigned most = 0;
	begin(&line, &level);
	pass(&line, &level, 2000, &most);
	CHECK_INT(most, 2);
	CHECK_INT(level.proven, 1);
}

/* Each connection has a limit of its own: as many as there may be, and soon. */
static void test_wide_line(void)
{
	struct level level;
	struct line line = {.whole = 10000 * MIB, .each = 50 * MIB};
	begin(&line, &level);
	pass(&line, &level, 4, NULL);
	CHECK_INT(level.proven, 64);
}

/* Ten connections fill it. */
static void test_line_between(void)
{
	struct level level;
	struct line line = {.whole = 100 * MIB, .each = 10 * MIB};
	begin(&line, &level);
	pass(&line, &level, 60, NULL);
	CHECK(level.proven >= 8 && level.proven <= 16);
	line.each = 100 * MIB; /* no more are needed than there are */
	pass(&line, &level, 600, NULL);
	CHECK(level.proven <= 16);
}

static void test_cuts(void)
{
	struct level level;
	struct line line = {.whole = 10000 * MIB, .each = 50 * MIB};
	begin(&line, &level);
	pass(&line, &level, 10, NULL);
	for (int i = 0; i < 20; i++) /* together */
		look(&line, &level, true);
	CHECK_INT(level.now, 32);
	for (int i = 0; i < 20; i++) {
		line.now_ns += NS_PER_S / 2;
		look(&line, &level, true);
	}
	CHECK_INT(level.now, 1);
	pass(&line, &level, 40, NULL); /* it is fast still */
	CHECK(level.proven > 50);
}

/* The last parts of a file are fewer than might go: they prove nothing, and the next file does not
 * wait for the pause after a trial that was in vain. */
static void test_too_few(void)
{
	struct level level;
	struct line line = {.whole = 10000 * MIB, .each = 10 * MIB, .bodies = 1};
	begin(&line, &level);
	pass(&line, &level, 10, NULL);
	CHECK_INT(level.proven, 1);
	line.bodies = 0;
	pass(&line, &level, 6, NULL);
	CHECK_INT(level.proven, 64);
}

/* While nothing moves, no more large bodies are begun: that says nothing of the line. */
static void test_nothing_moves(void)
{
	struct level level;
	struct line line = {.whole = 10000 * MIB, .each = 0};
	begin(&line, &level);
	pass(&line, &level, 60, NULL);
	CHECK_INT(level.now, 1);
}

int main(void)
{
	test_latency_is_outgrown();
	test_the_first_second_is_not_wasted();
	test_the_first_trial_is_large();
	test_company();
	test_a_trial_is_as_large_as_the_cpus();
	test_the_first_trial();
	test_a_service_that_takes_no_more();
	test_a_service_that_becomes_faster();
	test_cpu();
	test_no_trial_on_a_busy_host();
	test_threads_that_cannot_be_started();
	test_disk();
	test_bandwidth();
	test_memory();
	test_throttling();
	test_few_files();
	test_new_workers_are_not_judged();
	test_ceiling();
	test_slow_line();
	test_wide_line();
	test_line_between();
	test_cuts();
	test_too_few();
	test_nothing_moves();
	return check_result();
}
