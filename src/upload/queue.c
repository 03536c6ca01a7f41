#include "upload/queue.h"
#include "base/clock.h"
#include "upload/seats.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Marks read less than this ago need no second look, unless other uploaders were seen. */
#define FRESH_NS NS_PER_S

/* The rest of a block waits no longer for a claim: the request for it may hang. */
#define OPENING_NS (NS_PER_S / 2)

/* Uploaders that begin together have seen nothing of each other before so many blocks. */
#define BLOCKS_FIRST 8

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t room; /* for the scan */
	_Atomic uint64_t moved_bytes;
	struct {
		struct blocks blocks;
		size_t n_blocked;      /* files in blocks */
		struct blocks opening; /* the rest of a block, until one of its files is claimed */
		size_t n_opening;      /* files in these */
		struct turns turns;
		struct seats seats;         /* workers without a job */
		struct queue_window window; /* but for idle_ns */
		unsigned busy;              /* jobs handed out and not done */
		unsigned retiring;          /* workers that are to end */
		unsigned checking;          /* of them, blocks that are read again */
		bool flowing, complete, closed;
		bool has_company;      /* other uploaders were seen in these files */
		unsigned blocks_begun; /* so far, up to BLOCKS_FIRST */
		unsigned serial;
	} locked;
};

int queue_new(unsigned most, uint64_t part_bytes, struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->room, NULL);
	turns_init(&queue->locked.turns, most, part_bytes);
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	blocks_clear(&queue->locked.blocks);
	blocks_clear(&queue->locked.opening);
	turns_clear(&queue->locked.turns);
	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->mutex);
	free(queue);
}

/* Files to be taken some time, as `how` says; without memory for that, at the next chance. */
static void add_block(
	struct queue *queue, struct candidate *const *files, size_t n, const struct block *how)
{
	const bool added = !blocks_add(&queue->locked.blocks, files, n, how);
	queue->locked.serial++;
	for (size_t i = 0; i < n; i++) {
		files[i]->block = queue->locked.serial;
		files[i]->leads = false;
		if (!added)
			turns_add_file(&queue->locked.turns, files[i]);
	}
	if (added)
		queue->locked.n_blocked += n;
}

/* Where there may be other uploaders, one small file goes ahead, always the first one: a large one
 * might have to wait for its turn. Of several uploaders it is claimed by one. */
static void begin_block(struct queue *queue, struct candidate *const *files, size_t n)
{
	struct candidate *rest[BLOCK_FILES];
	size_t first = 0;
	while (first < n && files[first]->size > SMALL_BYTES_MAX)
		first++;
	const bool is_early = queue->locked.blocks_begun < BLOCKS_FIRST;
	queue->locked.blocks_begun += is_early;
	const bool has_first = (queue->locked.has_company || is_early) && n > 1 && first < n;
	for (size_t i = 0; has_first && i + 1 < n; i++)
		rest[i] = files[i < first ? i : i + 1];
	if (has_first && !blocks_add(&queue->locked.opening, rest, n - 1,
				 &(struct block){.not_before_ns = clock_boot_ns() + OPENING_NS})) {
		queue->locked.n_opening += n - 1;
		files[first]->leads = true;
		turns_add_first(&queue->locked.turns, files[first]);
		return;
	}
	for (size_t i = 0; i < n; i++)
		turns_add_file(&queue->locked.turns, files[i]);
}

/* What waits for the claim of one of its files, or NULL. */
static struct block *take_opening(struct queue *queue, unsigned serial)
{
	struct block *rest = blocks_remove(&queue->locked.opening, serial);
	queue->locked.n_opening -= rest ? rest->n : 0;
	return rest;
}

static void finish_opening(struct queue *queue, unsigned serial)
{
	struct block *rest = take_opening(queue, serial);
	for (size_t i = 0; rest && i < rest->n; i++)
		turns_add_file(&queue->locked.turns, rest->files[i]);
	if (rest)
		seats_call(&queue->locked.seats);
	free(rest);
}

static void finish_late_openings(struct queue *queue)
{
	const struct blocks *opening = &queue->locked.opening;
	const uint64_t now_ns = opening->n ? clock_boot_ns() : 0;
	for (size_t i = opening->n; i-- > 0;)
		if (opening->blocks[i]->not_before_ns <= now_ns)
			finish_opening(queue, opening->blocks[i]->files[0]->block);
}

/* Whether fewer small files are ready, or will be, than the workers take until another block is
 * read and one of its files is claimed. */
