#include "upload/file/worker.h"
#include "base/clock.h"
#include "upload/file/multipart.h"
#include <errno.h>
#include <stdlib.h>

/* Step 2 if the query before showed a mark. The mark is read consistently, since it decides now. */
static enum step read_mark(struct worker *worker, struct file *file)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	enum outcome o = mark_get(&ref, &file->seen, &problem);
	return o == OUTCOME_OK ? STEP_NEXT : file_marks_outcome(worker, file, o, &problem);
}

/* The steps before the claim. */
static enum step begin_file(struct worker *worker, struct file *file)
{
	const uint64_t began_ns = clock_boot_ns();
	enum step step = file_open(worker, file);
	worker->read_ns = clock_boot_ns() - began_ns;
	if (step == STEP_NEXT && file->candidate->known.state != MARK_ABSENT)
		step = read_mark(worker, file);
	if (step == STEP_NEXT && !run_begin(worker->run, worker->marks))
		step = STEP_OVER;
	return step;
}

/* Claim, look and send, from wherever the file is. Sending ends with proving and marking. */
static enum step claim_and_send(struct worker *worker, struct file *file)
{
	enum step step = STEP_NEXT;
	if (!file->claimed)
		step = claim_file(worker, file);
	if (step == STEP_NEXT && !file->looked_elsewhere)
		step = look_elsewhere(worker, file);
	if (step == STEP_NEXT && file->must_look)
		step = look_at_object(worker, file);
	if (step == STEP_NEXT)
		step = multipart_plan(worker, file);
	if (step == STEP_NEXT && !file->plan.n_parts) /* it was large once */
		step = multipart_abort(worker, file);
	if (step == STEP_NEXT)
		step = file->plan.n_parts ? multipart_begin(worker, file)
					  : send_whole(worker, file);
	return step;
}

static enum step go_on(struct worker *worker, struct file *file)
{
	enum step step = STEP_AGAIN;
	while (step == STEP_AGAIN)
		step = run_is_over(worker->run) ? STEP_OVER : claim_and_send(worker, file);
	return step;
}

/* A large file that needed no sending took its time all the same: with more at once such files,
 * too, get done sooner. */
static void note_unsent(struct worker *worker, const struct file *file)
{
	const uint64_t most = worker->run->options.part_bytes;
	const uint64_t bytes = file->state.size < most ? file->state.size : most;
	if (bytes > SMALL_BYTES_MAX && !atomic_load(&file->share.bytes))
		queue_moved(worker->run->queue, bytes);
}

/* The worker is through with the file, which belongs to others if its parts are still to be sent or
 * if it was put aside. */
static void finish_file(struct worker *worker, struct file *file, enum step step)
{
	if (step == STEP_PARTS)
		return;
	if (step == STEP_SETTLED && file->is_in_s3)
		remove_file(worker, file);
	if (step == STEP_SETTLED && file->has_lost_key)
		multipart_discard(worker, file);
	report_in_flight(&worker->run->report, -1);
	if (step == STEP_ASIDE)
		return;
	note_unsent(worker, file);
	file_free(file);
}

static void do_file(struct worker *worker, struct candidate *candidate)
{
	struct run *run = worker->run;
	struct file *file = file_new(run, candidate);
	if (!file) {
		struct problem problem;
		free(candidate);
		problem_set(&problem, "out of memory");
		run_fail(run, &problem);
		return;
	}
	report_in_flight(&run->report, 1);
	enum step step = begin_file(worker, file);
	if (step == STEP_NEXT)
		step = go_on(worker, file);
	finish_file(worker, file, step);
}

static void do_part(struct worker *worker, struct parts *parts, unsigned index)
{
	struct file *file;
	enum step step = multipart_send(worker, parts, index, &file);
	if (!file)
		return;
	if (step == STEP_AGAIN)
		step = go_on(worker, file);
	finish_file(worker, file, step);
}

static uint64_t bytes_to_read(const struct run *run, const struct task *task)
{
	return task->kind == TASK_FILE   ? task->file->size
	       : task->kind == TASK_PART ? run->options.part_bytes
					 : 0;
}

static void do_task(struct worker *worker, const struct task *task)
{
	switch (task->kind) {
	case TASK_END:
	case TASK_RETIRE:
		break;
	case TASK_FILE:
		do_file(worker, task->file);
		break;
	case TASK_CHECK:
		block_check(worker, task->block);
		break;
	case TASK_PART:
		do_part(worker, task->parts, task->index);
		break;
	}
}

/* The next task; false if there is none for this worker any more. */
static bool take_task(struct worker *worker, struct task *ret)
{
	queue_take(worker->run->queue, ret);
	ret->is_first = !worker->is_warm;
	worker->is_warm = true;
	worker->read_ns = 0;
	return ret->kind != TASK_END && ret->kind != TASK_RETIRE;
}

void worker_run(struct worker *worker)
{
	struct run *run = worker->run;
	struct task task;
	while (take_task(worker, &task)) {
		buffers_lend(&run->bodies.buffers, &worker->reader, bytes_to_read(run, &task));
		refusals_task_begins(&run->refusals);
		liveness_begin(&run->liveness);
		do_task(worker, &task);
		liveness_end(&run->liveness);
		refusals_task_ended(&run->refusals);
		refusals_settle(worker, false);
		buffers_take_back(&run->bodies.buffers, &worker->reader);
		task.read_ns = worker->read_ns;
		queue_done(run->queue, &task);
	}
	if (task.kind == TASK_END)
		refusals_settle(worker, true);
}

int worker_new(struct run *run, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return -ENOMEM;
	worker->run = run;
	worker->reader = (struct reader){.abandon = run_ask_is_over, .arg = run};
	int error = reader_init(&worker->reader);
	if (!error)
		error = s3_conn_new(run->s3, &worker->s3);
	if (!error)
		error = store_conn_new(run->store, &worker->marks);
	if (error) {
		worker_free(worker);
		return error;
	}
	*ret = worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	store_conn_free(worker->marks);
	s3_conn_free(worker->s3);
	reader_clear(&worker->reader);
	free(worker);
}
