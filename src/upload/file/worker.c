/* A worker. It takes tasks from the queue, and performs the steps of each file (see the picture in
 * file.h), each of which is in a file of its own. push_loop.c starts a worker in each thread.
 * prove.c makes workers for their connections and buffers, but gives them no tasks. */
#include "upload/file/worker.h"
#include "base/clock.h"
#include "upload/file/came_back.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/multipart.h"
#include "upload/file/steps.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum step open_file_timed(struct worker *worker, struct file *file)
{
	const uint64_t began_ns = clock_boot_ns();
	const enum step step = file_open(worker, file);
	worker->read_ns += clock_boot_ns() - began_ns;
	return step;
}

static enum step look_and_judge(struct worker *worker, struct file *file)
{
	return look_at_object(worker, file, LOOK_REQUIRED);
}

/* The life of a file: the function of each step, the step that follows once that has done its work
 * (NEXT), and others that may follow. Each step may follow itself, since a file that has changed
 * while it was read is opened anew. Each may also end the turn. docs/protocol.md ("One file") has
 * the same table. */
#define MAY(step) (1U << (step))
static const struct {
	enum step (*perform)(struct worker *worker, struct file *file);
	enum step next;
	unsigned others;
} steps[] = {
	[STEP_OPEN] = {open_file_timed, STEP_CLAIM, 0},
	[STEP_CLAIM] = {claim_file, STEP_ELSEWHERE, MAY(STEP_OPEN)},
	[STEP_ELSEWHERE] = {look_elsewhere, STEP_SEND, MAY(STEP_OPEN) | MAY(STEP_LOOK)},
	[STEP_LOOK] = {look_and_judge, STEP_SEND, MAY(STEP_OPEN)},
	[STEP_SEND] = {send_file, STEP_SEND, MAY(STEP_OPEN) | MAY(STEP_LOOK)},
};

/* Whether another worker may have the file after this answer, or have freed it. OVER counts as
 * well: no step follows it. */
static bool is_handed_on(enum step answer)
{
	return answer > STEP_PROVEN;
}

/* Whether this is a step of the turn. All values after SEND are ends of the turn. */
static bool turn_goes_on(enum step step)
{
	return step <= STEP_SEND;
}

/* Sets the step that follows this answer of the present one. */
static void set_step(struct file *file, enum step answer)
{
	if (is_handed_on(answer))
		return;
	const enum step from = file->step;
	file->step = answer == STEP_NEXT ? steps[from].next : answer;
	/* The turn ends, or the step is one that may follow the present one. */
	assert(!turn_goes_on(file->step) || file->step == from || file->step == steps[from].next ||
		steps[from].others & MAY(file->step));
}

/* Waits for a claim that was handed in, and has become useless. If it is written, the mark stays
 * claimed, as after every file that is under way when the run ends. */
static void drop_claim(struct file *file)
{
	struct claim unused;
	struct mark present;
	struct problem problem;
	mark_end_claim(file->claiming, &unused, &present, &problem);
	mark_clear(&present);
	file->claiming = NULL;
}

/* Counts a large file that needed no sending as if its bytes had moved, at most those of one part.
 * The level of large bodies rises only while bytes move, and more workers would finish such files
 * sooner. */
static void count_unsent(const struct worker *worker, const struct file *file)
{
	const uint64_t max_bytes = worker->options->part_bytes;
	const uint64_t bytes = file->state.size < max_bytes ? file->state.size : max_bytes;
	if (bytes > S3ONCE_SMALL_BYTES_MAX && !atomic_load(&file->progress.bytes))
		atomic_fetch_add(&worker->report->large_moved, bytes);
}

/* Whether a turn that ends with this step has settled its file: nothing is left to do for it. */
static bool is_settled_by(enum step step)
{
	return step >= STEP_SETTLED && step <= STEP_PROVEN;
}

/* Ends the turn of a file with this step. Removes the file if it is in S3 and due for removal, and
 * frees its memory. A file that was put aside is not freed, since the run's refusals own it then.
 */
static void end_turn(struct worker *worker, struct file *file, enum step step)
{
	if (file->claiming) /* the run has ended before CLAIM */
		drop_claim(file);
	const bool is_in_s3 = step == STEP_IN_S3 || step == STEP_PROVEN;
	if (is_in_s3 && worker->options->removes && !file->candidate->may_grow)
		remove_file(worker, file);
	if (step == STEP_STRANDED) /* no run will resume its upload */
		multipart_abort(worker, file);
	if (step == STEP_OVER)
		run_report_unfinished(worker->run, file->candidate);
	if (is_settled_by(step) && !file->has_given_up)
		progress_made(&worker->run->progress);
	atomic_fetch_sub(&worker->report->in_flight, 1);
	if (step == STEP_ASIDE)
		return;
	count_unsent(worker, file);
	file_free(file);
}

/* Continues the turn after a step has returned `answer`: performs the following steps until the
 * turn ends. */
static void run_turn(struct worker *worker, struct file *file, enum step answer)
{
	set_step(file, answer);
	while (turn_goes_on(answer) && !run_is_over(worker->run)) {
		answer = steps[file->step].perform(worker, file);
		set_step(file, answer);
	}
	if (answer == STEP_PARTS) /* the turn continues elsewhere: another worker may have freed the
				     file */
		return;
	const bool was_cut_off = turn_goes_on(answer); /* the run has ended between two steps */
	end_turn(worker, file, was_cut_off ? STEP_OVER : answer);
}

/* Whether another uploader has claimed the file or marked it done since its mark was last noted in
 * the candidate, by the scan's thread or by came_back_check(). */
