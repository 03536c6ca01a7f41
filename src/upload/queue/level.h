/* The numbers of workers and of large bodies that go at once.
 *
 * The level of workers follows Little's law: as many workers are busy as small files end in a
 * second, times the seconds that a file takes on the wire and on a processor. The level is twice
 * that many. So it doubles while all workers wait for answers. It stops where more of them would
 * only wait for a processor, a lock or a service that does not answer more requests. The time on
 * the wire ends when the reply has arrived, even if the worker then waits for a processor.
 * Throttling is left to aws/pace.c.
 *
 * The level of large bodies says how many workers may send one, and follows their bytes. If one
 * connection fills the line, further large bodies only make all of them end later, so that a kill
 * loses more. A trial doubles it, or later raises it by half, and is kept if each doubling has made
 * everything faster by a fifth. It falls when a connection is cut. Further trials begin after
 * pauses.
 *
 * Pure: time and figures are arguments. Not thread-safe: only the main thread uses it. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>
#include <stdint.h>

#define LEVEL_FIRST 16 /* workers that a run begins with, and the least later */

enum { WIRE_S3, WIRE_MARKS, WIRES };

struct level {
	unsigned now, max;          /* how many workers there may be */
	enum s3once_limited_by why; /* what keeps it from rising further */
	/* Only level.c uses these two. */
	enum s3once_limited_by max_why; /* what sets `max` */
	/* About the least mean time of a request in any window. 0: unknown. */
	double min_mean_s[WIRES];
};

/* The figures of a window that is over. */
struct level_window {
	uint64_t now_ns, began_ns; /* clock_boot_ns() */
	uint64_t files, read_ns;   /* small files that ended, and how long they were read */
	uint64_t requests[WIRES],
		wire_ns[WIRES]; /* replies that came, and their time on the wire */
	double cpus_used, cpus; /* CPUs that the whole process has used (1 is one CPU all the time);
				   CPUs of the host */
	double bandwidth_share; /* 0 to 1: the share of the window in which any thread waited for
				   the limit of bandwidth */
	unsigned max_by_memory; /* how many workers fit into the memory */
	bool was_throttled;
};

/* Begins at `first`. The level never exceeds `max` (> 0), and `why` says what sets that limit. */
void level_init(struct level *level, unsigned max, enum s3once_limited_by why, unsigned first);
/* Whether a window of this length, in which so many small files have ended, is too short to be
 * judged, and so goes on. Otherwise the next window begins now. A window without files is over at
 * once, since a window begins when the first file is about to end. */
bool level_window_goes_on(const struct level *level, uint64_t ns, uint64_t files);
/* Sets level->now by a window that is over, in which files have ended. */
void level_next(struct level *level, const struct level_window *window);
/* Lowers level->max, when it turns out that no more workers are possible. */
void level_lower_max(struct level *level, unsigned max, enum s3once_limited_by why);

struct large_level {
	unsigned now, max; /* how many large bodies may be under way */
	/* Only level.c uses what follows. */
	unsigned proven;    /* the last level that was worth it; `now` is higher in a trial */
	double proven_rate; /* at that level, in bytes a second */
	bool had_first;     /* the first window of this trial is over, and the next one counts */
	bool is_careful;    /* a trial was in vain, or the level fell: the next ones are smaller */
	uint64_t next_trial_ns, pause_ns; /* when the next trial may begin; the pause after it */
	uint64_t fell_ns;                 /* when it fell last; 0: never */
};

/* The figures of large bodies from the time when the last window ended until now. */
struct large_window {
	uint64_t now_ns, began_ns; /* clock_boot_ns() */
	unsigned under_way;        /* large bodies under way */
	uint64_t bytes;            /* that have moved or needed no sending */
	bool was_cut;              /* the connection of one was cut */
};

/* Begins with one large body. */
void large_level_init(struct large_level *level, unsigned max);
/* Judges the window so far. Returns false if the window is too short to tell anything, and goes on.
 * Returns true if the next window begins now; level->now may have changed then. */
bool large_level_judge(struct large_level *level, const struct large_window *window);
