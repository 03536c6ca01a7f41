/* Files that S3 refused before it had taken anything in this run: whether each is refused for what
 * it is, or all for how the run is set up, shows only by what becomes of the others. They are kept
 * here until something was stored (then each fails by itself), or until several different files
 * were refused and nothing is left that could still be stored (then the run ends). Thread-safe. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct worker;
struct refused; /* a file and what S3 said; owned by the list */

struct refusals {
	struct {
		uv_mutex_t mutex;
		uv_cond_t changed;       /* any of these */
		struct refused *refused; /* since the last settling */
		unsigned n_refused;
		unsigned n_waiting; /* workers with a task that only wait for the others */
		bool has_stored;    /* S3 took something in this run */
	} locked;
	atomic_bool has_some, has_stored; /* the same, for a look without the mutex */
};
void refusals_init(struct refusals *refusals);
/* Frees the files that are left. After the last worker. */
void refusals_clear(struct refusals *refusals);

/* S3 took an object or a part, or let an upload begin: what it refuses is not all. */
void refusals_stored(struct refusals *refusals);
/* After each task of a worker, which counts in liveness.tasks no more: fails the files that are
 * kept, once something was stored. `at_end`: the worker has no more tasks; the last such one
 * decides. */
void refusals_settle(struct worker *worker, bool at_end);
