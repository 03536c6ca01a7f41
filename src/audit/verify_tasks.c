#include "audit/verify_tasks.h"
#include "base/thread.h"
#include <stdlib.h>
#include <string.h>

#define RING (sizeof((struct verify_tasks *)0)->locked.ring / sizeof(struct verify_task))

static void clear_task(struct verify_task *task)
{
	free(task->row);
	free(task->key);
	free(task->before);
	*task = (struct verify_task){0};
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
	uv_cond_broadcast(&tasks->locked.has_task);
	uv_cond_broadcast(&tasks->locked.has_room);
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
	if (finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
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

/* False: there is none, and none will come. */
static bool take_task(struct verify_tasks *tasks, struct verify_task *ret, bool *ret_is_ended)
{
	uv_mutex_lock(&tasks->locked.mutex);
	while (!tasks->locked.n && !tasks->locked.is_last && !tasks->locked.is_ended)
		uv_cond_wait(&tasks->locked.has_task, &tasks->locked.mutex);
	const bool has = tasks->locked.n > 0;
	if (has) {
		*ret = tasks->locked.ring[tasks->locked.at];
		tasks->locked.at = (tasks->locked.at + 1) % RING;
		tasks->locked.n--;
	}
	*ret_is_ended = tasks->locked.is_ended;
	uv_cond_signal(&tasks->locked.has_room);
	uv_mutex_unlock(&tasks->locked.mutex);
	return has;
}

static void work_on_tasks(void *arg)
{
	struct verify_tasks *tasks = arg;
	struct inspection look;
	struct verify_task task;
	bool is_ended = false;
	const int error = inspect_init(&look, tasks->verify);
	if (error) {
		struct problem problem;
		problem_set(&problem, "a connection cannot be made: %s", strerror(-error));
		uv_mutex_lock(&tasks->locked.mutex);
		end_tasks_locked(tasks, OUTCOME_LOCAL, &problem);
		uv_mutex_unlock(&tasks->locked.mutex);
	}
	while (take_task(tasks, &task, &is_ended)) {
		if (is_ended || is_stopped(tasks))
			note_left_task(tasks, &task);
		else
			perform_task(tasks, &look, &task);
		clear_task(&task);
	}
	inspect_clear(&look);
}

int verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem)
{
	*tasks = (struct verify_tasks){.verify = verify};
	uv_mutex_init(&tasks->locked.mutex);
	uv_cond_init(&tasks->locked.has_task);
	uv_cond_init(&tasks->locked.has_room);
	while (tasks->n_threads < verify->workers) {
		const int error =
			thread_start(&tasks->threads[tasks->n_threads], work_on_tasks, tasks);
		if (error && !tasks->n_threads) {
			problem_set(ret_problem, "%s", PROBLEM_NO_THREAD);
			return error;
		}
		if (error)
			break; /* fewer do, too */
		tasks->n_threads++;
	}
	return 0;
}

bool verify_tasks_add(
	struct verify_tasks *tasks, struct mark_row *row, const char *key, const char *before)
{
	struct verify_task task = {row, strdup(key), strdup(before)};
	uv_mutex_lock(&tasks->locked.mutex);
	while (tasks->locked.n == RING && !tasks->locked.is_ended)
		uv_cond_wait(&tasks->locked.has_room, &tasks->locked.mutex);
	if (!task.key || !task.before) {
		struct problem problem;
		problem_set(&problem, "out of memory");
		end_tasks_locked(tasks, OUTCOME_LOCAL, &problem);
	}
	const bool is_ended = tasks->locked.is_ended;
	if (!is_ended) {
		tasks->locked.ring[(tasks->locked.at + tasks->locked.n) % RING] = task;
		tasks->locked.n++;
		uv_cond_signal(&tasks->locked.has_task);
	}
	uv_mutex_unlock(&tasks->locked.mutex);
	if (is_ended)
		clear_task(&task);
	return !is_ended;
}

void verify_tasks_finish(struct verify_tasks *tasks)
{
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.is_last = true;
	uv_cond_broadcast(&tasks->locked.has_task);
	uv_mutex_unlock(&tasks->locked.mutex);
	for (unsigned i = 0; i < tasks->n_threads; i++)
		uv_thread_join(&tasks->threads[i]);
	tasks->n_threads = 0;
}

void verify_tasks_clear(struct verify_tasks *tasks)
{
	verify_tasks_finish(tasks);
	free(tasks->locked.left_after);
	uv_cond_destroy(&tasks->locked.has_task);
	uv_cond_destroy(&tasks->locked.has_room);
	uv_mutex_destroy(&tasks->locked.mutex);
}
