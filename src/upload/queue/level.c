/* The arithmetic of the levels. The main thread (push_loop.c) computes them here, and tells them
 * to the queue. Nothing here measures, waits or knows of threads, so the unit test can simulate
 * hosts and lines. */
#include "upload/queue/level.h"
#include "base/clock.h"

/* The shortest time over which a window measures small files. */
#define WINDOW_NS (50 * NS_PER_MS)
/* If the workers wait for one thing during this share of the time, more of them would wait for it,
 * too. */
#define WAITED_MUCH 0.5

/* A file waits twice for its mark to be written, and each time for half of the request that is
 * under way before its own one. */
#define REQUESTS_OF_MARKS 3
/* The least mean time of a request is raised by this share each second, since a service may become
 * slower for good. */
#define SLOWER_PER_S 0.01
/* The level falls by an eighth at most in a window, since a window may be slow by chance. */
#define FALL_FACTOR 0.875
/* If a larger share of the workers is busy, nothing keeps the level from rising. */
#define BUSY_TO_RISE 0.75

static void set_level(struct level *level, double wanted)
{
	level->now = wanted >= level->max ? level->max : wanted < 1 ? 1 : (unsigned)wanted;
}

void level_init(struct level *level, unsigned max, enum s3once_limited_by why, unsigned first)
{
	*level = (struct level){.max = max, .max_why = why};
	set_level(level, first);
	level->why = level->now == max ? why : S3ONCE_LIMITED_BY_FILES;
}

void level_lower_max(struct level *level, unsigned max, enum s3once_limited_by why)
{
	level->max = max;
	level->max_why = level->why = why;
	set_level(level, level->now);
}

/* Updates the least means by the window. They stand for the time that a request takes if its
 * service has nothing else to do. A mean that grows with the number of requests shows that the
 * service takes no more of them. */
static void update_min_means(struct level *level, const struct level_window *window)
{
	const double window_s = (double)(window->now_ns - window->began_ns) / NS_PER_S;
	for (int wire = 0; wire < WIRES; wire++) {
		double *min_mean_s = &level->min_mean_s[wire];
		const double n = (double)window->requests[wire];
		const double mean = n > 0 ? (double)window->wire_ns[wire] / n / NS_PER_S : 0;
		*min_mean_s *= 1 + SLOWER_PER_S * window_s;
		if (n > 0 && (*min_mean_s <= 0 || mean < *min_mean_s))
			*min_mean_s = mean;
	}
}

bool level_window_goes_on(const struct level *level, uint64_t ns, uint64_t files)
{
	return files && (ns < WINDOW_NS || files < level->now);
}

/* Returns the mean number of workers that were busy in the window: the seconds that its files have
 * spent on the wire, on being read and on a processor, summed over all workers, for each second of
 * the window. Sets *ret_reading to the mean number of those that were reading. */
static double busy_workers(
	const struct level *level, const struct level_window *window, double *ret_reading)
{
	const double s3_s = (double)window->requests[WIRE_S3] * level->min_mean_s[WIRE_S3];
	const double marks_s =
		REQUESTS_OF_MARKS * (double)window->files * level->min_mean_s[WIRE_MARKS];
	const double read_s = (double)window->read_ns / NS_PER_S;
	const double window_s = (double)(window->now_ns - window->began_ns) / NS_PER_S;
	*ret_reading = read_s / window_s;
	return (s3_s + marks_s + read_s) / window_s + window->cpus_used;
}

/* Returns the level that so many busy workers call for: twice their number, but at most twice the
 * present level. It falls slowly, and not below LEVEL_FIRST. */
static double wanted_level(const struct level *level, double busy)
{
	double wanted = 2 * (busy < level->now ? busy : level->now);
	if (wanted < FALL_FACTOR * level->now)
		wanted = FALL_FACTOR * level->now;
	if (wanted < LEVEL_FIRST)
		wanted = level->now < LEVEL_FIRST ? level->now : LEVEL_FIRST;
	return wanted;
}

/* Returns the reason why `workers` workers did not finish more files in the window. FILES: there is
 * none, and the level rises. */
static enum s3once_limited_by find_limit(
	const struct level_window *window, unsigned workers, double busy, double reading)
{
	if (window->was_throttled)
		return S3ONCE_LIMITED_BY_THROTTLING;
	if (busy > BUSY_TO_RISE * workers)
		return S3ONCE_LIMITED_BY_FILES;
	if (window->cpus_used >= WAITED_MUCH * window->cpus)
		return S3ONCE_LIMITED_BY_CPU;
	return reading >= WAITED_MUCH * busy ? S3ONCE_LIMITED_BY_DISK : S3ONCE_LIMITED_BY_LATENCY;
}

void level_next(struct level *level, const struct level_window *window)
{
	const unsigned before = level->now;
	double reading;
	update_min_means(level, window);
	const double busy = busy_workers(level, window, &reading);
	set_level(level, wanted_level(level, busy));
	/* A lack of memory or of bandwidth only keeps the level from rising. It does not lower it:
	 * the memory is in use already. */
	const bool rises = level->now > before;
	if (rises && window->max_by_memory < level->now) {
		level->now = window->max_by_memory > before ? window->max_by_memory : before;
		level->why = S3ONCE_LIMITED_BY_MEMORY;
	} else if (rises && window->bandwidth_share >= WAITED_MUCH) {
		level->now = before;
		level->why = S3ONCE_LIMITED_BY_BANDWIDTH;
	} else if (level->now == level->max) {
		level->why = level->max_why;
	} else {
		level->why = find_limit(window, before, busy, reading);
	}
}

