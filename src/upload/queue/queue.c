/* The queue of a run. The scan's thread (feed.c) fills it. Workers take tasks from it, and report
 * the outcomes. The main thread (push_loop.c) sets the number of workers. The queue only decides
 * which task is next: it sends no request, and opens no file. */
#include "upload/queue/queue.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* The rest of a block waits no longer than this for the claim of the file that opens it, since the
 * request for the claim may hang. */
#define OPENING_MAX_NS (2 * NS_PER_S)

/* the time after which the marks of a block are read again, if another uploader was at work in
 * it */
#define CONTESTED_NS NS_PER_S

/* A file that another uploader holds for less than this is not reported. */
#define HELD_FOR_A_MOMENT_NS (5 * NS_PER_S)

/* Blocks are begun in the order of their due times. A block of the scan is due at once. Its due
 * time is set to a random moment of the past minute, so that these blocks are begun in random
 * order. With ranks, its due time is 0, so that ranks alone order them.
 *
 * A block that a worker gave back is due at the end of its pause. So it comes after the blocks that
 * the scan has added by then and, without ranks, before those that the scan adds more than a minute
 * later. */
#define SPREAD_NS (60 * NS_PER_S)

/* A worker that waits for a task. The struct is on its stack. */
struct idle_worker {
	struct idle_worker *next;
	uv_cond_t woken;
	bool was_woken; /* and so is not in the list any more */
};

struct queue {
	uv_mutex_t mutex;
	uv_cond_t room; /* the scan waits here for room */
	struct {
		size_t n_files; /* files in the queue, without those that a worker has */
		/* The blocks that wait to be begun, in the order of their due times. They form a
		 * ring, in which this member only marks the end.
		 *
		 * The scan's blocks are due at once, in an order that is random for each process,
		 * so that many uploaders over one tree do not compete for the same files. */
		struct block waiting;
		/* The files of each block that wait until its first one is claimed. */
		struct block *rests;
		size_t n_rests;     /* files in all `rests` */
		unsigned checking;  /* workers that are reading marks again */
		unsigned serial;    /* serial number of the last block that was added */
		struct turns turns; /* the tasks that may be begun */
		struct idle_worker
			*idle;        /* workers without a task; the last one that came is first */
		unsigned busy;        /* workers that have a task */
		unsigned retiring;    /* workers that are to end */
		bool has_seen_others; /* other uploaders were seen at work in the files of this run
				       */
		bool spreads;         /* queue_set_spreading() */
		enum queue_phase phase;
		/* The sums; queue_read_figures() fills in the rest. */
		struct queue_figures figures;
	} locked;
};

void candidate_note_held(struct candidate *candidate)
{
	if (!candidate->held_since_ns)
		candidate->held_since_ns = clock_boot_ns();
}

bool candidate_held_report_is_due(const struct candidate *candidate)
{
	return !candidate->held_was_reported &&
	       clock_boot_ns() - candidate->held_since_ns >= HELD_FOR_A_MOMENT_NS;
}

static bool is_before(const struct block *a, const struct block *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->rank < b->rank;
}

/* Inserts the block by its due time and rank. The search begins at the end, since most blocks that
 * come back are due last. Here and below, `end` is the member of the ring that only marks its end:
 * the first block is after it, and the last one before it. */
static void blocks_add(struct block *end, struct block *block)
{
	struct block *next = end;
	while (next->before != end && is_before(block, next->before))
		next = next->before;
	block->next = next;
	block->before = next->before;
	block->before->next = block;
	next->before = block;
}

static bool blocks_have_due(const struct block *end, uint64_t now_ns)
{
	return end->next != end && end->next->due_ns <= now_ns;
}

/* Takes out the block that has been due longest, which the caller frees. Returns NULL if none is
 * due. */
static struct block *blocks_take(struct block *end, uint64_t now_ns)
{
	struct block *first = end->next;
	if (!blocks_have_due(end, now_ns))
		return NULL;
	end->next = first->next;
	first->next->before = end;
	return first;
}

int queue_new(unsigned max_tasks, uint64_t part_bytes, enum queue_order order, struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	uv_mutex_init(&queue->mutex);
	uv_cond_init(&queue->room);
	queue->locked.waiting.next = queue->locked.waiting.before = &queue->locked.waiting;
	turns_init(&queue->locked.turns, max_tasks, part_bytes);
	queue->locked.turns.is_ranked = order == QUEUE_BY_RANK;
	*ret = queue;
	return 0;
}

