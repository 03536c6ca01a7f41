#include "../check.h"
#include "base/pool.h"
#include <stdlib.h>

#define ITEMS   1000
#define WORKERS 4

struct work {
	struct pool pool;
	atomic_uint sum, done, ended;
	unsigned items, enough; /* a worker closes the queue after so many; 0: never */
	unsigned added;
};

static void has_ended(void *arg)
{
	atomic_fetch_add(&((struct work *)arg)->ended, 1);
}

static void feed(void *arg)
{
	struct work *work = arg;
	unsigned *item;
	while (work->added < work->items && (item = malloc(sizeof *item))) {
		*item = work->added + 1;
		if (!pool_add(&work->pool, item)) {
			free(item);
			break;
		}
		work->added++;
	}
	pool_close(&work->pool);
}

static void labour(void *arg)
{
	struct work *work = arg;
	for (unsigned *item; (item = pool_take(&work->pool));) {
		atomic_fetch_add(&work->sum, *item);
		if (atomic_fetch_add(&work->done, 1) + 1 == work->enough)
			pool_close(&work->pool);
		free(item);
	}
}

static void begin(struct work *work)
{
	const struct pool_options options = {
		.max_threads = WORKERS + 1, .room = 3, .all_ended = has_ended, .arg = work};
	CHECK_INT(pool_init(&work->pool, &options), 0);
	CHECK(pool_start(&work->pool, feed, work));
	while (pool_start(&work->pool, labour, work))
		;
	CHECK_INT(work->pool.n, WORKERS + 1);
}

static void test_each_item_is_worked_on_once(void)
{
	struct work work = {.items = ITEMS};
	begin(&work);
	pool_join(&work.pool);
	CHECK_INT(work.sum, ITEMS * (ITEMS + 1) / 2);
	CHECK(work.ended >= 1);
	CHECK_INT(work.pool.at_work, 0);
	CHECK(!pool_take(&work.pool));
	pool_end(&work.pool);
}

/* Tasks added before that are still done. */
static void test_a_worker_closes_the_queue(void)
{
	struct work work = {.items = ITEMS * ITEMS, .enough = 10};
	begin(&work);
	pool_end(&work.pool);
	CHECK(work.added < work.items);
	CHECK_INT(work.done, work.added);
}

static void test_without_a_feeder_it_ends(void)
{
	struct pool pool;
	CHECK_INT(pool_init(&pool, &(struct pool_options){.max_threads = 1, .room = 1}), 0);
	struct work work = {0};
	CHECK(pool_start(&pool, has_ended, &work));
	CHECK(!pool_start(&pool, has_ended, &work));
	pool_join(&pool);
	CHECK(pool_start(&pool, has_ended, &work));
	pool_end(&pool);
	CHECK_INT(work.ended, 2);
}

int main(void)
{
	test_each_item_is_worked_on_once();
	test_a_worker_closes_the_queue();
	test_without_a_feeder_it_ends();
	return check_result();
}
