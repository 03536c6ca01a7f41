/* Files that S3 refused before it had stored anything in this run. Only the fate of the other files
 * shows whether S3 refuses one file, the files of one folder, or all of them, so refused files are
 * kept here, and workers go on in other blocks of files meanwhile.
 *
 * Once something is stored, each kept file fails by itself. If several files were refused and no
 * other file can still be stored, the run ends. Thread-safe. */
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
/* Keeps a file that was refused with this sentence, closes it, and takes it. Returns false, and
 * takes nothing, if something was stored before or there is no memory: then the file fails by
 * itself. */
bool refusals_keep(struct worker *worker, struct file *file, const struct problem *problem);
/* AT_END: the worker gets no more tasks. */
enum settle_time { AFTER_A_TASK, AT_END };
/* Call it after each task of a worker, once liveness.tasks does not count the task any more, and
 * once at its end. Fails the kept files if something was stored.
 *
 * If many files are kept, of many blocks or of all that were found so far, and this task kept one
 * of them, the worker waits until something is stored or no other task is under way. If nothing was
 * stored then, the run ends.
 *
 * At the end, the last worker to call it ends the run if several files are kept, and fails a single
 * one. */
void refusals_settle(struct worker *worker, enum settle_time time);
