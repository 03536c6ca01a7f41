/* clang-format off */
/* A worker pool: a feeder feeds a queue, the queue feeds workers, which are threads of libuv, and
 * the workers end.
 *
 *	pool_init(&pool, &(struct pool_options){.most = 17, .room = 64});
 *	pool_start(&pool, scan, &pool);     scan() calls pool_add() for each item, then pool_close()
 *	while (pool.n < 17 && pool_start(&pool, work, &pool))
 *		;                           work() calls pool_take() until there is nothing more
 *	pool_end(&pool);
 *
 * The feeder may be the caller itself. A pool without room has threads alone: who orders what it
 * hands out, as a run of the uploader does, has a queue of its own. */
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
	unsigned most;                /* threads */
	size_t room;                  /* of the queue, in items; 0: there is none */
	void (*all_ended)(void *arg); /* called in the thread that ends last; may be NULL */
	void *arg;
};

/* It is not moved. Only one thread starts and joins. */
struct pool {
	struct pool_options options;
	struct pool_thread *threads;
	unsigned n;          /* threads that were started and are not joined */
	atomic_uint at_work; /* of them, those that have not ended */
	struct {
		uv_mutex_t mutex;
		uv_cond_t has_item, has_room;
		void **items;
		size_t at, n;
		bool is_closed;
	} queue;
};
/* 0 or -ENOMEM. After an error there is nothing to end. */
int pool_init(struct pool *ret, const struct pool_options *options);
/* One more thread, with all signals blocked. False: there are `most`, or no more can be had. */
bool pool_start(struct pool *pool, uv_thread_cb run, void *arg);
/* Waits until all threads have ended. More may be started after it. */
void pool_join(struct pool *pool);
/* Closes the queue, joins, and frees the pool. What no worker took is not freed. */
void pool_end(struct pool *pool);

/* The queue. Thread-safe. */

/* Waits for room, and gives the item to a worker. False: the queue is closed, and the item stays
 * the caller's. NULL is no item. */
bool pool_add(struct pool *pool, void *item);
/* Starts another thread if there are fewer than `most`, and adds the item. False: nobody takes it,
 * since there is no thread or the queue is closed. For the thread that starts and joins. */
bool pool_feed(struct pool *pool, uv_thread_cb run, void *arg, void *item);
/* Waits for the next item. NULL: the queue is closed and empty. */
void *pool_take(struct pool *pool);
/* Nothing more is added: the feeder is through, or a worker has found out that it is of no use. */
void pool_close(struct pool *pool);
