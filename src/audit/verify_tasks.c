#include "audit/verify_tasks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void task_free(struct verify_task *task)
{
	if (!task)
		return;
	free(task->row);
	free(task->key);
	free(task->before);
	free(task);
}

static bool is_stopped(const struct verify_tasks *tasks)
{
	return tasks->verify->visitor.is_stopped(tasks->verify->visitor.arg);
}

/* Tasks come in the order of their keys, so the least `before` is that of the first one. */
static void note_left_task(struct verify_tasks *tasks, struct verify_task *task)
{
	uv_mutex_lock(&tasks->locked.mutex);
	char **left = &tasks->locked.left_after;
	if (!*left || strcmp(task->before, *left) < 0) {
		free(*left);
		*left = task->before;
		task->before = NULL;
	}
	uv_mutex_unlock(&tasks->locked.mutex);
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

/* Whether nothing more is worth a try after this outcome of one look. */
static bool ends_all(struct verify_tasks *tasks, enum outcome o)
{
	const bool is_failure =
		o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_THROTTLED;
	tasks->locked.failures = is_failure ? tasks->locked.failures + 1 : 0;
	return o == OUTCOME_SETUP || o == OUTCOME_LOCAL || o == OUTCOME_ABANDONED ||
	       tasks->locked.failures >= VERIFY_FAILURES_MAX;
}

static void tell_locked(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	const struct verify_visitor *visitor = &tasks->verify->visitor;
	const bool has_sentence = finding == FINDING_DIFFERS || finding == FINDING_ERROR;
	tasks->locked.counts.of[finding]++;
	if (finding != FINDING_AGED && finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
		visitor->found(visitor->arg, finding, key, has_sentence ? problem : NULL);
}

void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	uv_mutex_lock(&tasks->locked.mutex);
	tell_locked(tasks, finding, key, problem);
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
	const bool is_over = ends_all(tasks, o);
	if (is_over)
		end_tasks_locked(tasks, o, &problem);
	else
		tell_locked(tasks, o == OUTCOME_OK ? finding : FINDING_ERROR, task->key, &problem);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (is_over)
		note_left_task(tasks, task);
}

static bool is_ended(struct verify_tasks *tasks)
{
	uv_mutex_lock(&tasks->locked.mutex);
	const bool is_ended = tasks->locked.is_ended;
	uv_mutex_unlock(&tasks->locked.mutex);
	return is_ended || is_stopped(tasks);
}

static void fail_tasks(struct verify_tasks *tasks, const char *why)
{
	struct problem problem;
	problem_set(&problem, "%s", why);
	uv_mutex_lock(&tasks->locked.mutex);
	end_tasks_locked(tasks, OUTCOME_LOCAL, &problem);
	uv_mutex_unlock(&tasks->locked.mutex);
}

static void work_on_tasks(void *arg)
{
	struct verify_tasks *tasks = arg;
	struct inspection look;
	if (inspect_init(&look, tasks->verify))
		fail_tasks(tasks, PROBLEM_NO_DESCRIPTORS);
	for (struct verify_task *task; (task = pool_take(&tasks->pool));) {
		if (is_ended(tasks))
			note_left_task(tasks, task);
		else
			perform_task(tasks, &look, task);
		task_free(task);
	}
	inspect_clear(&look);
}

int verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem)
{
	const struct pool_options options = {.most = verify->workers, .room = 4 * verify->workers};
	*tasks = (struct verify_tasks){.verify = verify};
	uv_mutex_init(&tasks->locked.mutex);
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
	struct verify_task *task = calloc(1, sizeof *task);
	if (task)
		*task = (struct verify_task){row, strdup(key), strdup(before)};
	else
		free(row);
	if (!task || !task->key || !task->before)
		fail_tasks(tasks, "out of memory");
	else if (pool_add(&tasks->pool, task))
		return true;
	task_free(task);
	return false;
}

void verify_tasks_finish(struct verify_tasks *tasks)
{
	if (!tasks->pool.threads)
		return;
	pool_end(&tasks->pool);
	tasks->pool.threads = NULL;
}

void verify_tasks_clear(struct verify_tasks *tasks)
{
	verify_tasks_finish(tasks);
	free(tasks->locked.left_after);
	uv_mutex_destroy(&tasks->locked.mutex);
}
