/* A thread that stands for the main thread of a run, which looks at the queue again and again. It
 * closes the queue after ten seconds, so that a test that waits for it in vain ends. */
#pragma once
#include "../check.h"
#include "base/clock.h"
#include "upload/queue/queue.h"
#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

struct looker {
	struct queue *queue;
	atomic_bool is_over;
	pthread_t thread;
};

static inline void *looker_look(void *arg)
{
	struct looker *looker = arg;
	const uint64_t end_ns = clock_boot_ns() + 10 * NS_PER_S;
	while (!atomic_load(&looker->is_over) && clock_boot_ns() < end_ns) {
		queue_release_due(looker->queue);
		uv_sleep(1);
	}
	if (!atomic_load(&looker->is_over))
		queue_enter_phase(looker->queue, QUEUE_CLOSED);
	return NULL;
}

static inline void looker_begin(struct looker *looker, struct queue *queue)
{
	looker->queue = queue;
	atomic_init(&looker->is_over, false);
	CHECK_INT(pthread_create(&looker->thread, NULL, looker_look, looker), 0);
}

static inline void looker_end(struct looker *looker)
{
	atomic_store(&looker->is_over, true);
	pthread_join(looker->thread, NULL);
}
