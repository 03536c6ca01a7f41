/* The closer looks of verify. Whoever merges or reads a manifest adds a task for each object that
 * needs one; the crew takes them. A finding waits in the list until all before it are told, so that
 * the lines come in the order of the keys, whichever worker is the first. Who fails too often, or
 * is stopped, leaves the rest undone, and remembers where the next run goes on. */
#include "audit/verify_tasks.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of tasks and findings that wait for an earlier one. Then the merge waits, too. */
#define TASKS_MAX 20000

/* One object or mark to look at, or what is known of it already, until it was told. */
struct verify_task {
	struct verify_task *next;
	struct packed_mark *row; /* owned; NULL: an object without a mark */
	char *key;               /* of the object, owned */
	char *before;            /* owned; NULL: there was nothing to look at */
	bool is_known;
	enum finding finding;    /* once it is known; FINDINGS: it is not told, since it was left */
	struct problem *problem; /* its sentence, owned; NULL: none */
};

static void task_free(struct verify_task *task)
{
	if (!task)
		return;
	free(task->row);
	free(task->key);
	free(task->before);
	free(task->problem);
	free(task);
}

void verify_tell(const struct verify *verify, struct verify_counts *counts, enum finding finding,
	const char *key, const struct problem *problem)
{
	const struct verify_visitor *visitor = &verify->visitor;
	const bool has_sentence = finding == FINDING_DIFFERS || finding == FINDING_ERROR;
	counts->of[finding]++;
	if (finding != FINDING_AGED && finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
		visitor->found(visitor->arg, finding, key, has_sentence ? problem : NULL);
}

/* Whether nothing more is worth a try after this outcome of one look. */
static bool ends_all(struct verify_tasks *tasks, enum outcome o)
{
	const bool is_failure =
		o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_THROTTLED;
	tasks->locked.failures = is_failure ? tasks->locked.failures + 1 : 0;
	return o == OUTCOME_SETUP || o == OUTCOME_LOCAL || o == OUTCOME_ABANDONED ||
	       tasks->locked.failures >= VERIFY_FAILURES_MAX;
}

/* A task at the end of the list, which owns it. Takes row. NULL: out of memory. */
static struct verify_task *append_locked(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before)
{
	struct verify_task *task = calloc(1, sizeof *task);
	if (task) {
		task->row = row;
		task->key = strdup(key);
		task->before = before ? strdup(before) : NULL;
	} else {
		free(row);
	}
	if (!task || !task->key || (before && !task->before)) {
		task_free(task);
		return NULL;
	}
	wait_until(tasks->locked.n < TASKS_MAX, .told = &tasks->locked.shorter,
		.mutex = &tasks->locked.mutex);
	*tasks->locked.last = task;
	tasks->locked.last = &task->next;
	tasks->locked.n++;
	return task;
}

/* Tells all that are known and have none before them any more. They are freed. */
static void know_locked(struct verify_tasks *tasks, struct verify_task *task, enum finding finding,
	const struct problem *problem)
{
	task->is_known = true;
	task->finding = finding;
	if (problem && *problem->text && (task->problem = malloc(sizeof *problem)))
		*task->problem = *problem;
	while ((task = tasks->locked.first) && task->is_known) {
		if (task->finding != FINDINGS)
			verify_tell(tasks->verify, &tasks->locked.counts, task->finding, task->key,
				task->problem);
		tasks->locked.first = task->next;
		if (!task->next)
			tasks->locked.last = &tasks->locked.first;
		tasks->locked.n--;
		task_free(task);
	}
	uv_cond_broadcast(&tasks->locked.shorter);
}

/* Tasks come in the order of their keys, so the least `before` is that of the first one. */
static void leave_task(void *arg, void *item)
{
	struct verify_tasks *tasks = arg;
	struct verify_task *task = item;
	char **left = &tasks->locked.left_after;
	uv_mutex_lock(&tasks->locked.mutex);
	if (!*left || strcmp(task->before, *left) < 0) {
		free(*left);
		*left = task->before;
		task->before = NULL;
	}
	know_locked(tasks, task, FINDINGS, NULL);
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	uv_mutex_lock(&tasks->locked.mutex);
	struct verify_task *task =
		tasks->locked.first ? append_locked(tasks, NULL, key, NULL) : NULL;
	if (task)
		know_locked(tasks, task, finding, problem);
	else
		verify_tell(tasks->verify, &tasks->locked.counts, finding, key, problem);
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_count_listed(struct verify_tasks *tasks)
{
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.counts.listed++;
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_progress(struct verify_tasks *tasks)
{
	const struct verify_visitor *visitor = &tasks->verify->visitor;
	uv_mutex_lock(&tasks->locked.mutex);
	visitor->progress(visitor->arg, &tasks->locked.counts);
	uv_mutex_unlock(&tasks->locked.mutex);
}

static enum outcome perform_task(
	void *arg, const struct audit_hand *hand, void *item, struct problem *ret_problem)
{
	struct verify_tasks *tasks = arg;
	struct verify_task *task = item;
	struct inspection look = {
		.verify = tasks->verify, .place = tasks->crew.place, .hand = hand};
	enum finding finding = FINDING_ERROR;
	struct packed_mark *row = task->row;
	task->row = NULL;
	const enum outcome o = row ? inspect_mark(&look, row, &finding, ret_problem)
				   : inspect_object(&look, task->key, &finding, ret_problem);
	http_reply_clear(&look.piece);
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.counts.looked_at++;
	tasks->locked.counts.bytes_read += look.bytes_read;
	const bool is_over = ends_all(tasks, o);
	if (!is_over)
		know_locked(tasks, task, o == OUTCOME_OK ? finding : FINDING_ERROR, ret_problem);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (is_over)
		leave_task(tasks, task);
	return is_over ? o : OUTCOME_OK;
}

bool verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem)
{
	const struct audit_place place = inspect_place(verify);
	const struct crew_work work = {perform_task, leave_task, tasks};
	*tasks = (struct verify_tasks){.verify = verify};
	uv_mutex_init(&tasks->locked.mutex);
	uv_cond_init(&tasks->locked.shorter);
	tasks->locked.last = &tasks->locked.first;
	return crew_init(&tasks->crew, &place, &work, verify->workers, ret_problem);
}

bool verify_tasks_add(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before)
{
	struct problem problem;
	uv_mutex_lock(&tasks->locked.mutex);
	struct verify_task *task = append_locked(tasks, row, key, before);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (task)
		return crew_give(&tasks->crew, task);
	problem_set(&problem, "out of memory");
	crew_stop(&tasks->crew, OUTCOME_LOCAL, &problem);
	return false;
}

enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem)
{
	o = crew_end(&tasks->crew, o, ret_problem);
	const char *left = tasks->locked.left_after;
	ret->counts = tasks->locked.counts;
	ret->is_complete = o == OUTCOME_OK && is_all && !left;
	if (left && strcmp(left, ret->after) < 0)
		snprintf(ret->after, sizeof ret->after, "%s", left);
	free(tasks->locked.left_after);
	uv_cond_destroy(&tasks->locked.shorter);
	uv_mutex_destroy(&tasks->locked.mutex);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}
