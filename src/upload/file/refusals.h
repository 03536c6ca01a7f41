/* Files that S3 refused before it had stored anything in this run. Only the results of other files
 * show whether S3 refuses one file, the files of one folder, or all of them. So refused files are
 * kept here, while workers continue with other blocks.
 *
 * Once S3 has stored something, each kept file fails on its own. If several files were refused and
 * none is left that could be stored, the run ends. Thread-safe. */
#pragma once
#include "base/problem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct file;
struct worker;
struct refused; /* a file and S3's answer; owned by the list */

struct refusals {
	struct {
		uv_mutex_t mutex;
		struct refused *refused; /* refused since refusals_settle() emptied the list */
	} locked;
	atomic_uint n_refused;  /* length of that list, to be read without the mutex */
	atomic_bool has_stored; /* S3 took an object or a part, or let an upload begin */
};
/* Prepares a zeroed struct. */
void refusals_init(struct refusals *refusals);
/* Frees the files that are left. Call it after the last worker has ended. */
void refusals_clear(struct refusals *refusals);
/* Closes and keeps a file that S3 refused with this sentence, and takes ownership. Returns false,
 * and takes nothing, if S3 has stored something before, or if out of memory: then the file fails on
 * its own. */
bool refusals_keep(struct worker *worker, struct file *file, const struct problem *problem);
/* AT_END: the worker gets no more tasks. */
enum settle_time { AFTER_A_TASK, AT_END };
/* Call it after each task of a worker, once liveness.tasks does not count the task any more, and
 * once at its end, unless other workers go on in its place (TASK_RETIRE). Fails the kept files if
 * something was stored.
 *
 * The worker waits if its task kept a file, and if the kept files are from many blocks, or from all
 * blocks found so far. It waits until S3 has stored something or no other task is under way. In the
 * latter case, the run ends.
 *
 * At the end, the last worker to call it ends the run if several files are kept, and fails a single
 * one. */
void refusals_settle(struct worker *worker, enum settle_time time);