/* Whether no worker will get a task any more. */
static bool is_ended_locked(const struct queue *queue)
{
	if (queue->locked.phase == QUEUE_CLOSED)
		return true;
	if (queue->locked.phase != QUEUE_COMPLETE) /* the scan may add files */
		return false;
	/* The files of a task that is under way may come back. */
	return !queue->locked.n_files && !queue->locked.turns.parts && !queue->locked.busy;
}

/* Wakes the worker that came to wait last, if any waits. Its connections are the freshest, and
 * workers that are not needed keep waiting. */
static void wake_worker_locked(struct queue *queue)
{
	struct idle_worker *worker = queue->locked.idle;
	if (!worker)
		return;
	queue->locked.idle = worker->next;
	worker->was_woken = true;
	uv_cond_signal(&worker->woken);
}

/* Releases these files, which take their turns after those that were released before. */
static void release_files_locked(struct queue *queue, struct candidate *const *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		turns_add(&queue->locked.turns, files[i]);
}

/* Adds these files as a block with the due time, rank and came_back of *like. The queue owns the
 * files then. If there is no memory for a block, they are released at once. */
static void add_block_locked(
	struct queue *queue, struct candidate *const *files, size_t n, const struct block *like)
{
	struct block *block = malloc(sizeof *block);
	queue->locked.serial++;
	queue->locked.n_files += n;
	for (size_t i = 0; i < n; i++) {
		files[i]->block_serial = queue->locked.serial;
		files[i]->opens_block = files[i]->needs_mark_read = false;
	}
	if (!block) {
		release_files_locked(queue, files, n);
		return;
	}
	*block = *like;
	block->n = n;
	memcpy(block->files, files, n * sizeof(struct candidate *));
	blocks_add(&queue->locked.waiting, block);
}

/* Adds files that a worker has given back, if there are any, as a block. */
static void put_back_locked(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t due_ns)
{
	if (n)
		add_block_locked(
			queue, files, n, &(struct block){.due_ns = due_ns, .came_back = true});
}

/* Adds files as a block that is due, and whose place among such blocks is random. With ranks, all
 * blocks are due since 0, so that their ranks alone order them. */
static void add_due_locked(struct queue *queue, struct candidate *const *files, size_t n)
{
	const uint64_t now_ns = clock_boot_ns();
	struct block block = {
		.due_ns = now_ns - random_below(now_ns < SPREAD_NS ? now_ns : SPREAD_NS)};
	if (queue->locked.turns.is_ranked)
		block = (struct block){.rank = candidate_rank(*files)};
	add_block_locked(queue, files, n, &block);
}

/* Takes the file that is to open the block out of it: the first small one. Returns NULL if all are
 * large. A large file does not open a block, since it might have to wait for its turn. */
static struct candidate *take_opener(struct block *block)
{
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *file = block->files[i];
		if (file->size > S3ONCE_SMALL_BYTES_MAX)
			continue;
		block->n--;
		memmove(&block->files[i], &block->files[i + 1],
			(block->n - i) * sizeof(struct candidate *));
		return file;
	}
	return NULL;
}

/* Opens a block: releases its first small file, and lets the rest wait in `rests` until that file
 * is claimed. Takes the block. */
static void open_block_locked(struct queue *queue, struct block *block)
{
	struct candidate *opener = take_opener(block);
	const bool has_seen_others = queue->locked.has_seen_others;
	if (opener)
		opener->needs_mark_read = has_seen_others;
	/* The turn of the opener shows whether others are at work in the block, so the other small
	 * files need no read of their marks. */
	for (size_t i = 0; i < block->n; i++)
		block->files[i]->needs_mark_read =
			has_seen_others && block->files[i]->size > S3ONCE_SMALL_BYTES_MAX;
	if (!opener) { /* all are large */
		release_files_locked(queue, block->files, block->n);
		free(block);
		return;
	}
	if (!block->n) { /* no rest */
		release_files_locked(queue, &opener, 1);
		free(block);
		return;
	}
	block->due_ns = clock_boot_ns() + OPENING_MAX_NS;
	block->next = queue->locked.rests;
	queue->locked.rests = block;
	queue->locked.n_rests += block->n;
	opener->opens_block = true;
	/* The rest waits for this file, so it is begun before all other small files. */
	turns_add_first(&queue->locked.turns, opener);
}

/* Takes out the rest of the block with this serial number: a struct block with those of its files
 * that wait until it is open. The caller frees it. Returns NULL if there is none. */
static struct block *take_rest_locked(struct queue *queue, unsigned serial)
{
	struct block **at = &queue->locked.rests;
	/* All files of a rest have the same serial number, so its first file is enough. */
	while (*at && (*at)->files[0]->block_serial != serial)
		at = &(*at)->next;
	struct block *rest = *at;
	if (rest) {
		*at = rest->next;
		queue->locked.n_rests -= rest->n;
	}
	return rest;
}

