/* A worker. It takes tasks from the queue, performs the steps of each file (see the picture in
 * file.h), and rereads the marks of files that came back. push_loop.c starts a worker in each
 * thread. prove.c makes workers for their connections and buffers, but gives them no tasks. Each
 * step is in a file of its own. */
#include "upload/file/worker.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "marks/known.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/multipart.h"
#include "upload/file/steps.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_CHUNK     1000 /* number of keys for known_read() at once */
#define PAGE_ROWS_LEAST 50

/* Files that another uploader holds wait at least for CHECK_AGAIN_NS. The rest of a block in which
 * it was met is left to it for LEFT_ALONE_NS at least. */
#define CHECK_AGAIN_NS NS_PER_S
#define LEFT_ALONE_NS  (5 * NS_PER_S)

/* Whether the file can go back to the queue without a turn: a running uploader holds it, and that
 * was reported before, or is too recent to be reported. *ret_again_ns is the time of the next
 * check. */
static bool may_wait(struct worker *worker, struct candidate *c, uint64_t *ret_again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	bool over;
	if (run->options.no_wait || run->dry) /* such a run does not wait */
		return false;
	if (c->mark != MARK_CLAIMED || strcmp(c->holder, session_id(run->session)) == 0)
		return false;
	if (!candidate_was_just_seen_held(c) && !c->said_held)
		return false;
	return session_is_over(run->session, worker->marks, c->holder, &over, ret_again_ns,
		       &problem) == OUTCOME_OK &&
	       !over;
}

/* known_read() needs rising keys, and blocks come back in any order. */
static int compare_keys(const void *a, const void *b)
{
	struct candidate *const *const *x = a, *const *const *y = b;
	return strcmp((**x)->key, (**y)->key);
}

/* Reads the marks of n files that came back. The pages are as small as they can be if all marks in
 * them are wanted. If there are far more marks between them, known_read() reads single ones. */
static bool read_again(
	struct worker *worker, struct candidate **const *places, size_t n, struct packed_mark **ret)
{
	const char *keys[CHECK_CHUNK];
	const struct mark_space *space = &worker->run->space;
	const unsigned page_rows = PAGE_ROWS_LEAST + 2 * (unsigned)n / space->settings.shards;
	struct problem problem = {.text = "out of memory"};
	struct known *known = NULL;
	bool is_read = !known_new(worker->marks, space, &worker->limits, page_rows, &known);
	for (size_t at = 0, chunk; at < n && is_read; at += chunk) {
		chunk = n - at < CHECK_CHUNK ? n - at : CHECK_CHUNK;
		for (size_t i = 0; i < chunk; i++)
			keys[i] = (*places[at + i])->key;
		is_read = known_read(known, keys, chunk, at + chunk == n, ret + at, &problem) ==
			  OUTCOME_OK;
	}
	if (!is_read) /* each claim will read the mark of its file */
		log_info("reading marks again: %s", problem.text);
	known_free(known);
	return is_read;
}

/* Drops the files that are done, and puts NULL in their places. If the marks are not read, no file
 * is dropped, and all count as free. `places` and `marks` have room for all files of the blocks. */
static void drop_done(struct worker *worker, struct block *blocks, struct candidate ***places,
	struct packed_mark **marks)
{
	size_t n = 0;
	for (struct block *block = blocks; block; block = block->next)
		for (size_t i = 0; i < block->n; i++)
			places[n++] = &block->files[i];
	qsort(places, n, sizeof *places, compare_keys);
	const bool is_read = read_again(worker, places, n, marks);
	for (size_t i = 0; i < n; i++) {
		struct candidate *c = *places[i];
		/* mark_unpack(NULL) is an absent mark */
		const struct mark mark = mark_unpack(marks[i]);
		/* An earlier turn may have written this done mark, and lost the reply, so that the
		 * file came back to the queue (said_done). Such a file is not skipped: its next
		 * turn reports it as uploaded or adopted. */
		if (run_skips(worker->run, c, &mark) && is_read && !c->said_done) {
			bucket_skip_done(worker->run, worker->marks, c, &mark.done);
			*places[i] = NULL;
		}
		free(marks[i]);
	}
}

/* Whether another uploader is at work in the block of this file that came back, so that it is about
 * to claim the other small files there. It was met there a moment ago. Or it holds this file, which
 * was not reported yet. Or the file was dropped as done since the block came back (NULL). */
static bool is_shared(const struct candidate *c, bool is_held, uint64_t now_ns)
{
	return !c || (is_held && !c->said_held) ||
	       (c->contested_ns && now_ns - c->contested_ns < LEFT_ALONE_NS);
}