static bool wants_block(const struct queue *queue)
{
	const struct turns *turns = &queue->locked.turns;
	return turns->small.n + queue->locked.n_opening +
		       (size_t)queue->locked.checking * BLOCK_FILES <
	       BLOCK_FILES / 2 + turns->workers / 2;
}

/* Opens another block if need be, with large files or small ones. True if *ret is now a job to read
 * it again. */
static bool open_block(struct queue *queue, struct job *ret, uint64_t *ret_wait_ns)
{
	finish_late_openings(queue);
	while (wants_block(queue)) {
		struct block *block = blocks_take(&queue->locked.blocks, ret_wait_ns);
		if (!block)
			return false;
		queue->locked.n_blocked -= block->n;
		if (queue->locked.has_company || clock_boot_ns() - block->read_ns >= FRESH_NS) {
			queue->locked.checking++;
			*ret = (struct job){.kind = JOB_CHECK, .block = block};
			return true;
		}
		begin_block(queue, block->files, block->n);
		free(block);
	}
	return false;
}

static size_t files_held(const struct queue *queue)
{
	return queue->locked.n_blocked + queue->locked.n_opening +
	       turns_files(&queue->locked.turns);
}

static bool is_ended(const struct queue *queue)
{
	return queue->locked.closed || (queue->locked.complete && !files_held(queue) &&
					       !queue->locked.turns.parts && !queue->locked.busy);
}

bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns)
{
	pthread_mutex_lock(&queue->mutex);
	while (!queue->locked.closed && files_held(queue) + n > QUEUE_FILES) {
		queue->locked.flowing = true;
		seats_call(&queue->locked.seats);
		pthread_cond_wait(&queue->room, &queue->mutex);
	}
	const bool open = !queue->locked.closed;
	if (open) {
		add_block(queue, files, n, &(struct block){.read_ns = read_ns});
		if (queue->locked.flowing)
			seats_call(&queue->locked.seats);
	}
	pthread_mutex_unlock(&queue->mutex);
	return open;
}

