/* The files of a run that S3 refused before it had stored anything, and the decision whether each
 * of them fails or the run does. */
#include "upload/file/refusals.h"
#include "base/wait_until.h"
#include "upload/file/file.h"
#include "upload/file/worker.h"
#include <stdlib.h>
#include <unistd.h>

/* The number of refused files that ends the run once all files were tried. A single file may be
 * refused because of its own key or settings. */
#define REFUSED_AT_END 2
/* Once this many are kept, and a file of each block in the queue was tried, a worker that has kept
 * one of them begins no further file before it is clear whether S3 refuses all. Files of one block
 * have neighbouring keys, so a policy may refuse all of them and no other file. */
#define MANY_REFUSED 10

struct refused {
	struct refused *next;
	struct file *file;
	struct problem problem;
};

void refusals_init(struct refusals *refusals)
{
	uv_mutex_init(&refusals->locked.mutex);
}

void refusals_clear(struct refusals *refusals)
{
	for (struct refused *next, *each = refusals->locked.refused; each; each = next) {
		next = each->next;
		file_free(each->file);
		free(each);
	}
	uv_mutex_destroy(&refusals->locked.mutex);
}

bool refusals_keep(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct refusals *refusals = &worker->run->refusals;
	struct refused *refused = malloc(sizeof *refused);
	uv_mutex_lock(&refusals->locked.mutex);
	const bool keeps = refused && !atomic_load(&refusals->has_stored);
	if (keeps) {
		if (file->fd >= 0) /* many files may be kept, and would need too many descriptors */
			close(file->fd);
		file->fd = -1;
		*refused = (struct refused){refusals->locked.refused, file, *problem};
		refusals->locked.refused = refused;
		atomic_fetch_add(&refusals->n_refused, 1);
		worker->has_put_aside = true;
		queue_set_spreading(worker->run->queue, true);
	}
	uv_mutex_unlock(&refusals->locked.mutex);
	if (!keeps)
		free(refused);
	return keeps;
}

/* Returns whether this worker has to decide now about the refused files, even if nothing was
 * stored. A worker that has put one of many files aside, and finds no block to begin, waits before,
 * until something is stored or no task is left. Any other worker decides only at its end, if no
 * task is left: then all files were tried. Returns false if the run is stopped meanwhile. */
static bool wait_to_decide(struct worker *worker, enum settle_time time)
{
	struct run *run = worker->run;
	struct refusals *refusals = &run->refusals;
	const bool is_one_of_many = worker->has_put_aside &&
				    atomic_load(&refusals->n_refused) >= MANY_REFUSED &&
				    !queue_has_due_block(run->queue);
	worker->has_put_aside = false;
	if (!is_one_of_many)
		return time == AT_END && !atomic_load(&run->liveness.tasks);
	return wait_until(!atomic_load(&run->liveness.tasks) || atomic_load(&refusals->has_stored),
		       .abandon = run_poll_is_stopping, .arg = run) == WAIT_MET;
}

void refusals_settle(struct worker *worker, enum settle_time time)
{
	struct run *run = worker->run;
	struct refusals *refusals = &run->refusals;
	struct refused *all = NULL;
	const bool decides = wait_to_decide(worker, time);
	uv_mutex_lock(&refusals->locked.mutex);
	const bool has_stored = atomic_load(&refusals->has_stored);
	const unsigned n = atomic_load(&refusals->n_refused);
	if (has_stored || decides) { /* this worker takes the list */
		all = refusals->locked.refused;
		refusals->locked.refused = NULL;
		atomic_store(&refusals->n_refused, 0);
	}
	if (has_stored)
		queue_set_spreading(run->queue, false);
	uv_mutex_unlock(&refusals->locked.mutex);
	/* A single refused file may itself be the reason. It fails below, and the run continues. */
	if (all && !has_stored && n >= REFUSED_AT_END) { /* the last one represents all */
		problem_prefix(&all->problem,
			"all of the %u files that were tried are refused, such as s3://%s/%s", n,
			run->options.bucket, quote(all->file->target.key).text);
		run_fail(run, &all->problem);
	}
	for (struct refused *next; all; all = next) {
		next = all->next;
		/* If the run is over, its end is reported, and not why each file was refused. */
		if (run_is_over(run))
			run_report_unfinished(run, all->file->candidate);
		else
			file_fail(worker, all->file, &all->problem);
		file_free(all->file);
		free(all);
	}
}