/* Gives the files of a block back to the queue. Those that a running uploader holds have to wait.
 * So do the other small ones where that uploader is at work. The longer ago it was met, the longer
 * is the pause. Frees the block. */
static void give_back(struct worker *worker, struct block *block)
{
	const uint64_t now_ns = clock_boot_ns();
	struct candidate *ready[BLOCK_FILES], *later[BLOCK_FILES];
	size_t n_ready = 0, n_later = 0;
	bool is_held[BLOCK_FILES] = {false}, leaves_small = false;
	uint64_t pause_ns = CHECK_AGAIN_NS, again_ns = 0, at_ns;
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i];
		is_held[i] = c && may_wait(worker, c, &at_ns);
		leaves_small |= is_shared(c, is_held[i], now_ns);
		if (is_held[i] && at_ns > again_ns)
			again_ns = at_ns;
		if (c && c->contested_ns && now_ns - c->contested_ns > pause_ns)
			pause_ns = now_ns - c->contested_ns;
	}
	pause_ns = pause_ns < LEFT_ALONE_NS ? pause_ns : LEFT_ALONE_NS;
	again_ns = again_ns > now_ns + pause_ns ? again_ns : now_ns + pause_ns;
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i];
		if (c && (is_held[i] || (leaves_small && c->size <= S3ONCE_SMALL_BYTES_MAX)))
			later[n_later++] = c;
		else if (c)
			ready[n_ready++] = c;
	}
	queue_later(worker->run->queue, later, n_later, again_ns);
	queue_ready(worker->run->queue, ready, n_ready);
	free(block);
}

/* Reads the marks of files that came back, since other uploaders may have taken them meanwhile.
 * Frees the blocks. */
static void check_blocks(struct worker *worker, struct block *blocks)
{
	size_t n = 0;
	for (const struct block *block = blocks; block; block = block->next)
		n += block->n;
	assert(n); /* a block has files */
	struct candidate ***places = calloc(n, sizeof(struct candidate **));
	struct packed_mark **marks = calloc(n, sizeof(struct packed_mark *));
	if (places && marks)
		drop_done(worker, blocks, places, marks);
	else
		run_fail(worker->run, PROBLEM("out of memory"));
	free(places);
	free(marks);
	for (struct block *next; blocks; blocks = next) {
		next = blocks->next;
		give_back(worker, blocks);
	}
}

static enum step open_now(struct worker *worker, struct file *file)
{
	const uint64_t began_ns = clock_boot_ns();
	const enum step step = file_open(worker, file);
	worker->read_ns += clock_boot_ns() - began_ns;
	return step;
}

static enum step look_in_doubt(struct worker *worker, struct file *file)
{
	return look_at_object(worker, file, LOOK_AND_JUDGE);
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
	[STEP_OPEN] = {open_now, STEP_CLAIM, 0},
	[STEP_CLAIM] = {claim_file, STEP_ELSEWHERE, MAY(STEP_OPEN)},
	[STEP_ELSEWHERE] = {look_elsewhere, STEP_SEND, MAY(STEP_OPEN) | MAY(STEP_LOOK)},
	[STEP_LOOK] = {look_in_doubt, STEP_SEND, MAY(STEP_OPEN)},
	[STEP_SEND] = {send_file, STEP_SEND, MAY(STEP_OPEN) | MAY(STEP_LOOK)},
};

/* Sets the step that follows this answer of the present one. */
static void enter(struct file *file, enum step answer)
{
	if (answer > STEP_PROVEN) /* another worker may have freed the file */
		return;
	const enum step from = file->step;
	file->step = answer == STEP_NEXT ? steps[from].next : answer;
	assert(file->step > STEP_SEND || file->step == from || file->step == steps[from].next ||
		steps[from].others & MAY(file->step));
}

/* Goes on after this answer: performs the steps of the file until its turn ends. At the end of the
 * turn the file is removed if it is due, and freed. A file whose parts are in the queue, or that
 * was put aside, is not freed, since others own it then. */
