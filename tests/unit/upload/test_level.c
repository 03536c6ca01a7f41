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
		.max_by_memory = host->memory ? host->memory : UINT_MAX};
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

/* If the service is near, there are no more workers than at the beginning. The same is true if
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
	level_lower_max(&level, 100, S3ONCE_LIMITED_BY_THREADS);
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
	if (!large_level_judge(level, &window))
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

/* The level begins at `first`, within the most, and says what keeps it there. */
static void test_begin(void)
{
	static const struct {
		unsigned most, first, now;
		enum s3once_limited_by why;
	} rows[] = {
		{100, 16, 16, S3ONCE_LIMITED_BY_FILES},
		{8, 16, 8, S3ONCE_LIMITED_BY_DESCRIPTORS},
		{16, 16, 16, S3ONCE_LIMITED_BY_DESCRIPTORS},
		{8, 0, 1, S3ONCE_LIMITED_BY_FILES},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct level level;
		level_init(&level, rows[i].most, S3ONCE_LIMITED_BY_DESCRIPTORS, rows[i].first);
		CHECK_INT(level.now, rows[i].now);
		CHECK_INT(level.why, rows[i].why);
	}
}

static void test_window_that_goes_on(void)
{
	static const struct {
		unsigned ms;
		uint64_t files; /* at a level of 16 */
		bool goes_on;
	} rows[] = {{0, 0, false}, {900, 0, false}, {49, 1, true}, {49, 16, true}, {50, 16, false},
		{900, 15, true}, {900, 17, false}};
	struct level level;
	level_init(&level, 100, S3ONCE_LIMITED_BY_CEILING, 16);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!CHECK_INT(level_window_goes_on(
				       &level, rows[i].ms * (uint64_t)NS_PER_MS, rows[i].files),
			    rows[i].goes_on))
			fprintf(stderr, "\trow %zu\n", i);
}

/* A window of a second: what it makes of the level, and what it says is in the way. */
static void test_each_window(void)
{
	static const struct {
		const char *name;
		unsigned now;
		double wire_s, marks_s, read_s, cpus_used; /* of all workers together */
		unsigned memory;                           /* 0: as many as there may be */
		double bandwidth_share;
		bool was_throttled;
		unsigned next;
		enum s3once_limited_by why;
	} rows[] = {
		{"busy", 100, 80, 0, 0, 0, 0, 0, false, 160, S3ONCE_LIMITED_BY_FILES},
		{"the rest waits", 100, 75, 0, 0, 0, 0, 0, false, 150, S3ONCE_LIMITED_BY_LATENCY},
		{"busier than there are", 100, 200, 0, 0, 0, 0, 0, false, 200,
			S3ONCE_LIMITED_BY_FILES},
		{"idle", 100, 10, 0, 0, 0, 0, 0, false, 87, S3ONCE_LIMITED_BY_LATENCY},
		{"the first level is kept", 18, 1, 0, 0, 0, 0, 0, false, LEVEL_FIRST,
			S3ONCE_LIMITED_BY_LATENCY},
		{"below it already", 9, 1, 0, 0, 0, 0, 0, false, 9, S3ONCE_LIMITED_BY_LATENCY},
		{"of marks each file has three", 100, 30, 10, 0, 0, 0, 0, false, 120,
			S3ONCE_LIMITED_BY_LATENCY},
		{"half of the processors", 100, 59, 0, 0, 1, 0, 0, false, 120,
			S3ONCE_LIMITED_BY_CPU},
		{"less", 100, 59.1, 0, 0, 0.9, 0, 0, false, 120, S3ONCE_LIMITED_BY_LATENCY},
		{"half is reading", 100, 30, 0, 30, 0, 0, 0, false, 120, S3ONCE_LIMITED_BY_DISK},
		{"less", 100, 31, 0, 29, 0, 0, 0, false, 120, S3ONCE_LIMITED_BY_LATENCY},
		{"memory for some more", 100, 80, 0, 0, 0, 120, 0, false, 120,
			S3ONCE_LIMITED_BY_MEMORY},
		{"memory for fewer", 100, 80, 0, 0, 0, 50, 0, false, 100, S3ONCE_LIMITED_BY_MEMORY},
		{"memory for just these", 100, 80, 0, 0, 0, 160, 0, false, 160,
			S3ONCE_LIMITED_BY_FILES},
		{"memory is not the reason to fall", 100, 45, 0, 0, 0, 20, 0, false, 90,
			S3ONCE_LIMITED_BY_LATENCY},
		{"half waits for bandwidth", 100, 80, 0, 0, 0, 0, 0.5, false, 100,
			S3ONCE_LIMITED_BY_BANDWIDTH},
		{"less", 100, 80, 0, 0, 0, 0, 0.4, false, 160, S3ONCE_LIMITED_BY_FILES},
		{"nor is bandwidth", 100, 45, 0, 0, 0, 0, 0.9, false, 90,
			S3ONCE_LIMITED_BY_LATENCY},
		{"throttled", 100, 80, 0, 0, 0, 0, 0, true, 160, S3ONCE_LIMITED_BY_THROTTLING},
		{"the ceiling", 600, 550, 0, 0, 0, 0, 0, true, CEILING, S3ONCE_LIMITED_BY_CEILING},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct level level;
		level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, rows[i].now);
		const struct level_window window = {.began_ns = 7 * (uint64_t)NS_PER_S,
			.now_ns = 8 * (uint64_t)NS_PER_S,
			.files = 1000,
			.read_ns = (uint64_t)(rows[i].read_s * (double)NS_PER_S),
			.requests = {1000, 100},
			.wire_ns = {(uint64_t)(rows[i].wire_s * (double)NS_PER_S),
				(uint64_t)(rows[i].marks_s / 10 * (double)NS_PER_S)},
			.cpus_used = rows[i].cpus_used,
			.cpus = CPUS,
			.bandwidth_share = rows[i].bandwidth_share,
			.max_by_memory = rows[i].memory ? rows[i].memory : UINT_MAX,
			.was_throttled = rows[i].was_throttled};
		level.why = S3ONCE_LIMITED_BY_THREADS;
		level_next(&level, &window);
		bool good = CHECK_INT(level.now, rows[i].next);
		good &= CHECK_INT(level.why, rows[i].why);
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].name);
	}
}

