/* The level of concurrency, against services that are simulated: what it rises to, and why no
 * further. */
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
	const bool is_by_service = host->most_per_s > 0 && rate >= host->most_per_s;
	const double cpu_share =
		host->cpu_s > 0 && !is_by_service ? 1 - host->latency_s / each_s : 0;
	const uint64_t files = (uint64_t)(rate * (double)ns / 1e9);
	return (struct level_window){.now_ns = host->now_ns,
		.began_ns = host->now_ns - ns,
		.files = files,
		.files_ns = (uint64_t)((double)files * each_s * 1e9),
		.cpu_share = cpu_share,
		.cpus_used = rate * host->cpu_s,
		.cpus = host->cpus ? host->cpus : 2,
		.disk_share = host->read_share,
		.bandwidth_share = host->line_share,
		.idle_share =
			host->files && host->files < level ? 1 - (double)host->files / level : 0,
		.most_by_memory = host->memory ? host->memory : UINT_MAX,
		.has_company = host->has_company,
		.is_throttled = host->throttles_from && level > host->throttles_from};
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
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
static void test_a_leap(void)
{
	struct level level;
	struct host host = {.latency_s = 0.14};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, 32 * LEVEL_FIRST);
	host.throttles_from = 1;
	go(&level, &host, 0.5);
	CHECK_INT(level.now, LEVEL_LEAST);
	host.throttles_from = 0;
	go(&level, &host, 2.2);
	CHECK_INT(level.now, 2 * LEVEL_LEAST);
}

/* Other uploaders are seen when the leap was made. It is taken back once; later trials only double.
 */
static void test_company(void)
{
	struct level level;
	struct host host = {.latency_s = 0.14};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 0.2);
	CHECK(level.now > LEVEL_COMPANY);
	host.has_company = true;
	go(&level, &host, 0.025);
	CHECK_INT(level.now, LEVEL_COMPANY);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, 2 * LEVEL_COMPANY);
}

/* A leap is no larger than one CPU has work for. That workers wait for a CPU which others use does
 * not make it smaller. */
static void test_a_leap_is_as_large_as_the_cpu(void)
{
	struct level level;
	const struct host host = {.latency_s = 0.09, .cpu_s = 2e-4, .now_ns = NS_PER_S};
	struct level_window window = window_at(&host, LEVEL_FIRST, NS_PER_S);
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, 451);
	window.cpu_share = 0.3;
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	CHECK(level_next(&level, &window));
	CHECK_INT(level.now, 451);
}

/* The first trial already is as large as it needs to be, but where the service is near it is no
 * larger than to twice as many: new connections cost more there than they bring. */
static void test_the_first_trial(void)
{
	struct level level;
	struct host host = {.latency_s = 0.03, .cpu_s = 2e-4};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 0.075);
	CHECK_INT(level.now, 150);

	host = (struct host){.latency_s = 0.002, .most_per_s = 3000, .cpu_s = 2e-4};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 0.075);
	CHECK_INT(level.now, 2 * LEVEL_FIRST);
	go(&level, &host, 0.2);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_LATENCY);

	host.most_per_s = 0;
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 10);
	host.most_per_s = 0;
	go(&level, &host, 40);
	CHECK_INT(level.now, CEILING);
}

static void test_cpu(void)
{
	const struct level level = at_its_end((struct host){.latency_s = 0.0005, .cpu_s = 1e-4}, 5);
	CHECK_INT(level.now, LEVEL_FIRST);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CPU);
	/* Where requests take their time the CPU is the limit later, at ten thousand files a
	 * second. */
	const struct level later = at_its_end((struct host){.latency_s = 0.03, .cpu_s = 1e-4}, 5);
	CHECK(later.now >= 256 && later.now <= 512);
}

/* The service is near now: workers that only wait in line for a CPU are not needed. */
static void test_cpu_becomes_the_limit(void)
{
	struct level level;
	struct host host = {.latency_s = 0.1};
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 3);
	CHECK_INT(level.now, CEILING);
	host.latency_s = 0.0005;
	host.cpu_s = 1e-4;
	go(&level, &host, 5);
	CHECK(level.now < 100);
}

/* The only CPU is more than half busy with the files of so many workers, and more are not tried.
 * Where there are two CPUs they are. */
static void test_no_trial_on_a_busy_host(void)
{
	struct level level;
	const struct host host = {.latency_s = 0.005, .cpu_s = 2e-4, .cpus = 1, .now_ns = NS_PER_S};
	struct level_window window = window_at(&host, LEVEL_FIRST, NS_PER_S);
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 3);
	level_lower_ceiling(&level, 700, S3ONCE_LIMITED_BY_THREADS);
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 10);
	CHECK(level.now >= 20 && level.now <= 200);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_THROTTLING);
	host.throttles_from = 1;
	go(&level, &host, 10);
	CHECK_INT(level.now, LEVEL_LEAST);
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
	level_init(&level, CEILING, S3ONCE_LIMITED_BY_CEILING);
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
	level_init(&level, 3, S3ONCE_LIMITED_BY_CEILING);
	CHECK_INT(level.now, 3);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_CEILING);
	go(&level, &host, 3);
	CHECK_INT(level.now, 3);
	level_init(&level, 100, S3ONCE_LIMITED_BY_DESCRIPTORS);
	go(&level, &host, 3);
	CHECK_INT(level.now, 100);
	CHECK_INT(level.why, S3ONCE_LIMITED_BY_DESCRIPTORS);
}

int main(void)
{
	test_latency_is_outgrown();
	test_the_first_second_is_not_wasted();
	test_a_leap();
	test_company();
	test_a_leap_is_as_large_as_the_cpu();
	test_the_first_trial();
	test_a_service_that_takes_no_more();
	test_a_service_that_becomes_faster();
	test_cpu();
	test_cpu_becomes_the_limit();
	test_no_trial_on_a_busy_host();
	test_threads_that_cannot_be_started();
	test_disk();
	test_bandwidth();
	test_memory();
	test_throttling();
	test_few_files();
	test_new_workers_are_not_judged();
	test_ceiling();
	return check_result();
}