/* Releases the files that wait until the block with this serial number is open, if there are any.
 */
static void release_rest_locked(struct queue *queue, unsigned serial)
{
	struct block *rest = take_rest_locked(queue, serial);
	if (!rest)
		return;
	release_files_locked(queue, rest->files, rest->n);
	free(rest);
	wake_worker_locked(queue);
}

/* Whether a block is due and has to be begun now. Reading its marks and claiming one of its files
 * takes a while, so a block is begun as soon as only few small files are ready or will soon be. Few
 * are less than half a block plus half the number of workers. While the queue spreads, a block is
 * begun unless the next small file opens one. */
static bool must_begin_block_locked(const struct queue *queue, uint64_t now_ns)
{
	const struct turns *turns = &queue->locked.turns;
	const struct candidate *next = turns->lines[LINE_SMALL].first;
	if (queue->locked.spreads && !turns->is_ranked)
		return !(next && next->opens_block) &&
		       blocks_have_due(&queue->locked.waiting, now_ns);
	const size_t ready_soon =
		queue->locked.n_rests + (size_t)queue->locked.checking * BLOCK_FILES;
	const size_t ready = turns->lines[LINE_SMALL].n + ready_soon;
	const bool has_few = ready < BLOCK_FILES / 2 + turns->workers / 2;
	return has_few && blocks_have_due(&queue->locked.waiting, now_ns);
}

/* Whether there is a task, and a worker may have it now. Also true if the queue is closed, which
 * does no harm: a worker that is woken then ends. */
static bool has_task_locked(const struct queue *queue)
{
	return queue->locked.phase >= QUEUE_FLOWS &&
	       queue->locked.busy < queue->locked.turns.workers &&
	       (turns_has(&queue->locked.turns) || must_begin_block_locked(queue, clock_boot_ns()));
}

/* Takes out all other blocks that came back and are due, and links them after this one. Reading the
 * marks of many files together costs less than reading those of each block. */
static void take_returned_locked(struct queue *queue, struct block *block, uint64_t now_ns)
{
	struct block *end = &queue->locked.waiting;
	block->next = NULL;
	for (struct block *next, *each = end->next; each != end && each->due_ns <= now_ns;
		each = next) {
		next = each->next;
		if (!each->came_back)
			continue;
		each->before->next = next;
		next->before = each->before;
		each->next = block->next;
		block->next = each;
	}
}

/* Notes that a worker has this task. The scan may have room for more files now. */
static void note_taken_locked(struct queue *queue, struct task *task)
{
	if (task->kind == TASK_FILE) {
		task->block_serial = task->file->opens_block ? task->file->block_serial : 0;
		queue->locked.n_files--;
	}
	uv_cond_signal(&queue->room);
}

/* Opens blocks that are due, while few small files are ready. Stops at one that came back, and
 * returns it: its marks have to be read first. Otherwise returns NULL. */
static struct block *open_due_blocks_locked(struct queue *queue, uint64_t now_ns)
{
	while (must_begin_block_locked(queue, now_ns)) {
		struct block *block = blocks_take(&queue->locked.waiting, now_ns);
		if (block->came_back)
			return block;
		open_block_locked(queue, block);
	}
	return NULL;
}

/* Takes the next task for a worker. A block that came back becomes the task itself, so that the
 * worker reads its marks again. Otherwise the task is a file or a part. Returns false if there is
 * no task. */
static bool take_task_locked(struct queue *queue, struct task *ret)
{
	const uint64_t now_ns = clock_boot_ns();
	if (queue->locked.phase < QUEUE_FLOWS || queue->locked.busy >= queue->locked.turns.workers)
		return false;
	struct block *to_check = open_due_blocks_locked(queue, now_ns);
	if (to_check) {
		take_returned_locked(queue, to_check, now_ns);
		*ret = (struct task){.kind = TASK_CHECK, .blocks = to_check};
		queue->locked.checking++;
		for (const struct block *block = to_check; block; block = block->next)
			queue->locked.n_files -= block->n;
	} else if (!turns_take(&queue->locked.turns, ret)) {
		return false;
	}
	note_taken_locked(queue, ret);
	queue->locked.busy++;
	return true;
}