/* A request takes as long as in the fastest window, and a hundredth more for each second since. */
static void test_fastest_window(void)
{
	static const struct {
		uint64_t requests;
		double mean_s;
		unsigned next; /* in windows of a second, each from a level of 100 */
	} rows[] = {
		{5000, 0.01, 100},
		{5000, 0.1, 101}, /* 0.0101 s each */
		{0, 0, 87},       /* no request says nothing */
		{5000, 0.1, 103}, /* 0.010303 s */
		{7500, 0.008, 120},
		{7500, 0.01, 121},
	};
	struct level level;
	uint64_t now_ns = 0;
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING, 100);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct level_window window = {.began_ns = now_ns,
			.now_ns = now_ns + NS_PER_S,
			.files = 1000,
			.requests = {rows[i].requests, 0},
			.wire_ns = {(uint64_t)((double)rows[i].requests * rows[i].mean_s *
					       (double)NS_PER_S),
				0},
			.cpus = CPUS,
			.max_by_memory = UINT_MAX};
		level.now = 100;
		level_next(&level, &window);
		if (!CHECK_INT(level.now, rows[i].next))
			fprintf(stderr, "\trow %zu\n", i);
		now_ns = window.now_ns;
	}
}

/* The effect of each look at the large bodies under way. */
struct large_look {
	unsigned ms;        /* since the last look */
	double mib;         /* moved since the window began */
	unsigned under_way; /* bodies */
	bool was_cut, ends; /* a connection was cut; the window ends */
	unsigned now;       /* bodies that there may be then */
};

static void look_all(const char *name, unsigned most, const struct large_look *looks, size_t n)
{
	struct large_level level;
	struct large_window window = {.now_ns = NS_PER_S, .began_ns = NS_PER_S};
	large_level_init(&level, most);
	for (size_t i = 0; i < n; i++) {
		window.now_ns += looks[i].ms * (uint64_t)NS_PER_MS;
		window.bytes = (uint64_t)(looks[i].mib * MIB);
		window.under_way = looks[i].under_way;
		window.was_cut = looks[i].was_cut;
		bool good = CHECK_INT(large_level_judge(&level, &window), looks[i].ends);
		good &= CHECK_INT(level.now, looks[i].now);
		if (!good)
			fprintf(stderr, "\t%s, look %zu\n", name, i);
		if (looks[i].ends)
			window.began_ns = window.now_ns;
	}
}

