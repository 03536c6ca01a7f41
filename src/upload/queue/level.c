/* The arithmetic of the level. The main thread (push_loop.c) computes the level here, and passes it
 * to the queue. Nothing here measures, waits or knows of threads, so the unit test can simulate
 * hosts and lines. */
#include "upload/queue/level.h"
#include "base/clock.h"

/* The least gain in speed from each doubling. If workers only wait for answers, twice as many of
 * them finish nearly twice as much. */
#define WORTH       1.2
#define TIMES_MOST  32  /* a first trial of workers: up to this many times the present ones */
#define TIMES_LARGE 1.5 /* a trial of large bodies, after one in vain or after a fall */

/* A window of large bodies ends after LARGE_LEAST_NS, once LARGE_LEAST_BYTES have moved, and in any
 * case after LARGE_MOST_NS. */
#define WINDOW_NS         (50 * NS_PER_MS) /* the least length of a window of small files */
#define LARGE_LEAST_NS    (200 * NS_PER_MS)
#define LARGE_LEAST_BYTES (4U << 20)
#define LARGE_MOST_NS     (5 * NS_PER_S)
#define MUCH              0.5  /* with this share of waiting, more workers would only wait, too */
#define LEAST_BUSY        0.75 /* with less of the level under way, a window is meaningless */
#define PAUSE_FIRST_NS    NS_PER_S /* pause after a trial in vain; doubled after each further one */
#define PAUSE_MOST_NS     (32 * NS_PER_S)
#define PAUSE_FALL_NS     (2 * NS_PER_S) /* pause after a fall */
#define FALLS_TOGETHER_NS (NS_PER_S / 4) /* requests that are throttled together count once */

/* Sets the level to `wanted`, but to no less than 1 and no more than `most`. */
static void set_level(struct level *level, double wanted)
{
	level->now = wanted >= level->most ? level->most : wanted < 1 ? 1 : (unsigned)wanted;
}

void level_init(struct level *level, unsigned most, enum s3once_limited_by why, unsigned first)
{
	*level = (struct level){
		.most = most, .most_why = why, .least = first, .pause_ns = PAUSE_FIRST_NS};
	set_level(level, first);
	level->proven = level->now;
	level->why = level->now == most ? why : S3ONCE_LIMITED_BY_FILES;
}

void level_lower_most(struct level *level, unsigned most, enum s3once_limited_by why)
{
	level->most = most;
	level->most_why = level->why = why;
	if (level->proven > most)
		level->proven = most;
	set_level(level, level->now);
}

/* Halves the level after throttling or a cut, but not below level->least. A lower level stays as it
 * is. Fewer workers are not needed, since aws/pace.c limits the number of requests. They would even
 * be harmful, since each request that pauses before its next try occupies a worker. */
static void fall(struct level *level, uint64_t now_ns)
{
	if (level->fell_ns && now_ns - level->fell_ns < FALLS_TOGETHER_NS)
		return; /* the last fall already covers these requests */
	const unsigned least = level->now < level->least ? level->now : level->least;
	const unsigned fallen = level->now / 2;
	set_level(level, fallen > least ? fallen : least);
	level->proven = level->now;
	level->proven_rate = 0;
	level->is_careful = true;
	level->fell_ns = now_ns;
	level->next_trial_ns = now_ns + PAUSE_FALL_NS;
}

/* Keeps the level of a trial that was fast enough. By Little's law, as many workers are busy as the
 * rate times the time that a file took before the trial. Twice that many are enough, so a trial of
 * many more is lowered to it. */
static void keep_trial(struct level *level, double rate)
{
	/* If proven_rate is 0, as after a fall, `enough` is infinite or no number, and the level
	 * stays. */
	const double enough = 2.0 * level->proven * rate / level->proven_rate;
	if (enough < level->now)
		set_level(level, enough);
	level->proven = level->now;
	level->proven_rate = rate;
	level->pause_ns = PAUSE_FIRST_NS;
}

/* Goes back to the proven level. The next trial has to wait twice as long as this one had to. */
static void end_in_vain(struct level *level, uint64_t now_ns)
{
	set_level(level, level->proven);
	level->is_careful = true;
	level->next_trial_ns = now_ns + level->pause_ns;
	level->pause_ns = 2 * level->pause_ns < PAUSE_MOST_NS ? 2 * level->pause_ns : PAUSE_MOST_NS;
}

/* Judges the rate of a window that has ended. Returns true if the level of the window is proven
 * now, and false if it was a slow window of a trial.
 *
 * A window of a trial is slow if it is not a fifth faster than proven_rate for each doubling. A
 * slow first window does not end the trial, since new connections may have made it slow. It only
 * sets had_first. The next slow window ends the trial. */
static bool note_rate(struct level *level, uint64_t now_ns, double rate)
{
	if (level->now <= level->proven) { /* no trial is under way */
		/* A faster rate replaces the proven one. A slower one counts half, since it may be
		 * slow by chance. */
		level->proven_rate =
			rate > level->proven_rate ? rate : (rate + level->proven_rate) / 2;
		return true;
	}
	/* A trial at less than 4 times the proven level has to be WORTH times as fast. At 4 times
	 * the level WORTH counts twice, at 8 times three times, and so on. */
	double worth = WORTH;
	for (unsigned n = 4 * level->proven; n <= level->now; n *= 2)
		worth *= WORTH;
	if (rate >= worth * level->proven_rate) {
		keep_trial(level, rate);
		return true;
	}
	if (level->had_first)
		end_in_vain(level, now_ns);
	level->had_first = true;
	return false;
}

