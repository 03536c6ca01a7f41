/* The worker pool: threads, and a bounded queue from which they take items until it is closed. */
#include "base/pool.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>

int pool_init(struct pool *ret, const struct pool_options *options)
{
	*ret = (struct pool){.options = *options};
	ret->threads = calloc(options->max_threads, sizeof *ret->threads);
	/* One more than the room: for 0 items calloc() might return NULL. */
	ret->queue.items = calloc(options->room + 1, sizeof *ret->queue.items);
	if (!ret->threads || !ret->queue.items) {
		free(ret->threads);
		free(ret->queue.items);
		*ret = (struct pool){0};
		return -ENOMEM;
	}
	uv_mutex_init(&ret->queue.mutex);
	uv_cond_init(&ret->queue.has_item);
	uv_cond_init(&ret->queue.has_room);
	return 0;
}

/* Counts a thread that has ended, or did not start. If it was the last one, calls all_ended(). */
static void count_end(struct pool *pool)
{
	if (atomic_fetch_sub(&pool->at_work, 1) == 1 && pool->options.all_ended)
		pool->options.all_ended(pool->options.arg);
}

static void run_thread(void *arg)
{
	const struct pool_thread *thread = arg;
	struct pool *pool = thread->pool;
	thread->run(thread->arg);
	count_end(pool);
}

bool pool_start(struct pool *pool, uv_thread_cb run, void *arg)
{
	if (pool->n == pool->options.max_threads)
		return false;
	struct pool_thread *thread = &pool->threads[pool->n];
	*thread = (struct pool_thread){.pool = pool, .run = run, .arg = arg};
	atomic_fetch_add(
		&pool->at_work, 1); /* counted before it starts, since it may end at once */
	const bool is_started = !thread_start(&thread->thread, run_thread, thread);
	if (is_started)
		pool->n++;
	else
		count_end(pool);
	return is_started;
}

void pool_join(struct pool *pool)
{
	while (pool->n)
		uv_thread_join(&pool->threads[--pool->n].thread);
}

void pool_end(struct pool *pool)
{
	pool_close(pool);
	pool_join(pool);
	uv_cond_destroy(&pool->queue.has_item);
	uv_cond_destroy(&pool->queue.has_room);
	uv_mutex_destroy(&pool->queue.mutex);
	free(pool->queue.items);
	free(pool->threads);
}

bool pool_add(struct pool *pool, void *item)
{
	const size_t room = pool->options.room;
	uv_mutex_lock(&pool->queue.mutex);
	wait_until(pool->queue.is_closed || pool->queue.n < room, .cond = &pool->queue.has_room,
		.mutex = &pool->queue.mutex);
	const bool is_open = !pool->queue.is_closed;
	if (is_open) {
		pool->queue.items[(pool->queue.at + pool->queue.n++) % room] = item;
		uv_cond_signal(&pool->queue.has_item);
	}
	uv_mutex_unlock(&pool->queue.mutex);
	return is_open;
}

bool pool_feed(struct pool *pool, uv_thread_cb run, void *arg, void *item)
{
	/* If no thread can be started, an existing one takes the item. */
	pool_start(pool, run, arg);
	return pool->n && pool_add(pool, item);
}

void *pool_take(struct pool *pool)
{
	void *item = NULL;
	uv_mutex_lock(&pool->queue.mutex);
	wait_until(pool->queue.is_closed || pool->queue.n, .cond = &pool->queue.has_item,
		.mutex = &pool->queue.mutex);
	if (pool->queue.n) {
		item = pool->queue.items[pool->queue.at];
		pool->queue.at = (pool->queue.at + 1) % pool->options.room;
		pool->queue.n--;
		uv_cond_signal(&pool->queue.has_room);
	}
	uv_mutex_unlock(&pool->queue.mutex);
	return item;
}

void pool_close(struct pool *pool)
{
	uv_mutex_lock(&pool->queue.mutex);
	pool->queue.is_closed = true;
	uv_cond_broadcast(&pool->queue.has_item);
	uv_cond_broadcast(&pool->queue.has_room);
	uv_mutex_unlock(&pool->queue.mutex);
}