static void go_on(struct worker *worker, struct file *file, enum step step)
{
	enter(file, step);
	while (step <= STEP_SEND && !run_is_over(worker->run)) {
		step = steps[file->step].perform(worker, file);
		enter(file, step);
	}
	if (step <= STEP_SEND) /* the run has ended between two steps */
		step = STEP_OVER;
	if (step == STEP_PARTS) /* the turn goes on, and another worker may have freed the file */
		return;
	const bool has_ended = step >= STEP_SETTLED && step <= STEP_PROVEN;
	if ((step == STEP_IN_S3 || step == STEP_PROVEN) && worker->options->removes &&
		!file->candidate->may_grow)
		remove_file(worker, file);
	if (step == STEP_STRANDED) /* no run will resume its upload */
		multipart_abort(worker, file);
	if (step == STEP_OVER)
		run_report_unfinished(worker->run, file->candidate);
	if (has_ended && !file->has_given_up)
		progress_made(&worker->run->progress);
	atomic_fetch_sub(&worker->report->in_flight, 1);
	if (step == STEP_ASIDE)
		return;
	/* The level of large bodies follows the bytes that have moved. A large file that needed no
	 * sending also counts, with the bytes of at most one part: it has taken time, and more
	 * workers would finish such files sooner. */
	const uint64_t most = worker->options->part_bytes;
	const uint64_t bytes = file->state.size < most ? file->state.size : most;
	if (bytes > S3ONCE_SMALL_BYTES_MAX && !atomic_load(&file->share.bytes))
		atomic_fetch_add(&worker->report->large_moved, bytes);
	file_free(file);
}

/* Whether another uploader has claimed the file or marked it done since its mark was read by the
 * scan's thread or by check_blocks(). */
static bool was_taken(const struct worker *worker, const struct file *file)
{
	const struct candidate *c = file->candidate;
	const struct mark *seen = &file->seen;
	const bool is_new = seen->state != c->mark || strcmp(seen->session, c->holder) != 0;
	return is_new && (seen->state == MARK_CLAIMED || seen->state == MARK_DONE) &&
	       strcmp(seen->session, session_id(worker->run->session)) != 0;
}

/* Leaves the block of the file to the uploader that is at work there, and the file as well. */
static enum step leave_block(struct worker *worker, struct file *file)
{
	queue_contested(worker->run->queue, file->candidate->block);
	return file_later(worker, file, clock_boot_ns() + CHECK_AGAIN_NS);
}

/* Begins the turn of a file, and brings it to its end. Takes the candidate.
 *
 * If the scan's thread or check_blocks() has seen a mark, it is read again here, consistently,
 * since it decides. If they have seen none, no mark is read, unless another uploader may have taken
 * the file: claim_file() then finds out whether there is one after all.
 *
 * The mark is read before the file is opened. If it were read after that, a later version than the
 * open one could be done by then, and the earlier one would be sent in its place. */
static void do_file(struct worker *worker, struct candidate *candidate)
{
	struct run *run = worker->run;
	struct problem problem = {0};
	struct file *file = file_new(run, candidate);
	enum step step = STEP_OPEN;
	if (!file) {
		free(candidate);
		run_fail(run, PROBLEM("out of memory"));
		return;
	}
	atomic_fetch_add(&run->report.in_flight, 1);
	worker_begin_turn(worker, candidate);
	if (candidate->mark != MARK_ABSENT || candidate->may_be_taken) {
		const struct mark_ref ref = file_mark_ref(worker, file);
		const enum outcome o = mark_get(&ref, &file->seen, &problem);
		if (o != OUTCOME_OK)
			step = file_marks_outcome(worker, file, o, &problem);
		else if (was_taken(worker, file))
			step = leave_block(worker, file);
	}
	go_on(worker, file, step);
}

void worker_run(struct worker *worker)
{
	struct run *run = worker->run;
	struct task task;
	for (;;) {
		if (run_is_stopping(run)) /* the main thread would do this a moment later */
			queue_enter(run->queue, QUEUE_CLOSED);
		queue_take(run->queue, &task);
		if (task.kind == TASK_END || task.kind == TASK_RETIRE)
			break;
		worker->read_ns = 0;
		/* The number of bytes that the task reads: a large one is lent a large buffer. */
		const uint64_t bytes = task.kind == TASK_FILE   ? task.file->size
				       : task.kind == TASK_PART ? run->options.part_bytes
								: 0;
		if (bytes > READER_OWN_BYTES)
			buffers_lend(&run->bodies.buffers, &worker->reader, bytes);
		liveness_sign(&run->liveness, 1);
		if (task.kind == TASK_FILE) {
			do_file(worker, task.file);
		} else if (task.kind == TASK_PART) {
			struct file *file = NULL;
			const enum step step =
				multipart_send(worker, task.parts, task.index, &file);
			if (file)
				go_on(worker, file, step);
		} else {
			check_blocks(worker, task.blocks);
		}
		liveness_sign(&run->liveness, -1);
		if (atomic_load(&run->refusals.n_refused))
			refusals_settle(worker, false);
		buffers_take_back(&run->bodies.buffers, &worker->reader);
		task.read_ns = worker->read_ns;
		queue_done(run->queue, &task);
	}
	if (task.kind == TASK_END) /* after TASK_RETIRE, other workers still exist */
		refusals_settle(worker, true);
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
	worker->reader = (struct reader){.abandon = run_ask_while_reading, .arg = run};
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