/* Large bodies. */

#define WORTH 1.2 /* each doubling has to make everything this many times as fast */
/* A trial raises the level by TIMES_FIRST, or by TIMES_LATER after one in vain or after a fall. */
#define TIMES_FIRST       2
#define TIMES_LATER       1.5
#define BUSY_SHARE_MIN    0.75     /* with less of the level under way, a window shows nothing */
#define PAUSE_FIRST_NS    NS_PER_S /* after a trial in vain; doubled after each further one */
#define PAUSE_MAX_NS      (32 * NS_PER_S)
#define PAUSE_FALL_NS     (2 * NS_PER_S) /* after a fall */
#define FALLS_TOGETHER_NS (NS_PER_S / 4) /* bodies that are cut together count once */

/* A window ends after LARGE_MIN_NS, once LARGE_MIN_BYTES have moved, and in any case after
 * LARGE_MAX_NS. */
#define LARGE_MIN_NS    (200 * NS_PER_MS)
#define LARGE_MIN_BYTES (4U << 20)
#define LARGE_MAX_NS    (5 * NS_PER_S)

void large_level_init(struct large_level *level, unsigned max)
{
	*level =
		(struct large_level){.now = 1, .max = max, .proven = 1, .pause_ns = PAUSE_FIRST_NS};
}

/* Halves the level, since the connection of a large body was cut: the network or the server cannot
 * take so many. */
static void lower_after_cut(struct large_level *level, uint64_t now_ns)
{
	if (level->fell_ns && now_ns - level->fell_ns < FALLS_TOGETHER_NS)
		return; /* this body was cut together with those of the last fall */
	level->now = level->proven = level->now > 1 ? level->now / 2 : 1;
	level->proven_rate = 0;
	level->is_careful = true;
	level->fell_ns = now_ns;
	level->next_trial_ns = now_ns + PAUSE_FALL_NS;
}

/* Ends a trial that was in vain: goes back to the proven level. The next trial comes after
 * pause_ns, which doubles with each trial in vain, up to PAUSE_MAX_NS. */
static void end_failed_trial(struct large_level *level, uint64_t now_ns)
{
	level->now = level->proven;
	level->is_careful = true;
	level->next_trial_ns = now_ns + level->pause_ns;
	level->pause_ns = 2 * level->pause_ns < PAUSE_MAX_NS ? 2 * level->pause_ns : PAUSE_MAX_NS;
}

/* Judges the rate of a window that has ended. Returns true if the level of the window is worth it,
 * and so is the proven one now. Returns false if it was a slow window of a trial, which ends the
 * trial. */
static bool judge_rate(struct large_level *level, uint64_t now_ns, double rate)
{
	if (level->now <= level->proven) { /* no trial is under way */
		/* A faster rate replaces the proven one. A slower one counts by half, since it may
		 * be slow by chance. */
		level->proven_rate =
			rate > level->proven_rate ? rate : (rate + level->proven_rate) / 2;
		return true;
	}
	if (rate >= WORTH * level->proven_rate) {
		level->proven = level->now;
		level->proven_rate = rate;
		level->pause_ns = PAUSE_FIRST_NS;
		return true;
	}
	end_failed_trial(level, now_ns);
	return false;
}

/* Begins a trial, unless this is the pause between trials, or `max` is reached. */
static void begin_trial(struct large_level *level, uint64_t now_ns)
{
	unsigned wanted =
		(unsigned)((level->is_careful ? TIMES_LATER : TIMES_FIRST) * level->proven);
	if (now_ns < level->next_trial_ns || level->proven >= level->max)
		return;
	wanted = wanted > level->proven ? wanted : level->proven + 1;
	level->had_first = false;
	level->now = wanted < level->max ? wanted : level->max;
}

bool large_level_judge(struct large_level *level, const struct large_window *window)
{
	const uint64_t ns = window->now_ns - window->began_ns;
	if (window->was_cut) {
		lower_after_cut(level, window->now_ns);
		return true;
	}
	const bool is_too_short =
		ns < LARGE_MIN_NS || (window->bytes < LARGE_MIN_BYTES && ns < LARGE_MAX_NS);
	/* It goes on, unless nothing large was under way: then the next one begins. */
	if (is_too_short)
		return !window->under_way && !window->bytes;
	/* Too few of the bodies that are allowed are under way to show how fast this level is. */
	if (window->under_way < BUSY_SHARE_MIN * level->now)
		return true;
	/* The first window of a trial does not count, since the first bytes of new connections only
	 * fill buffers on the way. */
	const bool is_trial = level->now > level->proven;
	if (is_trial && !level->had_first) {
		level->had_first = true;
		return true;
	}
	/* A window in which nothing moved is judged, but no trial follows: more bodies would not
	 * move either. */
	const double rate = (double)window->bytes / (double)ns * NS_PER_S;
	if (judge_rate(level, window->now_ns, rate) && window->bytes)
		begin_trial(level, window->now_ns);
	return true;
}