void queue_flow(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = true;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_complete(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = queue->locked.complete = true;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

/* True if more large bodies may go at once than before. */
static bool look_at_line(struct queue *queue)
{
	struct turns *turns = &queue->locked.turns;
	return bulk_look(
		&turns->bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes), turns->under_way);
}

static bool has_place(const struct queue *queue)
{
	return queue->locked.busy < queue->locked.turns.workers;
}

/* Whether a worker that is woken finds a job, as far as it can be told without a look. */
static bool has_more(const struct queue *queue)
{
	return queue->locked.flowing && has_place(queue) &&
	       (turns_has(&queue->locked.turns) || (queue->locked.blocks.n && wants_block(queue)));
}

static bool retires(struct queue *queue, struct job *ret)
{
	if (!queue->locked.retiring)
		return false;
	queue->locked.retiring--;
	ret->kind = JOB_RETIRE;
	return true;
}

/* Each worker that goes to work calls the next one if there is more to do, so that no more are
 * woken than find a job. At the end each calls the next one, too. */
static void pass_on(struct queue *queue)
{
	if (is_ended(queue) || queue->locked.retiring || has_more(queue))
		seats_call(&queue->locked.seats);
	else
		seats_keep_watch(&queue->locked.seats);
}

void queue_take(struct queue *queue, struct job *ret)
{
	*ret = (struct job){.kind = JOB_END};
	pthread_mutex_lock(&queue->mutex);
	while (!is_ended(queue) && !retires(queue, ret)) {
		uint64_t wait_ns = NS_PER_S / 5;
		const bool taken =
			queue->locked.flowing && has_place(queue) &&
			(open_block(queue, ret, &wait_ns) || turns_take(&queue->locked.turns, ret));
		const bool has_more_room = look_at_line(queue);
		if (taken) {
			queue->locked.busy++;
			ret->begun_ns = clock_boot_ns();
			if (ret->kind == JOB_FILE && ret->file->leads)
				ret->leads = ret->file->block;
			pthread_cond_signal(&queue->room);
			break;
		}
		if (!has_more_room)
			seats_wait(&queue->locked.seats, &queue->mutex, wait_ns, has_place(queue));
	}
	pass_on(queue);
	pthread_mutex_unlock(&queue->mutex);
}

static void count(struct queue_window *window, const struct job *job)
{
	window->warm += job->is_first;
	const bool is_small = job->kind == JOB_FILE && !job->is_bulk && !job->opens;
	if (!is_small || job->is_first || job->begun_ns < window->began_ns)
		return;
	window->files++;
	window->files_ns += clock_boot_ns() - job->begun_ns;
	window->read_ns += job->read_ns;
}

void queue_done(struct queue *queue, const struct job *job)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.busy--;
	turns_done(&queue->locked.turns, job);
	count(&queue->locked.window, job);
	if (job->leads) /* in case it was not claimed */
		finish_opening(queue, job->leads);
	if (is_ended(queue))
		seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_set_level(struct queue *queue, unsigned level)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.turns.workers = level;
	if (has_more(queue))
		seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_retire(struct queue *queue, unsigned n)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.retiring += n;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_window(struct queue *queue, struct queue_window *ret)
{
	pthread_mutex_lock(&queue->mutex);
	const struct turns *turns = &queue->locked.turns;
	const bool has_bulk =
		turns->under_way || turns->parts || turns->whole.n || turns->split.n || turns->open;
	*ret = queue->locked.window;
	ret->idle_ns = seats_idle_ns(&queue->locked.seats, clock_boot_ns());
	ret->bulk = has_bulk ? turns->bulk.at_once : 0;
	pthread_mutex_unlock(&queue->mutex);
}

void queue_begin_window(struct queue *queue)
{
	const uint64_t now_ns = clock_boot_ns();
	pthread_mutex_lock(&queue->mutex);
	queue->locked.window =
		(struct queue_window){.began_ns = now_ns, .warm = queue->locked.window.warm};
	seats_begin_window(&queue->locked.seats, now_ns);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_moved(struct queue *queue, uint64_t bytes)
{
	atomic_fetch_add(&queue->moved_bytes, bytes);
}

void queue_cut(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	bulk_cut(&queue->locked.turns.bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes));
	pthread_mutex_unlock(&queue->mutex);
}

void queue_ready(struct queue *queue, struct candidate *const *files, size_t n)
{
	pthread_mutex_lock(&queue->mutex);
	begin_block(queue, files, n);
	queue->locked.checking--;
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns)
{
	if (!n)
		return;
	pthread_mutex_lock(&queue->mutex);
	add_block(queue, files, n, &(struct block){.not_before_ns = not_before_ns});
	seats_call_watcher(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_again(struct queue *queue, struct candidate *file, uint64_t not_before_ns)
{
	pthread_mutex_lock(&queue->mutex);
	add_block(queue, &file, 1, &(struct block){.not_before_ns = not_before_ns, .last = true});
	seats_call_watcher(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_shared(struct queue *queue, struct candidate *const *files, size_t n)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.has_company = true;
	if (n)
		add_block(queue, files, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_claimed(struct queue *queue, const struct candidate *file)
{
	if (!file->leads)
		return;
	pthread_mutex_lock(&queue->mutex);
	finish_opening(queue, file->block);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_contested(struct queue *queue, unsigned serial)
{
	struct candidate *back[BLOCK_FILES];
	pthread_mutex_lock(&queue->mutex);
	queue->locked.has_company = true;
	size_t n = turns_remove_block(&queue->locked.turns, serial, back);
	struct block *rest = take_opening(queue, serial);
	for (size_t i = 0; rest && i < rest->n && n < BLOCK_FILES; i++)
		back[n++] = rest->files[i];
	free(rest);
	if (n)
		add_block(queue, back, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	pthread_mutex_lock(&queue->mutex);
	turns_open(&queue->locked.turns, parts, n);
	seats_call(&queue->locked.seats);
	pthread_mutex_unlock(&queue->mutex);
}

bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up)
{
	pthread_mutex_lock(&queue->mutex);
	parts->under_way--;
	if (give_up)
		turns_give_up(&queue->locked.turns, parts);
	bool last = parts->next_index == parts->end_index && !parts->under_way;
	if (last)
		turns_close(&queue->locked.turns);
	pthread_mutex_unlock(&queue->mutex);
	return last;
}

void queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.closed = true;
	seats_call(&queue->locked.seats);
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->mutex);
}

struct parts *queue_leftover(struct queue *queue)
{
	struct parts *parts = queue->locked.turns.parts;
	if (parts)
		queue->locked.turns.parts = parts->next;
	return parts;
}

int64_t queue_oldest_ns(const struct queue *queue)
{
	const int64_t blocked = blocks_oldest_ns(&queue->locked.blocks),
		      opening = blocks_oldest_ns(&queue->locked.opening),
		      ready = turns_oldest_ns(&queue->locked.turns);
	const int64_t waiting = blocked < opening ? blocked : opening;
	return waiting < ready ? waiting : ready;
}
