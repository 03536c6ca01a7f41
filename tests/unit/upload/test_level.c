/* How many go at once, against services and lines that are computed: what the level rises to, and
 * why no further. */
#include "../check.h"
#include "base/clock.h"
#include "upload/queue/level.h"
#include <limits.h>

#define CEILING 1024

/* A host whose files take cpu_s of a processor each. S3 answers after latency_s, but no more than
 * most_per_s requests, and the marks after marks_s. */
struct host {
	double latency_s, marks_s, most_per_s;
	double cpu_s;
	double free_cpus;    /* those of the two that other processes leave; 0: both */
	double read_s;       /* in which a file is read */
	double line_share;   /* of the time somebody waits for the limit of bandwidth */
	unsigned memory;     /* workers that fit; 0: any number */
	double throttled_at; /* requests a second at which S3 throttles; 0: never */
	double files_per_s;  /* that the scan finds; 0: any number */
	uint64_t now_ns;
};

#define CPUS 2

static double least_of(double a, double b)
{
	return b > 0 && b < a ? b : a;
}

/* Small files that end in a second. */
static double rate_at(const struct host *host, unsigned level)
{
	const double free_cpus = host->free_cpus > 0 ? host->free_cpus : CPUS;
	const double each_s = host->latency_s + 3 * host->marks_s + host->cpu_s + host->read_s;
	double rate = least_of(level / each_s, host->most_per_s);
	rate = least_of(rate, host->cpu_s > 0 ? free_cpus / host->cpu_s : 0);
	return least_of(least_of(rate, host->throttled_at), host->files_per_s);
}

static struct level_window window_at(const struct host *host, unsigned level, uint64_t ns)
{
	const double rate = rate_at(host, level), s = (double)ns / NS_PER_S;
	const uint64_t files = (uint64_t)(rate * s);
	/* If S3 is the limit, requests wait there, and are on the wire meanwhile. */
	const bool is_s3 = host->most_per_s > 0 && rate >= host->most_per_s;
	const double wire_s =
		is_s3 ? level / rate - 3 * host->marks_s - host->cpu_s : host->latency_s;
	return (struct level_window){.now_ns = host->now_ns,
		.began_ns = host->now_ns - ns,
		.files = files,
		.read_ns = (uint64_t)((double)files * host->read_s * NS_PER_S),
		.requests = {files, files / 10},
		.wire_ns = {(uint64_t)((double)files * wire_s * NS_PER_S),
			(uint64_t)((double)(files / 10) * host->marks_s * NS_PER_S)},
		.cpus_used = rate * host->cpu_s,
		.cpus = CPUS,
		.bandwidth_share = host->line_share,
		.was_throttled = host->throttled_at > 0 && rate >= host->throttled_at,
		.most_by_memory = host->memory ? host->memory : UINT_MAX};
}

static void go(struct level *level, struct host *host, double seconds)
{
	const uint64_t tick_ns = 25 * NS_PER_MS, end_ns = host->now_ns + (uint64_t)(seconds * 1e9);
	uint64_t ns = 0;
	while (host->now_ns < end_ns) {
		host->now_ns += tick_ns;
		ns += tick_ns;
		const struct level_window window = window_at(host, level->now, ns);
		if (level_window_goes_on(level, ns, window.files))
			continue;
		if (window.files)
			level_next(level, &window);
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
	CHECK_INT(at_its_end((struct host){.latency_s = 0.04, .marks_s = 0.02}, 3).now, CEILING);
}

static void test_the_first_second_is_not_wasted(void)
{
	CHECK(at_its_end((struct host){.latency_s = 0.045}, 1).now >= 512);
	CHECK(at_its_end((struct host){.latency_s = 0.14}, 1.5).now >= 256);
}

/* Twice as many workers as the processors have work for, with the time on the wire. */
static void test_the_processors_are_enough(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.03, .cpu_s = 2e-4}, 10);
	const double busy = CPUS / 2e-4 * (0.03 + 2e-4);
	CHECK(level.now > 1.8 * busy && level.now < 2.2 * busy);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CPU);
}

/* Where the service is near, there are no more workers than at the beginning. Nor are there if
 * other processes take most of the processors, so that a file takes long. */
static void test_a_near_service(void)
{
	const struct host near = {.latency_s = 1e-4, .marks_s = 1e-4, .cpu_s = 2e-4};
	struct host busy = near;
	busy.free_cpus = 0.1;
	CHECK_INT(at_its_end(near, 10).now, LEVEL_FIRST);
	CHECK_INT(at_its_end(busy, 10).now, LEVEL_FIRST);
	busy.latency_s = 0.03;
	CHECK(at_its_end(busy, 20).now <= 2.2 * 0.1 / 2e-4 * (0.03 + 1e-3));
}

