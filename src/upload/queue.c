#include "upload/queue.h"
#include "base/clock.h"
#include "base/thread.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Marks read less than this ago need no second look. */
#define FRESH_NS NS_PER_S

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* for workers */
	pthread_cond_t room;    /* for the scan */
	_Atomic uint64_t moved_bytes;
	struct {
		struct blocks blocks;
		size_t n_blocked; /* files in blocks */
		struct turns turns;
		size_t busy;   /* jobs handed out and not done */
		bool checking; /* one worker is reading a block again */
		bool flowing, complete, closed;
		unsigned serial;
	} locked;
};

int queue_new(unsigned workers, uint64_t part_bytes, struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->room, NULL);
	thread_cond_init(&queue->changed);
	turns_init(&queue->locked.turns, workers, part_bytes);
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	blocks_clear(&queue->locked.blocks);
	turns_clear(&queue->locked.turns);
	pthread_cond_destroy(&queue->changed);
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
		if (!added)
			turns_add_file(&queue->locked.turns, files[i]);
	}
	if (added)
		queue->locked.n_blocked += n;
}

/* Few small files are ready: opens another block, large ones or not. True if *ret is now a job to
 * read it again. */
static bool open_block(struct queue *queue, struct job *ret, uint64_t *ret_wait_ns)
{
	while (!queue->locked.checking && queue->locked.turns.small.n < BLOCK_FILES / 2) {
		struct block *block = blocks_take(&queue->locked.blocks, ret_wait_ns);
		if (!block)
			return false;
		queue->locked.n_blocked -= block->n;
		if (clock_boot_ns() - block->read_ns >= FRESH_NS) {
			queue->locked.checking = true;
			*ret = (struct job){.kind = JOB_CHECK, .block = block};
			return true;
		}
		for (size_t i = 0; i < block->n; i++)
			turns_add_file(&queue->locked.turns, block->files[i]);
		free(block);
	}
	return false;
}

static size_t files_held(const struct queue *queue)
{
	return queue->locked.n_blocked + turns_files(&queue->locked.turns);
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
		pthread_cond_broadcast(&queue->changed);
		pthread_cond_wait(&queue->room, &queue->mutex);
	}
	const bool open = !queue->locked.closed;
	if (open) {
		add_block(queue, files, n, &(struct block){.read_ns = read_ns});
		if (queue->locked.flowing)
			pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->mutex);
	return open;
}

void queue_flow(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_complete(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.flowing = queue->locked.complete = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

/* True if more large bodies may go at once than before: then another worker is wanted. */
static bool look_at_line(struct queue *queue)
{
	struct turns *turns = &queue->locked.turns;
	return bulk_look(
		&turns->bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes), turns->under_way);
}

void queue_take(struct queue *queue, struct job *ret)
{
	*ret = (struct job){.kind = JOB_END};
	pthread_mutex_lock(&queue->mutex);
	while (!is_ended(queue)) {
		uint64_t wait_ns = NS_PER_S / 5;
		const bool taken =
			queue->locked.flowing &&
			(open_block(queue, ret, &wait_ns) || turns_take(&queue->locked.turns, ret));
		const bool has_more_room = look_at_line(queue);
		if (has_more_room)
			pthread_cond_broadcast(&queue->changed);
		if (taken) {
			queue->locked.busy++;
			pthread_cond_signal(&queue->room);
			break;
		}
		if (!has_more_room)
			thread_cond_wait(&queue->changed, &queue->mutex, wait_ns);
	}
	pthread_mutex_unlock(&queue->mutex);
}

void queue_done(struct queue *queue, const struct job *job)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.busy--;
	turns_done(&queue->locked.turns, job);
	if (is_ended(queue))
		pthread_cond_broadcast(&queue->changed);
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
	for (size_t i = 0; i < n; i++)
		turns_add_file(&queue->locked.turns, files[i]);
	queue->locked.checking = false;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns)
{
	if (!n)
		return;
	pthread_mutex_lock(&queue->mutex);
	add_block(queue, files, n, &(struct block){.not_before_ns = not_before_ns});
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_again(struct queue *queue, struct candidate *file, uint64_t not_before_ns)
{
	pthread_mutex_lock(&queue->mutex);
	add_block(queue, &file, 1, &(struct block){.not_before_ns = not_before_ns, .last = true});
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_shared(struct queue *queue, struct candidate *const *files, size_t n)
{
	if (!n)
		return;
	pthread_mutex_lock(&queue->mutex);
	add_block(queue, files, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_contested(struct queue *queue, unsigned serial)
{
	struct candidate *back[BLOCK_FILES];
	pthread_mutex_lock(&queue->mutex);
	const size_t n = turns_remove_block(&queue->locked.turns, serial, back);
	if (n)
		add_block(queue, back, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	pthread_mutex_lock(&queue->mutex);
	turns_open(&queue->locked.turns, parts, n);
	pthread_cond_broadcast(&queue->changed);
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
	pthread_cond_broadcast(&queue->changed);
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
