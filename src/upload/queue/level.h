/* A level is the number of workers, or of large bodies, at once.
 *
 * A trial raises the level for a while. The first trials raise the level of workers up to 32 times,
 * and later ones double it. The first trials double the level of large bodies, and later ones raise
 * it by half. The higher level is kept if each doubling has made everything faster by a fifth. The
 * level falls when a service throttles or a connection is cut. Further trials begin after pauses.
 *
 * A run has two levels. The level of workers follows the small files that they finish. The level of
 * large bodies is the number of workers that may send one, and follows the bytes of large bodies.
 * If one connection fills the line, further large bodies only make all of them end later, so that a
 * kill loses more.
 *
 * Pure: time and figures are arguments. Not thread-safe: only the main thread uses it. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>
#include <stdint.h>

#define LEVEL_FIRST 16 /* workers that a run begins with; a fall leaves at least as many */

struct level {
	unsigned now, most; /* the present level, and its limit */
	/* the limit that keeps it from rising further; only for workers */
	enum s3once_limited_by why;
	unsigned least; /* a fall does not lower it below this */
	/* Only level.c uses the members below. */
	enum s3once_limited_by most_why; /* the limit that sets `most` */
	unsigned proven;    /* the last level that was worth it; `now` is higher in a trial */
	double proven_rate; /* rate at that level, in files or bytes per second */
	bool had_first;     /* the first window of this trial is over: the next slow one ends it */
	bool is_careful;    /* a trial was in vain, or the level fell: the next ones are smaller */
	uint64_t next_trial_ns,
		pause_ns; /* time at which the next trial may begin, and the pause after it */
	uint64_t fell_ns; /* time of the last fall; 0: none */
};

/* The figures from the time when the last window ended until now. */
struct level_window {
	uint64_t now_ns, began_ns; /* clock_boot_ns() */
	unsigned under_way;        /* number of workers with a task, or of large bodies */
	bool has_fallen;           /* a service throttled, or a large body was cut */
	uint64_t bytes;            /* bytes of large bodies that have moved or needed no sending */
	/* Of small files alone: */
	uint64_t files, files_ns; /* files that ended, and the sum of their times */
	double cpus_used, cpus; /* CPUs that the whole process has used (1 is one CPU all the time);
				   CPUs of the host */
	double disk_share;      /* 0 to 1: the share of files_ns in which files were read */
	double bandwidth_share; /* 0 to 1: the share of the window in which any thread waited for
				   the limit of bandwidth */
	unsigned most_by_memory; /* number of workers that fit into the memory */
	bool is_cold;     /* many workers have not finished a file yet: they are connecting */
	bool has_company; /* other uploaders are at work in the same files */
};

/* Begins at `first`, which is the least that a fall leaves, unless the caller changes that. The
 * level never exceeds `most` (> 0), and `why` is the origin of that limit. */
void level_init(struct level *level, unsigned most, enum s3once_limited_by why, unsigned first);
/* Both functions judge the window so far. They return false if the window is too short for a
 * judgement, and goes on. They return true if the next window begins now; level->now may have
 * changed then. */
bool level_next(struct level *level, const struct level_window *window);
bool level_next_large(struct level *level, const struct level_window *window);
/* Lowers level->most, when it turns out that no more workers are possible. */
void level_lower_most(struct level *level, unsigned most, enum s3once_limited_by why);
