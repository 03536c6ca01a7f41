/* How many large bodies (parts, and large files sent whole) are sent at once, which is as few as
 * the line needs. On a line that one connection fills, each further one only makes all of them end
 * later, so that a kill loses more. The level is raised as long as that makes the whole faster, and
 * lowered when a body is cut. Pure: time is an argument. Not thread-safe: the queue's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct bulk {
	unsigned at_once; /* how many may be under way now */
	/* The rest is bulk.c's. */
	unsigned most;
	unsigned proven;    /* the level that was worth its while; at_once is more during a trial */
	double proven_rate; /* bytes a second at that level, as measured last */
	bool is_settling;   /* since the level changed no whole window has passed */
	bool was_in_vain;   /* a trial was: the next ones are smaller */
	uint64_t window_ns, window_bytes; /* when the window began, and what had moved by then */
	uint64_t next_trial_ns, pause_ns; /* when the next trial may begin; the pause before it */
	uint64_t cut_ns;                  /* of the last cut that counted */
};

/* Allows at most `most` (> 0) at once. */
void bulk_init(struct bulk *bulk, unsigned most);
/* Call often. `moved_bytes`: what large bodies have moved since the beginning; what needed no
 * sending counts as well. `under_way`: how many there are now. True if more may go at once than
 * before. */
bool bulk_look(struct bulk *bulk, uint64_t now_ns, uint64_t moved_bytes, unsigned under_way);
/* A body was cut: half as many at once. Of those that are cut together only the first counts. */
void bulk_cut(struct bulk *bulk, uint64_t now_ns, uint64_t moved_bytes);
