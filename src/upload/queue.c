#include "upload/queue.h"
#include "base/clock.h"
#include "base/thread.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Marks read less than this ago need no second look. */
#define FRESH_NS NS_PER_S

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* for workers */
	pthread_cond_t room;    /* for the scan */
	struct {
		struct blocks blocks;
		size_t n_files; /* in blocks and ready */
		struct candidate *ready, **ready_end;
		size_t n_ready;
		struct parts *parts;
		size_t busy;   /* jobs handed out and not done */
		bool checking; /* one worker is reading a block again */
		bool flowing, complete, closed;
		unsigned serial;
	} locked;
};

int queue_new(struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->room, NULL);
	thread_cond_init(&queue->changed);
	queue->locked.ready_end = &queue->locked.ready;
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	blocks_clear(&queue->locked.blocks);
	for (struct candidate *file = queue->locked.ready, *next; file; file = next) {
		next = file->next;
		free(file);
	}
	pthread_cond_destroy(&queue->changed);
	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->mutex);
	free(queue);
}

static void add_ready(struct queue *queue, struct candidate *file)
{
	file->next = NULL;
	*queue->locked.ready_end = file;
	queue->locked.ready_end = &file->next;
	queue->locked.n_ready++;
	queue->locked.n_files++;
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
			add_ready(queue, files[i]);
	}
	if (added)
		queue->locked.n_files += n;
}

/* Few are ready: opens another block. True if *ret is now a job to read it again. */
static bool open_block(struct queue *queue, struct job *ret, uint64_t *ret_wait_ns)
{
	while (!queue->locked.checking && queue->locked.n_ready < BLOCK_FILES / 2) {
		struct block *block = blocks_take(&queue->locked.blocks, ret_wait_ns);
		if (!block)
			return false;
		queue->locked.n_files -= block->n;
		if (clock_boot_ns() - block->read_ns >= FRESH_NS) {
			queue->locked.checking = true;
			*ret = (struct job){.kind = JOB_CHECK, .block = block};
			return true;
		}
		for (size_t i = 0; i < block->n; i++)
			add_ready(queue, block->files[i]);
		free(block);
	}
	return false;
}

static bool take_part(struct queue *queue, struct job *ret)
{
	struct parts *parts = queue->locked.parts;
	if (!parts)
		return false;
	*ret = (struct job){.kind = JOB_PART, .parts = parts, .index = parts->next_index++};
	parts->under_way++;
	if (parts->next_index == parts->end_index)
		queue->locked.parts = parts->next;
	return true;
}

static bool take_file(struct queue *queue, struct job *ret)
{
	struct candidate *file = queue->locked.ready;
	if (!file)
		return false;
	queue->locked.ready = file->next;
	if (!file->next)
		queue->locked.ready_end = &queue->locked.ready;
	queue->locked.n_ready--;
	queue->locked.n_files--;
	*ret = (struct job){.kind = JOB_FILE, .file = file};
	return true;
}

static bool is_ended(const struct queue *queue)
{
	return queue->locked.closed || (queue->locked.complete && !queue->locked.n_files &&
					       !queue->locked.parts && !queue->locked.busy);
}

bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns)
{
	pthread_mutex_lock(&queue->mutex);
	while (!queue->locked.closed && queue->locked.n_files + n > QUEUE_FILES) {
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

void queue_take(struct queue *queue, struct job *ret)
{
	*ret = (struct job){.kind = JOB_END};
	pthread_mutex_lock(&queue->mutex);
	while (!is_ended(queue)) {
		uint64_t wait_ns = NS_PER_S / 5;
		if (queue->locked.flowing &&
			(take_part(queue, ret) || open_block(queue, ret, &wait_ns) ||
				take_file(queue, ret))) {
			queue->locked.busy++;
			pthread_cond_signal(&queue->room);
			break;
		}
		thread_cond_wait(&queue->changed, &queue->mutex, wait_ns);
	}
	pthread_mutex_unlock(&queue->mutex);
}

void queue_done(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->locked.busy--;
	if (is_ended(queue))
		pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void queue_ready(struct queue *queue, struct candidate *const *files, size_t n)
{
	pthread_mutex_lock(&queue->mutex);
	for (size_t i = 0; i < n; i++)
		add_ready(queue, files[i]);
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
	size_t n = 0;
	pthread_mutex_lock(&queue->mutex);
	struct candidate **at = &queue->locked.ready;
	while (*at && n < BLOCK_FILES) {
		struct candidate *file = *at;
		if (file->block != serial) {
			at = &file->next;
			continue;
		}
		*at = file->next;
		back[n++] = file;
	}
	for (at = &queue->locked.ready; *at; at = &(*at)->next)
		;
	queue->locked.ready_end = at;
	queue->locked.n_ready -= n;
	queue->locked.n_files -= n;
	if (n)
		add_block(queue, back, n, &(struct block){.last = true});
	pthread_mutex_unlock(&queue->mutex);
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	*parts = (struct parts){.end_index = n};
	pthread_mutex_lock(&queue->mutex);
	struct parts **at = &queue->locked.parts;
	while (*at) /* the oldest first */
		at = &(*at)->next;
	*at = parts;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up)
{
	pthread_mutex_lock(&queue->mutex);
	parts->under_way--;
	if (give_up && parts->next_index < parts->end_index) {
		struct parts **at = &queue->locked.parts;
		while (*at != parts)
			at = &(*at)->next;
		*at = parts->next;
		parts->next_index = parts->end_index;
	}
	bool last = parts->next_index == parts->end_index && !parts->under_way;
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
	struct parts *parts = queue->locked.parts;
	if (parts)
		queue->locked.parts = parts->next;
	return parts;
}
