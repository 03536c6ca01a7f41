/* The closer looks of verify. Whoever merges or reads a manifest adds a task for each object that
 * needs one; the workers of a pool take them, each with an inspection of its own. A finding waits
 * in the list until all before it are told, so that the lines come in the order of the keys,
 * whichever worker is the first. Who fails too often, or is stopped, leaves the rest undone, and
 * remembers where the next run goes on. */
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
	struct mark_row *row; /* owned; NULL: an object without a mark */
	char *key;            /* of the object, owned */
	char *before;         /* owned; NULL: there was nothing to look at */
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

static void end_tasks_locked(
	struct verify_tasks *tasks, enum outcome o, const struct problem *problem)
{
	if (o != OUTCOME_OK && o != OUTCOME_ABANDONED && tasks->locked.outcome == OUTCOME_OK) {
		tasks->locked.outcome = o;
		tasks->locked.problem = *problem;
	}
	tasks->locked.is_ended = true;
	pool_close(&tasks->pool);
}

static void fail_tasks(struct verify_tasks *tasks, const char *why)
{
	struct problem problem;
	problem_set(&problem, "%s", why);
	uv_mutex_lock(&tasks->locked.mutex);
	end_tasks_locked(tasks, OUTCOME_LOCAL, &problem);
	uv_mutex_unlock(&tasks->locked.mutex);
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
	struct verify_tasks *tasks, struct mark_row *row, const char *key, const char *before)
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
static void leave_task_locked(struct verify_tasks *tasks, struct verify_task *task)
{
	char **left = &tasks->locked.left_after;
	if (!*left || strcmp(task->before, *left) < 0) {
		free(*left);
		*left = task->before;
		task->before = NULL;
	}
	know_locked(tasks, task, FINDINGS, NULL);
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

static void perform_task(
	struct verify_tasks *tasks, struct inspection *look, struct verify_task *task)
{
	struct problem problem = {0};
	enum finding finding = FINDING_ERROR;
	struct mark_row *row = task->row;
	const uint64_t read_before = look->bytes_read;
	task->row = NULL;
	const enum outcome o = row ? inspect_mark(look, row, &finding, &problem)
				   : inspect_object(look, task->key, &finding, &problem);
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.counts.looked_at++;
	tasks->locked.counts.bytes_read += look->bytes_read - read_before;
	if (ends_all(tasks, o)) {
		end_tasks_locked(tasks, o, &problem);
		leave_task_locked(tasks, task);
	} else {
		know_locked(tasks, task, o == OUTCOME_OK ? finding : FINDING_ERROR, &problem);
	}
	uv_mutex_unlock(&tasks->locked.mutex);
}

/* Whether the task is left, since the run has ended or was stopped. */
static bool is_left(struct verify_tasks *tasks, struct verify_task *task)
{
	const struct verify_visitor *visitor = &tasks->verify->visitor;
	uv_mutex_lock(&tasks->locked.mutex);
	const bool is_ended = tasks->locked.is_ended || visitor->is_stopped(visitor->arg);
	if (is_ended)
		leave_task_locked(tasks, task);
	uv_mutex_unlock(&tasks->locked.mutex);
	return is_ended;
}

static void work_on_tasks(void *arg)
{
	struct verify_tasks *tasks = arg;
	struct inspection look;
	if (inspect_init(&look, tasks->verify))
		fail_tasks(tasks, PROBLEM_NO_DESCRIPTORS);
	for (struct verify_task *task; (task = pool_take(&tasks->pool));)
		if (!is_left(tasks, task))
			perform_task(tasks, &look, task);
	inspect_clear(&look);
}

int verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem)
{
	const struct pool_options options = {.most = verify->workers, .room = 4 * verify->workers};
	*tasks = (struct verify_tasks){.verify = verify};
	uv_mutex_init(&tasks->locked.mutex);
	uv_cond_init(&tasks->locked.shorter);
	tasks->locked.last = &tasks->locked.first;
	if (pool_init(&tasks->pool, &options)) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	while (pool_start(&tasks->pool, work_on_tasks, tasks))
		; /* fewer do, too */
	if (!tasks->pool.n)
		problem_set(ret_problem, "%s", PROBLEM_NO_THREAD);
	return tasks->pool.n ? 0 : -EAGAIN;
}

bool verify_tasks_add(
	struct verify_tasks *tasks, struct mark_row *row, const char *key, const char *before)
{
	uv_mutex_lock(&tasks->locked.mutex);
	struct verify_task *task = append_locked(tasks, row, key, before);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (!task)
		fail_tasks(tasks, "out of memory");
	if (!task || pool_add(&tasks->pool, task))
		return task != NULL;
	uv_mutex_lock(&tasks->locked.mutex);
	leave_task_locked(tasks, task);
	uv_mutex_unlock(&tasks->locked.mutex);
	return false;
}

enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem)
{
	if (tasks->pool.threads)
		pool_end(&tasks->pool);
	const char *left = tasks->locked.left_after;
	if (o == OUTCOME_OK && tasks->locked.outcome != OUTCOME_OK) {
		o = tasks->locked.outcome;
		*ret_problem = tasks->locked.problem;
	}
	ret->counts = tasks->locked.counts;
	ret->is_complete = o == OUTCOME_OK && is_all && !left;
	if (left && strcmp(left, ret->after) < 0)
		snprintf(ret->after, sizeof ret->after, "%s", left);
	free(tasks->locked.left_after);
	uv_cond_destroy(&tasks->locked.shorter);
	uv_mutex_destroy(&tasks->locked.mutex);
	return o;
}
