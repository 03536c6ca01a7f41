#include "base/clock.h"
#include "base/wait_until.h"
#include "upload/queue/queue_struct.h"
#include <errno.h>
#include <stdlib.h>

int queue_new(unsigned most, uint64_t part_bytes, struct queue **ret)
{
	struct queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	uv_mutex_init(&queue->mutex);
	uv_cond_init(&queue->room);
	turns_init(&queue->locked.turns, most, part_bytes);
	openings_init(&queue->locked.openings, &queue->locked.turns);
	*ret = queue;
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	openings_clear(&queue->locked.openings);
	turns_clear(&queue->locked.turns);
	uv_cond_destroy(&queue->room);
	uv_mutex_destroy(&queue->mutex);
	free(queue);
}

static size_t files_held(const struct queue *queue)
{
	return openings_files(&queue->locked.openings) + turns_files(&queue->locked.turns);
}

static bool is_ended(const struct queue *queue)
{
	return queue->locked.closed || (queue->locked.complete && !files_held(queue) &&
					       !queue->locked.turns.parts && !queue->locked.busy);
}

/* Where there is none, workers begin to make some. */
static bool has_room(struct queue *queue, size_t n)
{
	if (files_held(queue) + n <= QUEUE_FILES)
		return true;
	queue->locked.flowing = true;
	seats_call(&queue->locked.seats);
	return false;
}

bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns)
{
	uv_mutex_lock(&queue->mutex);
	wait_until(queue->locked.closed || has_room(queue, n), .told = &queue->room,
		.mutex = &queue->mutex);
	const bool open = !queue->locked.closed;
	if (open) {
		openings_add(
			&queue->locked.openings, files, n, &(struct block){.read_ns = read_ns});
		if (queue->locked.flowing)
			seats_call(&queue->locked.seats);
	}
	uv_mutex_unlock(&queue->mutex);
	return open;
}

void queue_flow(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.flowing = true;
	seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_complete(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.flowing = queue->locked.complete = true;
	seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

static bool retires(struct queue *queue, struct task *ret)
{
	if (!queue->locked.retiring)
		return false;
	queue->locked.retiring--;
	ret->kind = TASK_RETIRE;
	return true;
}

/* Each worker that goes to work calls the next one if there is more to do, so that no more are
 * woken than find a task. At the end each calls the next one, too. */
static void pass_on(struct queue *queue)
{
	if (is_ended(queue) || queue->locked.retiring || queue_has_more(queue))
		seats_call(&queue->locked.seats);
	else
		seats_keep_watch(&queue->locked.seats);
}

void queue_take(struct queue *queue, struct task *ret)
{
	*ret = (struct task){.kind = TASK_END};
	uv_mutex_lock(&queue->mutex);
	while (!is_ended(queue) && !retires(queue, ret)) {
		uint64_t wait_ns = NS_PER_S / 5;
		const bool taken = queue->locked.flowing && queue_has_place(queue) &&
				   (openings_take(&queue->locked.openings, ret, &wait_ns) ||
					   turns_take(&queue->locked.turns, ret));
		const bool has_more_room = queue_look_at_line(queue);
		if (taken) {
			queue->locked.busy++;
			ret->begun_ns = clock_boot_ns();
			if (ret->kind == TASK_FILE && ret->file->leads)
				ret->leads = ret->file->block;
			uv_cond_signal(&queue->room);
			break;
		}
		if (!has_more_room)
			seats_wait(&queue->locked.seats, &queue->mutex, wait_ns,
				queue_has_place(queue));
	}
	pass_on(queue);
	uv_mutex_unlock(&queue->mutex);
}

void queue_done(struct queue *queue, const struct task *task)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.busy--;
	turns_done(&queue->locked.turns, task);
	queue_count(queue, task);
	const bool has_rest = /* in case it was not claimed */
		task->leads && openings_finish(&queue->locked.openings, task->leads);
	if (has_rest || is_ended(queue))
		seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_ready(struct queue *queue, struct candidate *const *files, size_t n)
{
	uv_mutex_lock(&queue->mutex);
	openings_begin(&queue->locked.openings, files, n);
	queue->locked.openings.checking--;
	seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns)
{
	if (!n)
		return;
	uv_mutex_lock(&queue->mutex);
	openings_add(
		&queue->locked.openings, files, n, &(struct block){.not_before_ns = not_before_ns});
	seats_call_watcher(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_again(struct queue *queue, struct candidate *file, uint64_t not_before_ns)
{
	uv_mutex_lock(&queue->mutex);
	openings_add(&queue->locked.openings, &file, 1,
		&(struct block){.not_before_ns = not_before_ns, .last = true});
	seats_call_watcher(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_shared(struct queue *queue, struct candidate *const *files, size_t n)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.openings.has_company = true;
	if (n)
		openings_add(&queue->locked.openings, files, n, &(struct block){.last = true});
	uv_mutex_unlock(&queue->mutex);
}

void queue_claimed(struct queue *queue, const struct candidate *file)
{
	if (!file->leads)
		return;
	uv_mutex_lock(&queue->mutex);
	if (openings_finish(&queue->locked.openings, file->block))
		seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_contested(struct queue *queue, unsigned serial)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.openings.has_company = true;
	openings_put_back(&queue->locked.openings, serial);
	uv_mutex_unlock(&queue->mutex);
}

void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n)
{
	uv_mutex_lock(&queue->mutex);
	turns_open(&queue->locked.turns, parts, n);
	seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up)
{
	uv_mutex_lock(&queue->mutex);
	parts->under_way--;
	if (give_up)
		turns_give_up(&queue->locked.turns, parts);
	bool last = parts->next_index == parts->end_index && !parts->under_way;
	if (last)
		turns_close(&queue->locked.turns);
	uv_mutex_unlock(&queue->mutex);
	return last;
}

void queue_close(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.closed = true;
	seats_call(&queue->locked.seats);
	uv_cond_broadcast(&queue->room);
	uv_mutex_unlock(&queue->mutex);
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
	const int64_t waiting = openings_oldest_ns(&queue->locked.openings),
		      ready = turns_oldest_ns(&queue->locked.turns);
	return waiting < ready ? waiting : ready;
}
