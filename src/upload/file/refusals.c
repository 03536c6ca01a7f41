#include "upload/file/refusals.h"
#include "base/wait_until.h"
#include "upload/file/worker.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEVERAL_AT_END 2  /* different files, when all were tried */
#define SEVERAL        10 /* before that */

struct refused {
	struct refused *next;
	struct file *file;
	struct problem problem;
};

void refusals_init(struct refusals *refusals)
{
	uv_mutex_init(&refusals->locked.mutex);
	uv_cond_init(&refusals->locked.changed);
}

static void refused_free(struct refused *refused)
{
	file_free(refused->file);
	free(refused);
}

void refusals_clear(struct refusals *refusals)
{
	for (struct refused *next, *each = refusals->locked.refused; each; each = next) {
		next = each->next;
		refused_free(each);
	}
	uv_cond_destroy(&refusals->locked.changed);
	uv_mutex_destroy(&refusals->locked.mutex);
}

static void change_working(struct refusals *refusals, int by)
{
	uv_mutex_lock(&refusals->locked.mutex);
	refusals->locked.n_working += (unsigned)by;
	uv_cond_broadcast(&refusals->locked.changed);
	uv_mutex_unlock(&refusals->locked.mutex);
}

void refusals_task_begins(struct refusals *refusals)
{
	change_working(refusals, 1);
}

void refusals_task_ended(struct refusals *refusals)
{
	change_working(refusals, -1);
}

void refusals_stored(struct refusals *refusals)
{
	if (atomic_exchange(&refusals->has_stored, true))
		return;
	uv_mutex_lock(&refusals->locked.mutex);
	refusals->locked.has_stored = true;
	uv_cond_broadcast(&refusals->locked.changed);
	uv_mutex_unlock(&refusals->locked.mutex);
}

/* The caller holds the mutex. Whether the others are through, and none could store anything. */
static bool is_set_up(const struct refusals *refusals)
{
	return !refusals->locked.has_stored && refusals->locked.n_refused >= SEVERAL &&
	       refusals->locked.n_waiting >= refusals->locked.n_working;
}

/* Until the others that are under way have ended, or one of them has stored something. True: none
 * has. */
static bool wait_for_others(struct run *run)
{
	struct refusals *refusals = &run->refusals;
	refusals->locked.n_waiting++;
	uv_cond_broadcast(&refusals->locked.changed);
	wait_until(is_set_up(refusals) || refusals->locked.has_stored,
		.told = &refusals->locked.changed, .mutex = &refusals->locked.mutex,
		.abandon = run_ask_is_stopping, .arg = run);
	const bool is_over = is_set_up(refusals);
	refusals->locked.n_waiting--;
	return is_over;
}

static void fail_run(struct run *run, unsigned n_refused, const struct problem *problem)
{
	struct problem said = *problem;
	problem_prefix(&said, "all of the %u files that were tried are refused", n_refused);
	run_fail(run, &said);
}

/* Adds to the list, unless something was stored. *ret_n: how many files were refused if the run is
 * to end, else 0. */
static bool add_refused(struct run *run, struct refused *refused, unsigned *ret_n)
{
	struct refusals *refusals = &run->refusals;
	uv_mutex_lock(&refusals->locked.mutex);
	const bool adds = !refusals->locked.has_stored;
	if (adds) {
		refused->next = refusals->locked.refused;
		refusals->locked.refused = refused;
		refusals->locked.n_refused++;
		atomic_store(&refusals->has_some, true);
		if (refusals->locked.n_refused >= SEVERAL && wait_for_others(run))
			*ret_n = refusals->locked.n_refused;
	}
	uv_mutex_unlock(&refusals->locked.mutex);
	return adds;
}

bool refusals_keep(struct run *run, struct file *file, const struct problem *problem)
{
	unsigned n_refused = 0;
	if (atomic_load(&run->refusals.has_stored))
		return false;
	struct refused *refused = malloc(sizeof *refused);
	if (!refused)
		return false;
	if (file->fd >= 0) /* many may be kept */
		close(file->fd);
	file->fd = -1;
	*refused = (struct refused){.file = file, .problem = *problem};
	if (!add_refused(run, refused, &n_refused)) {
		free(refused);
		return false;
	}
	if (n_refused)
		fail_run(run, n_refused, problem);
	return true;
}

/* Takes the list if its files are to be judged now. */
static struct refused *take_refused(
	struct refusals *refusals, bool at_end, bool *ret_has_stored, unsigned *ret_n)
{
	struct refused *all = NULL;
	uv_mutex_lock(&refusals->locked.mutex);
	*ret_has_stored = refusals->locked.has_stored;
	*ret_n = refusals->locked.n_refused;
	if (*ret_has_stored || (at_end && !refusals->locked.n_working)) {
		all = refusals->locked.refused;
		refusals->locked.refused = NULL;
		refusals->locked.n_refused = 0;
		atomic_store(&refusals->has_some, false);
	}
	uv_mutex_unlock(&refusals->locked.mutex);
	return all;
}

void refusals_settle(struct worker *worker, bool at_end)
{
	struct run *run = worker->run;
	struct refusals *refusals = &run->refusals;
	bool has_stored;
	unsigned n;
	if (!atomic_load(&refusals->has_some) || (!at_end && !atomic_load(&refusals->has_stored)))
		return;
	struct refused *all = take_refused(refusals, at_end, &has_stored, &n);
	if (all && !has_stored && n >= SEVERAL_AT_END)
		fail_run(run, n, &all->problem);
	for (struct refused *next; all; all = next) {
		next = all->next;
		if (!run_is_over(run))
			file_fail(worker, all->file, &all->problem);
		refused_free(all);
	}
}
