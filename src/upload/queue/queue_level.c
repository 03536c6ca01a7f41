/* The queue's part in how many tasks go at once: places for them, and what the level is told. */
#include "base/clock.h"
#include "upload/queue/queue_struct.h"

bool queue_has_place(const struct queue *queue)
{
	return queue->locked.busy < queue->locked.turns.workers;
}

bool queue_has_more(const struct queue *queue)
{
	return queue->locked.flowing && queue_has_place(queue) &&
	       (turns_has(&queue->locked.turns) ||
		       (queue->locked.openings.waiting.n &&
			       openings_want_block(&queue->locked.openings)));
}

bool queue_look_at_line(struct queue *queue)
{
	struct turns *turns = &queue->locked.turns;
	return bulk_look(
		&turns->bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes), turns->under_way);
}

void queue_count(struct queue *queue, const struct task *task)
{
	struct queue_window *window = &queue->locked.window;
	window->warm += task->is_first;
	const bool is_small = task->kind == TASK_FILE && !task->is_bulk && !task->opens;
	if (!is_small || task->is_first || task->begun_ns < window->counts_from_ns)
		return;
	window->files++;
	window->files_ns += clock_boot_ns() - task->begun_ns;
	window->read_ns += task->read_ns;
}

void queue_set_level(struct queue *queue, unsigned level)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.turns.workers = level;
	if (queue_has_more(queue))
		seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_retire(struct queue *queue, unsigned n)
{
	uv_mutex_lock(&queue->mutex);
	queue->locked.retiring += n;
	seats_call(&queue->locked.seats);
	uv_mutex_unlock(&queue->mutex);
}

void queue_window(struct queue *queue, struct queue_window *ret)
{
	uv_mutex_lock(&queue->mutex);
	const struct turns *turns = &queue->locked.turns;
	const bool has_bulk =
		turns->under_way || turns->parts || turns->whole.n || turns->split.n || turns->open;
	*ret = queue->locked.window;
	ret->idle_ns = seats_idle_ns(&queue->locked.seats, clock_boot_ns());
	ret->has_company = queue->locked.openings.has_company;
	ret->bulk = has_bulk ? turns->bulk.at_once : 0;
	uv_mutex_unlock(&queue->mutex);
}

void queue_begin_window(struct queue *queue, bool is_like_before)
{
	const uint64_t now_ns = clock_boot_ns();
	uv_mutex_lock(&queue->mutex);
	struct queue_window *window = &queue->locked.window;
	*window = (struct queue_window){.began_ns = now_ns,
		.counts_from_ns = is_like_before ? window->counts_from_ns : now_ns,
		.warm = window->warm};
	seats_begin_window(&queue->locked.seats, now_ns);
	uv_mutex_unlock(&queue->mutex);
}

void queue_moved(struct queue *queue, uint64_t bytes)
{
	atomic_fetch_add(&queue->moved_bytes, bytes);
}

void queue_cut(struct queue *queue)
{
	uv_mutex_lock(&queue->mutex);
	bulk_cut(&queue->locked.turns.bulk, clock_boot_ns(), atomic_load(&queue->moved_bytes));
	uv_mutex_unlock(&queue->mutex);
}