static bool was_claimed_meanwhile(const struct worker *worker, const struct file *file)
{
	const struct candidate *c = file->candidate;
	const struct mark *seen = &file->seen_mark;
	const bool has_changed =
		seen->state != c->mark_state || strcmp(seen->session, c->mark_session) != 0;
	const bool is_claimed = seen->state == MARK_CLAIMED || seen->state == MARK_DONE;
	const bool is_ours = strcmp(seen->session, session_id(worker->run->session)) == 0;
	return has_changed && is_claimed && !is_ours;
}

/* Puts the file back into the queue, and with it those files of its block that are not begun, since
 * another uploader is at work in the block. Returns LATER. */
static enum step leave_block(struct worker *worker, struct file *file)
{
	queue_put_back_block(worker->run->queue, file->candidate->block_serial);
	return file_put_back(worker, file, clock_boot_ns() + CAME_BACK_AGAIN_NS);
}

/* Continues with the file that was taken ahead. */
static void go_on_with_next(struct worker *worker)
{
	struct file *file = worker->next.file;
	worker->next.file = NULL;
	worker->read_ns = worker->next.read_ns;
	/* A file without a candidate is in the queue again: its turn ends here. */
	assert(file->candidate || worker->next.answer == STEP_LATER);
	if (file->candidate)
		file_limit_requests(worker, file->candidate);
	run_turn(worker, file, worker->next.answer);
}

/* Begins the turn of a file, and brings it to its end. Takes the candidate.
 *
 * If the scan's thread or came_back_check() has seen a mark, it is read again here, consistently,
 * since it decides. If they have seen none, no mark is read, unless another uploader may have taken
 * the file: claim_file() then finds out whether there is one after all.
 *
 * The mark is read before the file is opened. If it were read after that, a later version than the
 * open one could be done by then, and the earlier one would be sent in its place. */
static void begin_turn(struct worker *worker, struct candidate *candidate)
{
	struct run *run = worker->run;
	struct problem problem = {0};
	struct file *file = file_new(run, candidate);
	enum step answer = STEP_OPEN; /* unless the mark decides otherwise */
	if (!file) {
		free(candidate);
		run_fail(run, PROBLEM("out of memory"));
		return;
	}
	atomic_fetch_add(&run->report.in_flight, 1);
	file_limit_requests(worker, candidate);
	if (candidate->mark_state != MARK_ABSENT || candidate->needs_mark_read) {
		const struct mark_ref ref = file_mark_ref(worker, file);
		const enum outcome o = mark_get(&ref, &file->seen_mark, &problem);
		if (o != OUTCOME_OK)
			answer = file_handle_marks_outcome(worker, file, o, &problem);
		else if (was_claimed_meanwhile(worker, file))
			answer = leave_block(worker, file);
	}
	run_turn(worker, file, answer);
}

/* Returns the number of bytes that the task reads. A task that was taken ahead is begun already:
 * its file is worker->next.file, and task->file may be in the queue again. */
static uint64_t bytes_of_task(const struct worker *worker, const struct task *task)
{
	if (worker->next.file)
		return worker->next.file->state.size;
	switch (task->kind) {
	case TASK_FILE:
		return task->file->size;
	case TASK_PART:
		return worker->options->part_bytes;
	default:
		return 0;
	}
}

/* Performs the task, or continues it if it was begun when it was taken ahead. */
static void perform_task(struct worker *worker, const struct task *task)
{
	if (worker->next.file) {
		go_on_with_next(worker);
	} else if (task->kind == TASK_FILE) {
		begin_turn(worker, task->file);
	} else if (task->kind == TASK_PART) {
		struct file *file; /* NULL: other parts of it are not sent yet */
		const enum step answer = multipart_send(worker, task->parts, task->index, &file);
		if (file)
			run_turn(worker, file, answer);
	} else {
		came_back_check(worker, task->blocks);
	}
}

void worker_run(struct worker *worker)
{
	struct run *run = worker->run;
	struct task task;
	for (;;) {
		if (run_is_stopping(run)) /* the main thread would do this a moment later */
			queue_enter_phase(run->queue, QUEUE_CLOSED);
		if (worker->next.is_taken)
			task = worker->next.task;
		else
			queue_take(run->queue, &task);
		worker->next.is_taken = false;
		if (task.kind == TASK_END || task.kind == TASK_RETIRE)
			break;
		worker->read_ns = 0;
		const uint64_t bytes = bytes_of_task(worker, &task);
		if (bytes > READER_OWN_BYTES) /* the worker's own buffer is too small */
			buffers_lend(&run->bodies.buffers, &worker->reader, bytes);
		liveness_begin_task(&run->liveness);
		perform_task(worker, &task);
		liveness_end_task(&run->liveness);
		if (atomic_load(&run->refusals.n_refused))
			refusals_settle(worker, AFTER_A_TASK);
		buffers_take_back(&run->bodies.buffers, &worker->reader);
		task.read_ns = worker->read_ns;
		task.has_follower = worker->next.is_taken;
		queue_done(run->queue, &task);
	}
	if (task.kind == TASK_END) /* after TASK_RETIRE, other workers still exist */
		refusals_settle(worker, AT_END);
}

struct worker *worker_new(struct run *run)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return NULL;
	*worker = (struct worker){.run = run,
		.limits = run_limits(run),
		.visible_limits = run_visible_limits(run),
		.options = &run->options,
		.report = &run->report,
		.server = run->s3};
	worker->reader = (struct reader){.abandon = run_poll_while_reading, .arg = run};
	if (!reader_init(&worker->reader) && !s3_conn_new(run->s3, &worker->s3) &&
		!store_conn_new(run->store, &worker->marks))
		return worker;
	worker_free(worker);
	return NULL;
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