struct candidate *queue_pop_file(struct queue *queue)
{
	/* The order of the files does not matter any more, and adding each by its rank would be
	 * slow. */
	queue->locked.turns.is_ranked = false;
	for (struct block *block; (block = blocks_take(&queue->locked.waiting, UINT64_MAX));) {
		release_files_locked(queue, block->files, block->n);
		free(block);
	}
	while (queue->locked.rests) /* release_rest_locked() removes the first of the rests */
		release_rest_locked(queue, queue->locked.rests->files[0]->block_serial);
	return turns_pop_any(&queue->locked.turns);
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	for (struct candidate *file; (file = queue_pop_file(queue));)
		free(file);
	uv_cond_destroy(&queue->room);
	uv_mutex_destroy(&queue->mutex);
	free(queue);
}

/* Enters this phase, unless the queue is in a later one. Wakes one worker, which wakes the next one
 * if there is more to do, or if all workers have to end (queue_take()). */
static void enter_phase_locked(struct queue *queue, enum queue_phase phase)
{
	if (queue->locked.phase < phase)
		queue->locked.phase = phase;
	wake_worker_locked(queue);
}

/* Whether n files fit into the queue. If not, workers begin now, since they alone make room. */
static bool has_room_locked(struct queue *queue, size_t n)
{
	if (queue->locked.n_files + n <= QUEUE_FILES)
		return true;
	enter_phase_locked(queue, QUEUE_FLOWS);
	return false;
}

bool queue_add(struct queue *queue, struct candidate *const *files, size_t n)
{
	uv_mutex_lock(&queue->mutex);
	wait_until(queue->locked.phase == QUEUE_CLOSED || has_room_locked(queue, n),
		.cond = &queue->room, .mutex = &queue->mutex);
	const bool is_open = queue->locked.phase != QUEUE_CLOSED;
	if (is_open) {
		add_due_locked(queue, files, n);
		if (queue->locked.phase >= QUEUE_FLOWS)
			wake_worker_locked(queue);
	}
	uv_mutex_unlock(&queue->mutex);
	return is_open;
}

void queue_enter_phase(struct queue *queue, enum queue_phase phase)
{
	uv_mutex_lock(&queue->mutex);
	enter_phase_locked(queue, phase);
	uv_cond_broadcast(&queue->room);
	uv_mutex_unlock(&queue->mutex);
}

void queue_set_level(struct queue *queue, unsigned workers, unsigned large)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.turns.workers = workers;
	queue->locked.turns.max_large = large;
	if (has_task_locked(queue))
		wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

void queue_retire_workers(struct queue *queue, unsigned n)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.retiring += n;
	wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

