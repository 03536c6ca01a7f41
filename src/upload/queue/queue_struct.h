/* What is behind queue.h, for queue.c and queue_level.c. All functions are called with the mutex
 * held. */
#pragma once
#include "upload/queue/opening.h"
#include "upload/queue/queue.h"
#include "upload/queue/seats.h"
#include <stdatomic.h>
#include <uv.h>

struct queue {
	uv_mutex_t mutex;
	uv_cond_t room; /* for the scan */
	_Atomic uint64_t moved_bytes;
	struct {
		struct openings openings;
		struct turns turns;
		struct seats seats;         /* workers without a task */
		struct queue_window window; /* but for idle_ns */
		unsigned busy;              /* tasks handed out and not done */
		unsigned retiring;          /* workers that are to end */
		bool flowing, complete, closed;
	} locked;
};

/* Whether fewer tasks are under way than the level allows. */
bool queue_has_place(const struct queue *queue);
/* Whether a worker that is woken finds a task, as far as it can be told without a look. */
bool queue_has_more(const struct queue *queue);
/* True if more large bodies may go at once than before. */
bool queue_look_at_line(struct queue *queue);
/* The task has ended: what the window says of it. */
void queue_count(struct queue *queue, const struct task *task);
