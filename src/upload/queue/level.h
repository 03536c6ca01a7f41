/* How many go at once, in one number. A larger one is tried (at first up to 32 times as many, then
 * twice as many, of large bodies by half) and is kept if each doubling of it has made everything
 * faster by a fifth. It falls when a service throttles or a connection is cut, and is tried again
 * after pauses. A run has two of them: how many workers there are, by the small files that they
 * finish, and how many of these may send large bodies, by the bytes of these. On a line that one
 * connection fills, each further large body only makes all of them end later, so that a kill loses
 * more. Pure: time and figures are arguments. Not thread-safe: the main thread's. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>
#include <stdint.h>

#define LEVEL_FIRST 16 /* workers that a run begins with; as many are kept when it falls */

struct level {
	unsigned now, most;         /* how many may be under way */
	enum s3once_limited_by why; /* what has kept it from rising further; of workers only */
	/* The rest is level.c's. */
	enum s3once_limited_by most_why;
	unsigned least;     /* that it keeps when it falls */
	unsigned proven;    /* the level that was worth its while; `now` is more during a trial */
	double proven_rate; /* at that level, in files or bytes a second */
	bool was_in_vain;   /* the first window of this trial was, or does not count */
	bool is_careful;    /* a trial was in vain, or the level fell: the next ones are smaller */
	uint64_t next_trial_ns, pause_ns; /* when the next trial may begin; the pause after it */
	uint64_t fell_ns;
};

/* The figures from the time when the last window ended until now. */
struct level_window {
	uint64_t now_ns, began_ns; /* clock_boot_ns() */
	unsigned under_way;        /* of those that may be */
	bool has_fallen;           /* a service throttled, or a large body was cut */
	uint64_t bytes;            /* of large bodies that have moved, or needed no sending */
	/* Of small files alone. */
	uint64_t files, files_ns; /* files that ended, and how long they took, added up */
	double cpus_used, cpus;   /* by the whole process, 1 is one CPU all the time; of the host */
	double disk_share;        /* 0 to 1: of those files' time, in which they were read */
	double bandwidth_share;   /* 0 to 1: of the window, in which somebody waited for the limit
				     of bandwidth */
	unsigned most_by_memory;  /* as many fit into the memory, by what those of now need */
	bool is_cold;     /* many workers have not finished a file yet: they are connecting */
	bool has_company; /* other uploaders are at work in the same files */
};

/* At most `most` (> 0) at once, because of why, and `first` to begin with: LEVEL_FIRST of workers,
 * and one of large bodies. */
void level_init(struct level *level, unsigned most, enum s3once_limited_by why, unsigned first);
/* Look at the window so far. False: it is too short to tell, go on with it. True: the next one
 * begins now, and level->now may have changed. */
bool level_next(struct level *level, const struct level_window *window);
bool level_next_large(struct level *level, const struct level_window *window);
/* No more than this is possible after all. */
void level_lower_most(struct level *level, unsigned most, enum s3once_limited_by why);
