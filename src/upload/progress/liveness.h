/* Whether the workers of a run make progress. A heartbeat shows only that its own thread runs. If
 * all workers hang, because of a file system that does not answer or a callback that does not
 * return, the files should go to another uploader. Lock-free. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct liveness {
	atomic_uint tasks;        /* begun and not ended */
	_Atomic uint64_t seen_ns; /* clock_boot_ns() of the last sign of life */
};

/* A worker begins a task, or has ended it: both are signs of life. */
void liveness_begin(struct liveness *liveness);
void liveness_end(struct liveness *liveness);
/* A worker is at work: between two reads, at each progress of a request. */
void liveness_sign(struct liveness *liveness);
/* Whether tasks are under way, and none of them has moved for ns. */
bool liveness_is_lost(const struct liveness *liveness, uint64_t ns);
