/* How many files are under way at once. The level begins low and rises as long as that makes small
 * files finish faster: it doubles, or leaps while workers mostly wait for answers. It stops where
 * more would only wait: for the services, for this host's CPUs or for its disk. It falls when a
 * service throttles. How many of them may be large bodies is bulk.h's. Pure: time and figures are
 * arguments. Not thread-safe: the main thread's. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>
#include <stdint.h>

#define LEVEL_FIRST   16 /* how many a run begins with */
#define LEVEL_LEAST   16 /* a level that falls keeps as many */
#define LEVEL_COMPANY 64 /* a leap is taken back to as many where other uploaders are seen */

struct level {
	unsigned now, ceiling;      /* how many may be under way */
	enum s3once_limited_by why; /* what has kept it from rising further */
	/* The rest is level.c's. */
	enum s3once_limited_by ceiling_why;
	unsigned proven;    /* the level that was worth its while; `now` is more during a trial */
	double proven_rate; /* files a second at that level, as measured last */
	bool was_in_vain;   /* the last window of this trial was */
	bool leaps;         /* no trial was in vain so far, and no service throttled */
	uint64_t next_trial_ns, pause_ns; /* when the next trial may begin; the pause after it */
};

/* One window: what happened since the last one ended. */
struct level_window {
	uint64_t now_ns, began_ns; /* clock_boot_ns() */
	uint64_t files;            /* small files that were begun and ended in the window */
	uint64_t files_ns;         /* how long these took, added up */
	double cpu_share;  /* 0 to 1: of a worker's time, in which it ran or waited for a CPU */
	double cpus_used;  /* by the whole process, 1 is one CPU all the time */
	double cpus;       /* of this host */
	double disk_share; /* 0 to 1: of those files' time, in which they were read */
	double bandwidth_share;  /* 0 to 1: of the window, in which somebody waited for the limit of
				    bandwidth */
	double idle_share;       /* 0 to 1: of the workers' time, in which they had nothing to do */
	unsigned most_by_memory; /* as many fit into the memory, by what those of now need */
	bool is_cold;      /* many workers have not finished a file yet: they are connecting */
	bool has_company;  /* other uploaders are at work in the same files: no leaps */
	bool is_throttled; /* a service throttled */
};

/* At most `ceiling` (> 0) at once, because of ceiling_why. */
void level_init(struct level *level, unsigned ceiling, enum s3once_limited_by ceiling_why);
/* Looks at the window so far. False: it is too short to tell, go on with it. True: the next one
 * begins now, and level->now may have changed. */
bool level_next(struct level *level, const struct level_window *window);
/* No more than this is possible after all. */
void level_lower_ceiling(struct level *level, unsigned ceiling, enum s3once_limited_by why);