static void test_large_looks(void)
{
	static const struct large_look windows[] = {
		{100, 0, 1, false, false, 1}, /* a body has just begun */
		{99, 8, 1, false, false, 1},  /* too short */
		{1, 3, 1, false, false, 1},   /* too few bytes */
		{4799, 3, 1, false, false, 1},
		{1, 3, 1, false, true, 2},   /* but not for ever; a trial begins */
		{200, 0, 0, false, true, 2}, /* nothing is under way */
		{4900, 1, 0, false, false, 2},
	};
	static const struct large_look trials[] = {
		{200, 8, 1, false, true, 2},  /* 40 MiB a second: twice as many are tried */
		{200, 6, 2, false, true, 2},  /* the first window does not count */
		{200, 10, 2, false, true, 4}, /* 50: worth it */
		{200, 10, 2, false, true, 4}, /* too few are under way */
		{200, 10, 3, false, true, 4}, /* the first window */
		{200, 11, 4, false, true, 2}, /* 55: in vain */
		{200, 10, 2, false, true, 2}, /* the pause is a second */
		{799, 40, 2, false, true, 2},
		{200, 10, 2, false, true, 3}, /* half as many more */
		{200, 4, 3, false, true, 3},
		{200, 11, 3, false, true, 2}, /* in vain: the pause is two seconds */
		{1999, 100, 2, false, true, 2},
		{200, 10, 2, false, true, 3},
		{200, 10, 3, false, true, 3},
		{200, 12.5, 3, false, true, 4}, /* worth it: the next pause is a second again */
		{200, 10, 4, false, true, 4},
		{200, 13, 4, false, true, 3},
		{999, 60, 3, false, true, 3},
		{200, 12, 3, false, true, 4},
	};
	static const struct large_look cuts[] = {
		{200, 8, 1, false, true, 2}, {200, 16, 2, false, true, 2},
		{200, 16, 2, false, true, 4}, {200, 32, 4, false, true, 4},
		{200, 32, 4, false, true, 8}, /* 160 MiB a second */
		{10, 0, 8, true, true, 4},    /* a fall from what was tried */
		{249, 8, 8, true, true, 4},   /* cut together with it */
		{1, 8, 8, true, true, 2},
		{1749, 18, 2, false, true, 2},  /* the pause is two seconds */
		{250, 2.5, 2, false, false, 2}, /* too few bytes */
		{150, 4, 2, false, true, 3},    /* 10 MiB a second, and no longer 160 */
		{200, 4, 3, false, true, 3}, {400, 5, 3, false, true, 4}, /* 12.5: worth it */
		{10, 0, 4, true, true, 2}, {250, 0, 1, true, true, 1},
		{1900, 20, 1, false, true, 1}, {200, 4, 1, false, true, 2}, /* at least one more */
	};
	static const struct large_look few[] = {
		{200, 8, 1, false, true, 2},
		{200, 16, 2, false, true, 2},
		{200, 16, 2, false, true, 3}, /* the most */
		{200, 32, 3, false, true, 3},
		{200, 32, 3, false, true, 3},
		{200, 32, 3, false, true, 3},
	};
	static const struct large_look in_vain[] = {
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 8, 2, false, true, 1},
		{999, 40, 1, false, true, 1}, /* a second, two, four, up to 32 */
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{1999, 80, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{3999, 160, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{7999, 320, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{15999, 640, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{31999, 1280, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
		{200, 6, 2, false, true, 2},
		{200, 4, 2, false, true, 1},
		{31999, 1280, 1, false, true, 1},
		{200, 8, 1, false, true, 2},
	};
	static const struct large_look slower[] = {
		{200, 8, 1, false, true, 2}, /* 40 MiB a second */
		{200, 6, 2, false, true, 2}, {200, 4, 2, false, true, 1},
		{900, 18, 1, false, true, 1}, /* 20: by chance? 30 then */
		{200, 6, 1, false, true, 2}, {200, 6, 2, false, true, 2},
		{200, 7, 2, false, true, 1}, /* 35 is not worth it */
	};
	static const struct large_look still[] = {
		{5000, 0, 1, false, true, 1}, /* more would not move either */
		{200, 8, 1, false, true, 2},
	};
	look_all("windows", 8, windows, sizeof windows / sizeof *windows);
	look_all("trials", 8, trials, sizeof trials / sizeof *trials);
	look_all("cuts", 16, cuts, sizeof cuts / sizeof *cuts);
	look_all("few", 3, few, sizeof few / sizeof *few);
	look_all("in vain", 8, in_vain, sizeof in_vain / sizeof *in_vain);
	look_all("slower", 8, slower, sizeof slower / sizeof *slower);
	look_all("still", 8, still, sizeof still / sizeof *still);
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
	test_begin();
	test_window_that_goes_on();
	test_each_window();
	test_fastest_window();
	test_large_looks();
	return check_result();
}
