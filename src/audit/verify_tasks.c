#include "audit/verify_tasks.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of findings that wait for an earlier one. Then the merge waits, too. */
#define LINES_MAX 20000

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

/* Told when all before it are. The caller holds the mutex. NULL: out of memory. */
static struct verify_line *add_line_locked(struct verify_tasks *tasks, const char *key)
{
	wait_until(tasks->locked.n_lines < LINES_MAX, .told = &tasks->locked.shorter,
		.mutex = &tasks->locked.mutex);
	struct verify_line *line = calloc(1, sizeof *line);
	if (line && !(line->key = strdup(key))) {
		free(line);
		line = NULL;
	}
	if (!line)
		return NULL;
	*tasks->locked.last = line;
	tasks->locked.last = &line->next;
	tasks->locked.n_lines++;
	return line;
}

static void tell_locked(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	const struct verify_visitor *visitor = &tasks->verify->visitor;
	const bool has_sentence = finding == FINDING_DIFFERS || finding == FINDING_ERROR;
	if (finding == FINDINGS)
		return;
	tasks->locked.counts.of[finding]++;
	if (finding != FINDING_AGED && finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
		visitor->found(visitor->arg, finding, key, has_sentence ? problem : NULL);
}

static void tell_known_locked(struct verify_tasks *tasks)
{
	struct verify_line *line;
	while ((line = tasks->locked.first) && line->is_known) {
		tell_locked(tasks, line->finding, line->key, line->problem);
		tasks->locked.first = line->next;
		if (!line->next)
			tasks->locked.last = &tasks->locked.first;
		tasks->locked.n_lines--;
		free(line->key);
		free(line->problem);
		free(line);
	}
	uv_cond_broadcast(&tasks->locked.shorter);
}

static void know_locked(struct verify_tasks *tasks, struct verify_line *line, enum finding finding,
	const struct problem *problem)
{
	line->is_known = true;
	line->finding = finding;
	if (problem && *problem->text && (line->problem = malloc(sizeof *problem)))
		*line->problem = *problem;
	tell_known_locked(tasks);
}

/* Tasks come in the order of their keys, so the least `before` is that of the first one. */
static void leave_task(struct verify_tasks *tasks, struct verify_task *task)
{
	uv_mutex_lock(&tasks->locked.mutex);
	char **left = &tasks->locked.left_after;
	if (!*left || strcmp(task->before, *left) < 0) {
		free(*left);
		*left = task->before;
		task->before = NULL;
	}
	know_locked(tasks, task->line, FINDINGS, NULL); /* neither told nor counted */
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	uv_mutex_lock(&tasks->locked.mutex);
	struct verify_line *line = tasks->locked.first ? add_line_locked(tasks, key) : NULL;
	if (line)
		know_locked(tasks, line, finding, problem);
	else
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
		know_locked(tasks, task->line, o == OUTCOME_OK ? finding : FINDING_ERROR, &problem);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (is_over)
		leave_task(tasks, task);
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
			leave_task(tasks, task);
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
	struct verify_task *task = calloc(1, sizeof *task);
	if (task)
		*task = (struct verify_task){
			.row = row, .key = strdup(key), .before = strdup(before)};
	else
		free(row);
	if (task && task->key && task->before) {
		uv_mutex_lock(&tasks->locked.mutex);
		task->line = add_line_locked(tasks, key);
		uv_mutex_unlock(&tasks->locked.mutex);
	}
	if (!task || !task->line)
		fail_tasks(tasks, "out of memory");
	else if (pool_add(&tasks->pool, task))
		return true;
	else
		leave_task(tasks, task);
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
	uv_cond_destroy(&tasks->locked.shorter);
	uv_mutex_destroy(&tasks->locked.mutex);
}