/* Begins a trial at this many times the proven level, with at least one more and not more than
 * `most`. Does nothing in the pause between trials, or if `most` is reached. */
static void begin_trial(struct level *level, uint64_t now_ns, double times, unsigned most)
{
	double wanted = times * level->proven;
	if (now_ns < level->next_trial_ns || level->proven >= most)
		return;
	level->had_first = false;
	if (wanted < level->proven + 1)
		wanted = level->proven + 1;
	set_level(level, wanted < most ? wanted : most);
}

/* Begins the next trial, or sets level->why to the limit that keeps the level from rising. To be
 * called after a window at the proven level.
 *
 * A trial has `times` times the proven level. That is TIMES_MOST, or so much less that half of the
 * CPUs stay free for the connections of the new workers, each of which costs as much CPU time as
 * several files. `times` is 2 after a trial in vain, after a fall, or if other uploaders are at
 * work, and it is never less than 2. */
static void look_further(struct level *level, const struct level_window *window)
{
	const bool is_by_memory = window->most_by_memory < level->most;
	const unsigned most = is_by_memory ? window->most_by_memory : level->most;
	const double half = window->cpus / 2;
	double times = (level->is_careful || window->has_company) ? 2 : TIMES_MOST;
	if (times * window->cpus_used > half)
		times = half / window->cpus_used;
	if (window->bandwidth_share >= MUCH)
		level->why = S3ONCE_LIMITED_BY_BANDWIDTH;
	else if (window->cpus_used > half)
		level->why = S3ONCE_LIMITED_BY_CPU;
	else if (level->now >= most)
		level->why = is_by_memory ? S3ONCE_LIMITED_BY_MEMORY : level->most_why;
	else
		begin_trial(level, window->now_ns, times > 2 ? times : 2, most);
}

/* Whether the window does not show the speed of this level, since connections are still being made,
 * or too few of the allowed workers or bodies are under way. */
static bool says_nothing(const struct level *level, const struct level_window *window)
{
	return window->is_cold || window->under_way < LEAST_BUSY * level->now;
}

bool level_next(struct level *level, const struct level_window *window)
{
	if (window->has_fallen) {
		level->why = S3ONCE_LIMITED_BY_THROTTLING;
		fall(level, window->now_ns);
		return true;
	}
	if (says_nothing(level, window))
		return true; /* the window is dropped, and the next one begins */
	/* A window ends once as many files have ended in it as there are workers. */
	if (window->now_ns - window->began_ns < WINDOW_NS || window->files < level->now)
		return false;
	/* The rate is the number of workers divided by the mean time of a file. A count of the
	 * files would vary more from window to window. */
	const double mean_s = (double)window->files_ns / (double)window->files / (double)NS_PER_S;
	const unsigned tried = level->now;
	const bool is_trial = tried > level->proven;
	if (note_rate(level, window->now_ns, mean_s > 0 ? level->now / mean_s : 0)) {
		if (is_trial) /* it was kept, so nothing limits the level for now */
			level->why = S3ONCE_LIMITED_BY_FILES;
		/* If keep_trial() has lowered the level, it has a window of its own first. */
		if (level->now == tried)
			look_further(level, window);
	} else if (level->now != tried) { /* the trial was in vain: report the limit */
		level->why = window->bandwidth_share >= MUCH        ? S3ONCE_LIMITED_BY_BANDWIDTH
			     : 2 * window->cpus_used > window->cpus ? S3ONCE_LIMITED_BY_CPU
			     : window->disk_share >= MUCH           ? S3ONCE_LIMITED_BY_DISK
								    : S3ONCE_LIMITED_BY_LATENCY;
	}
	return true;
}

bool level_next_large(struct level *level, const struct level_window *window)
{
	const uint64_t ns = window->now_ns - window->began_ns;
	if (window->has_fallen) {
		fall(level, window->now_ns);
		return true;
	}
	/* A window that is too short goes on. If nothing large was under way in it, it begins
	 * again. */
	if (ns < LARGE_LEAST_NS || (window->bytes < LARGE_LEAST_BYTES && ns < LARGE_MOST_NS))
		return !window->under_way && !window->bytes;
	if (says_nothing(level, window))
		return true; /* the window is dropped, and the next one begins */
	/* The first window of a trial does not count, since the first bytes of new connections only
	 * fill buffers on the way. */
	if (level->now > level->proven && !level->had_first) {
		level->had_first = true;
		return true;
	}
	/* A window in which nothing moved is judged, but no trial follows: more bodies would not
	 * help. */
	const double rate = (double)window->bytes / (double)ns * (double)NS_PER_S;
	if (note_rate(level, window->now_ns, rate) && window->bytes)
		begin_trial(
			level, window->now_ns, level->is_careful ? TIMES_LARGE : 2, level->most);
	return true;
}
