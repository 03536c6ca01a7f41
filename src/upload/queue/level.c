#include "upload/queue/level.h"
#include "base/clock.h"

#define WINDOW_NS (50 * NS_PER_MS) /* the least length of a window */

/* Twice as many that only wait for answers finish nearly twice as much. */
#define WORTH      1.2
#define LEAP_MOST  32  /* a trial is of no more times the workers of now */
#define STEP_LEAST 1.1 /* a smaller step shows nothing */

/* At this share of their time the workers wait for a CPU more than for anything else. */
#define CPU_FULL  0.5
#define CPU_WASTE 0.9 /* beyond this fewer workers finish as much */
#define DISK_FULL 0.5
#define LINE_FULL 0.5
#define IDLE_MUCH 0.25 /* so much less was under way than the level: that says nothing of it */

#define PAUSE_FIRST_NS    NS_PER_S
#define PAUSE_MOST_NS     (32 * NS_PER_S)
#define PAUSE_THROTTLE_NS (2 * NS_PER_S)
#define CUT               0.7

static unsigned most_of(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static void set_level(struct level *level, double wanted)
{
	level->now = wanted >= level->ceiling ? level->ceiling : wanted < 1 ? 1 : (unsigned)wanted;
}

void level_init(struct level *level, unsigned ceiling, enum s3once_limited_by ceiling_why)
{
	*level = (struct level){.ceiling = ceiling,
		.ceiling_why = ceiling_why,
		.pause_ns = PAUSE_FIRST_NS,
		.leaps = true};
	set_level(level, LEVEL_FIRST);
	level->proven = level->now;
	level->why = level->now == ceiling ? ceiling_why : S3ONCE_LIMITED_BY_FILES;
}

void level_lower_ceiling(struct level *level, unsigned ceiling, enum s3once_limited_by why)
{
	level->ceiling = ceiling;
	level->ceiling_why = level->why = why;
	if (level->proven > ceiling)
		level->proven = ceiling;
	set_level(level, level->now);
}

static void settle_level(struct level *level, unsigned at, enum s3once_limited_by why)
{
	set_level(level, at);
	level->proven = level->now;
	level->why = why;
}

/* A few workers are kept: the service's own pace (aws/pace.h) holds their
 * requests back, and one that pauses before its next try needs a worker all the while. */
static void fall(struct level *level, uint64_t now_ns)
{
	const unsigned least = level->now < LEVEL_LEAST ? level->now : LEVEL_LEAST;
	settle_level(
		level, most_of((unsigned)(CUT * level->now), least), S3ONCE_LIMITED_BY_THROTTLING);
	level->proven_rate = 0;
	level->leaps = false;
	level->next_trial_ns = now_ns + PAUSE_THROTTLE_NS;
}

static void pause(struct level *level, uint64_t now_ns)
{
	level->leaps = false;
	level->next_trial_ns = now_ns + level->pause_ns;
	level->pause_ns = 2 * level->pause_ns < PAUSE_MOST_NS ? 2 * level->pause_ns : PAUSE_MOST_NS;
}

/* The level of the next trial. Where latency is high each doubling takes half a second, and so
 * many may be tried at once as would keep one CPU busy. */
static double next_trial(const struct level *level, double cpus_used)
{
	const double twice = 2.0 * level->proven, most = LEAP_MOST * (double)level->proven;
	const double busy = LEAP_MOST * cpus_used > 1 ? level->proven / cpus_used : most;
	return level->leaps && busy > twice ? busy : twice;
}

/* The factor by which the rate must have grown. */
static double worth_of(const struct level *level)
{
	double worth = WORTH;
	for (unsigned n = 4 * level->proven; n <= level->now; n *= 2)
		worth *= WORTH;
	return worth;
}

/* Twice as many would need more CPU time than this host has. A new worker costs as much of it as
 * several files, for its connection. */
static bool is_busy(const struct level_window *window)
{
	return 2 * window->cpus_used > window->cpus;
}

/* The level after a trial that was worth it. By Little's law as many workers are busy as the rate
 * times the time a file took before. Twice as many are enough, and those of a leap may be more. */
static double enough_after(const struct level *level, double rate)
{
	const double enough = 2.0 * level->proven * rate / level->proven_rate;
	return enough < level->now ? enough : level->now;
}

/* The window was measured at the proven level. */
static void look_further(struct level *level, const struct level_window *window)
{
	const bool is_by_memory = window->most_by_memory < level->ceiling;
	const unsigned most = is_by_memory ? window->most_by_memory : level->ceiling;
	if (window->bandwidth_share >= LINE_FULL) {
		level->why = S3ONCE_LIMITED_BY_BANDWIDTH; /* more would only wait for it */
	} else if (window->cpu_share >= CPU_FULL || is_busy(window)) {
		level->why = S3ONCE_LIMITED_BY_CPU;
		if (window->cpu_share >= CPU_WASTE && level->now > LEVEL_LEAST)
			settle_level(level, most_of((unsigned)(CUT * level->now), LEVEL_LEAST),
				S3ONCE_LIMITED_BY_CPU);
	} else if (level->now == level->ceiling || most < STEP_LEAST * level->now) {
		level->why = is_by_memory ? S3ONCE_LIMITED_BY_MEMORY : level->ceiling_why;
	} else if (window->now_ns >= level->next_trial_ns) {
		level->was_in_vain = false;
		const double trial = next_trial(level, window->cpus_used);
		set_level(level, most < trial ? most : trial);
	}
}

/* What the workers waited for in a trial that did not help. */
static enum s3once_limited_by reason_of_window(const struct level_window *window)
{
	return window->bandwidth_share >= LINE_FULL ? S3ONCE_LIMITED_BY_BANDWIDTH
	       : window->cpu_share >= CPU_FULL      ? S3ONCE_LIMITED_BY_CPU
	       : window->disk_share >= DISK_FULL    ? S3ONCE_LIMITED_BY_DISK
						    : S3ONCE_LIMITED_BY_LATENCY;
}

static void judge_trial(struct level *level, const struct level_window *window, double rate)
{
	if (rate >= worth_of(level) * level->proven_rate) {
		const unsigned tried = level->now;
		settle_level(level, (unsigned)enough_after(level, rate), S3ONCE_LIMITED_BY_FILES);
		level->proven_rate = rate;
		level->pause_ns = PAUSE_FIRST_NS;
		if (level->now == tried)
			look_further(level, window);
	} else if (!level->was_in_vain) { /* one window may mislead: connections are new */
		level->was_in_vain = true;
	} else {
		settle_level(level, level->proven, reason_of_window(window));
		pause(level, window->now_ns);
	}
}

/* More at once means more blocks begun at once, and more claims that another one was first with. A
 * leap that was made before the others were seen is taken back. True: the level has changed. */
static bool keep_company(struct level *level)
{
	const bool has_leapt = level->leaps && level->now > LEVEL_COMPANY;
	level->leaps = false;
	if (has_leapt)
		settle_level(level, LEVEL_COMPANY, S3ONCE_LIMITED_BY_FILES);
	return has_leapt;
}

bool level_next(struct level *level, const struct level_window *window)
{
	if (window->is_throttled) {
		fall(level, window->now_ns);
		return true;
	}
	if (window->has_company && keep_company(level))
		return true;
	if (window->is_cold)
		return true;
	if (window->now_ns - window->began_ns < WINDOW_NS)
		return false;
	if (window->idle_share >= IDLE_MUCH)
		return true;
	if (window->files < level->now)
		return false;
	const double mean_s = (double)window->files_ns / (double)window->files / (double)NS_PER_S;
	const double rate = mean_s > 0 ? level->now / mean_s : 0;
	if (level->now > level->proven) {
		judge_trial(level, window, rate);
	} else {
		level->proven_rate = rate;
		look_further(level, window);
	}
	return true;
}
