/* clang-format off */
/* A worker pool: a feeder feeds a queue, the queue feeds workers, which are threads of libuv, and
 * the workers end.
 *
 *	pool_init(&pool, &(struct pool_options){.max_threads = 17, .room = 64});
 *	pool_start(&pool, scan, &pool);     scan() calls pool_add() for each item, then pool_close()
 *	while (pool.n < 17 && pool_start(&pool, work, &pool))
 *		;                           work() calls pool_take() until there is nothing more
 *	pool_end(&pool);
 *
 * The feeder may be the caller itself. A pool whose `room` is 0 has threads only, and no queue. It
 * is for a caller with a queue of its own, such as a run of the uploader, which orders its items. */
/* clang-format on */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct pool_thread {
	struct pool *pool;
	uv_thread_t thread;
	uv_thread_cb run;
	void *arg;
};

struct pool_options {
	unsigned max_threads; /* the most threads */
	size_t room;          /* capacity of the queue, in items; 0: there is no queue */
	/* Called whenever the last thread has ended: in that thread, or by pool_start() if the only
	 * thread could not be started. May be NULL. */
	void (*all_ended)(void *arg);
	void *arg;
};

/* A pool must not be moved in memory. Only one thread may start and join its threads. */
struct pool {
	struct pool_options options;
	struct pool_thread *threads;
	unsigned n;          /* threads that were started and not joined yet */
	atomic_uint at_work; /* threads that have not ended */
	struct {
		uv_mutex_t mutex;
		uv_cond_t has_item, has_room;
		void **items;
		size_t at, n; /* the first item in the ring, and how many there are */
		bool is_closed;
	} queue;
};
/* Returns 0 or -ENOMEM. After an error, pool_end() must not be called. */
int pool_init(struct pool *ret, const struct pool_options *options);
/* Starts one more thread, with all signals blocked. Returns false if there are `max_threads`
 * threads already, or the host allows no more. */
bool pool_start(struct pool *pool, uv_thread_cb run, void *arg);
/* Waits until all threads have ended. More may be started after it. */
void pool_join(struct pool *pool);
/* Closes the queue, joins the threads, and frees the pool. Items that no worker has taken are not
 * freed. */
void pool_end(struct pool *pool);

/* The queue. Thread-safe. */

/* Waits for room in the queue, and adds the item, which must not be NULL. Returns false if the
 * queue is closed; then the item stays the caller's. */
bool pool_add(struct pool *pool, void *item);
/* Starts another thread if there are fewer than `max_threads`, and adds the item. Returns false if
 * no worker will take it, since there is no thread or the queue is closed. Only the thread that
 * starts and joins may call it. */
bool pool_feed(struct pool *pool, uv_thread_cb run, void *arg, void *item);
/* Waits for the next item. Returns NULL if the queue is closed and empty. */
void *pool_take(struct pool *pool);
/* Closes the queue: nothing more is added, and workers take the remaining items. The feeder calls
 * it when it is done, or a worker when more items are of no use. */
void pool_close(struct pool *pool);