/* Later answers do not count if they come of more requests at once. */
static void test_a_service_that_takes_no_more(void)
{
	const struct host host = {.latency_s = 0.03, .most_per_s = 1000};
	const struct level level = at_its_end(host, 5);
	CHECK(level.now <= 80);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_LATENCY);
}

static void test_a_service_that_becomes_faster(void)
{
	struct level level;
	struct host host = {.latency_s = 0.03, .most_per_s = 1000};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 2);
	CHECK(level.now <= 80);
	host.most_per_s = 0;
	go(&level, &host, 5);
	CHECK_INT(level.now, CEILING);
}

static void test_threads_that_cannot_be_started(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 1);
	CHECK(level.now > 100);
	level_lower_most(&level, 100, S3ONCE_LIMITED_BY_THREADS);
	CHECK_INT(level.now, 100);
	go(&level, &host, 5);
	CHECK_INT(level.now, 100);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_THREADS);
}

/* Reading counts like the wire, as on a file server. */
static void test_disk(void)
{
	CHECK_INT(at_its_end((struct host){.read_s = 0.05, .latency_s = 1e-3}, 5).now, CEILING);
}

static void test_bandwidth(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.1, .line_share = 1}, 5);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_BANDWIDTH);
}

/* Memory keeps the level from rising, and does not lower it. */
static void test_memory(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1, .memory = 200};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
	go(&level, &host, 5);
	CHECK_INT(level.now, 200);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_MEMORY);
	host.memory = 1;
	go(&level, &host, 5);
	CHECK_INT(level.now, 200);
}

/* aws/pace.c holds the requests back. The level only follows. */
static void test_throttling(void)
{
	const struct level level =
		at_its_end((struct host){.latency_s = 0.1, .throttled_at = 500}, 5);
	CHECK(level.now <= 110);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_THROTTLING);
}

static void test_few_files(void)
{
	CHECK(at_its_end((struct host){.latency_s = 0.1, .files_per_s = 100}, 5).now <= 32);
}

static void test_ceiling(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1};
	level_init(&level, 3, S3ONCE_LIMITED_BY_CEILING, LEVEL_FIRST);
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

static void look(struct line *line, struct large_level *level, bool is_cut)
{
	const unsigned under_way =
		line->bodies && line->bodies < level->now ? line->bodies : level->now;
	const struct large_window window = {.now_ns = line->now_ns,
		.began_ns = line->began_ns,
		.bytes = (uint64_t)(line->moved - line->moved_before),
		.under_way = under_way,
		.was_cut = is_cut};
	if (!large_level_next(level, &window))
		return;
	line->began_ns = line->now_ns;
	line->moved_before = line->moved;
}

static void pass(struct line *line, struct large_level *level, double seconds, unsigned *ret_most)
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

static void begin(struct line *line, struct large_level *level)
{
	line->now_ns = line->began_ns = 1000 * NS_PER_S;
	large_level_init(level, 64);
}

/* One connection fills it, and a second one is tried now and then. */
static void test_slow_line(void)
{
	struct large_level level;
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
	struct large_level level;
	struct line line = {.whole = 10000 * MIB, .each = 50 * MIB};
	begin(&line, &level);
	pass(&line, &level, 4, NULL);
	CHECK_INT(level.proven, 64);
}

/* Ten connections fill it. */
static void test_line_between(void)
{
	struct large_level level;
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
	struct large_level level;
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
	struct large_level level;
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
	struct large_level level;
	struct line line = {.whole = 10000 * MIB, .each = 0};
	begin(&line, &level);
	pass(&line, &level, 60, NULL);
	CHECK_INT(level.now, 1);
}

int main(void)
{
	test_latency_is_outgrown();
	test_the_first_second_is_not_wasted();
	test_the_processors_are_enough();
	test_a_near_service();
	test_a_service_that_takes_no_more();
	test_a_service_that_becomes_faster();
	test_threads_that_cannot_be_started();
	test_disk();
	test_bandwidth();
	test_memory();
	test_throttling();
	test_few_files();
	test_ceiling();
	test_slow_line();
	test_wide_line();
	test_line_between();
	test_cuts();
	test_too_few();
	test_nothing_moves();
	return check_result();
}