void queue_release_due(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	/* A block that was not opened within OPENING_MAX_NS is waited for no longer: its files are
	 * released. release_rest_locked() frees `rest`. */
	const uint64_t now_ns = clock_boot_ns();
	for (struct block *next, *rest = queue->locked.rests; rest; rest = next) {
		next = rest->next;
		if (rest->due_ns <= now_ns)
			release_rest_locked(queue, rest->files[0]->block_serial);
	}
	if (has_task_locked(queue))
		wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

void queue_read_figures(struct queue *queue, struct queue_figures *ret)
{
	uv_mutex_lock(&queue->mutex);
	*ret = queue->locked.figures;
	ret->large = queue->locked.turns.large;
	ret->has_large = turns_has_large(&queue->locked.turns);
	ret->is_idle = !queue->locked.busy;
	uv_mutex_unlock(&queue->mutex);
}

/* A worker that gets a task wakes the next worker if there is more to do, so that no worker wakes
 * in vain. A worker that ends wakes the next one as well if that one has to end. */
void queue_take(struct queue *queue, struct task *ret)
{
	struct idle_worker self;
	*ret = (struct task){.kind = TASK_END};
	uv_cond_init(&self.woken);
	uv_mutex_lock(&queue->mutex);
	while (!is_ended_locked(queue) && !queue->locked.retiring &&
		!take_task_locked(queue, ret)) {
		self.next = queue->locked.idle;
		self.was_woken = false;
		queue->locked.idle = &self;
		wait_until(self.was_woken, .cond = &self.woken, .mutex = &queue->mutex);
	}
	/* If there is no task, and the queue has not ended, queue_retire_workers() wants workers to
	 * end. */
	if (ret->kind == TASK_END && !is_ended_locked(queue)) {
		queue->locked.retiring--;
		ret->kind = TASK_RETIRE;
	}
	if (is_ended_locked(queue) || queue->locked.retiring || has_task_locked(queue))
		wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
	uv_cond_destroy(&self.woken);
}

/* Whether the next task is a small file that needs no read of its mark, and this worker would get
 * it anyway once it has done its present task. */
static bool may_take_ahead_locked(const struct queue *queue)
{
	const struct candidate *next = turns_next_small(&queue->locked.turns);
	if (!next || next->mark_state != MARK_ABSENT || next->needs_mark_read)
		return false;
	/* Workers, of which this may be one, are to end or to wait. */
	const bool may_get_none = queue->locked.phase == QUEUE_CLOSED || queue->locked.retiring ||
				  queue->locked.busy > queue->locked.turns.workers;
	if (may_get_none)
		return false;
	/* The worker would open a block first. */
	return !must_begin_block_locked(queue, clock_boot_ns());
}

bool queue_take_ahead(struct queue *queue, struct task *ret)
{
	uv_mutex_lock(&queue->mutex);
	const bool takes = may_take_ahead_locked(queue);
	if (takes) {
		turns_take(&queue->locked.turns, ret);
		note_taken_locked(queue, ret);
	}
	uv_mutex_unlock(&queue->mutex);
	return takes;
}

void queue_done(struct queue *queue, const struct task *task)
{
	struct queue_figures *figures = &queue->locked.figures;
	const bool is_small = task->kind == TASK_FILE && !task->is_large && !task->begins_upload;
	uv_mutex_lock(&queue->mutex);
	queue->locked.busy -= !task->has_follower; /* with a follower, the worker stays busy */
	queue->locked.checking -= task->kind == TASK_CHECK;
	turns_done(&queue->locked.turns, task);
	if (is_small) {
		figures->files++;
		figures->read_ns += task->read_ns;
	}
	if (task->block_serial) /* the rest of the block still waits if the file was not claimed */
		release_rest_locked(queue, task->block_serial);
	if (is_ended_locked(queue))
		wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

void queue_put_back_checked(struct queue *queue, struct candidate *const *files, size_t n)
{
	uv_mutex_lock(&queue->mutex);
	if (n)
		add_due_locked(queue, files, n);
	wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

/* queue_put_back_later() and queue_put_back_block() wake no worker. The worker that calls one of
 * them will ask for a task itself, and queue_release_due() wakes one when a block becomes due. */
void queue_put_back_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns)
{
	uv_mutex_lock(&queue->mutex);
	put_back_locked(queue, files, n, not_before_ns);
	uv_mutex_unlock(&queue->mutex);
}

void queue_release_rest(struct queue *queue, const struct candidate *file)
{
	uv_mutex_lock(&queue->mutex);
	release_rest_locked(queue, file->block_serial);
	uv_mutex_unlock(&queue->mutex);
}

void queue_put_back_block(struct queue *queue, unsigned serial)
{
	struct candidate *back[BLOCK_FILES];
	const uint64_t now_ns = clock_boot_ns();
	uv_mutex_lock(&queue->mutex);
	queue->locked.has_seen_others = true;
	size_t n = turns_remove_block(&queue->locked.turns, serial, back);
	struct block *rest = take_rest_locked(queue, serial);
	for (size_t i = 0; rest && i < rest->n && n < BLOCK_FILES; i++)
		back[n++] = rest->files[i];
	free(rest);
	queue->locked.n_files -= n;
	for (size_t i = 0; i < n; i++)
		back[i]->contested_ns = now_ns;
	put_back_locked(queue, back, n, now_ns + CONTESTED_NS);
	uv_mutex_unlock(&queue->mutex);
}

void queue_set_spreading(struct queue *queue, bool spreads)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.spreads = spreads;
	uv_mutex_unlock(&queue->mutex);
}

bool queue_has_due_block(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	const bool has = blocks_have_due(&queue->locked.waiting, clock_boot_ns());
	uv_mutex_unlock(&queue->mutex);
	return has;
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	uv_mutex_lock(&queue->mutex);
	turns_open_parts(&queue->locked.turns, parts, n);
	wake_worker_locked(queue);
	uv_mutex_unlock(&queue->mutex);
}

bool queue_end_part(struct queue *queue, struct parts *parts, enum part_result result)
{
	uv_mutex_lock(&queue->mutex);
	parts->under_way--;
	if (result == PART_FAILED)
		turns_drop_parts(&queue->locked.turns, parts);
	const bool upload_ended = parts->next_index == parts->end_index && !parts->under_way;
	if (upload_ended)
		queue->locked.turns.uploads_open--;
	uv_mutex_unlock(&queue->mutex);
	return upload_ended;
}

struct parts *queue_pop_upload(struct queue *queue)
{
	/* No worker is left that could change the list, so the mutex is not needed. */
	struct parts *parts = queue->locked.turns.parts;
	if (parts)
		queue->locked.turns.parts = parts->next;
	return parts;
}
