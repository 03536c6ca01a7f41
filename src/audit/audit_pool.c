/* The pool of threads that verify, forget and gc work with. The caller adds items, and the threads
 * of a pool take them. Each thread has connections of its own. For forget and gc, audit_pool_walk()
 * adds all marks below a prefix. The commands decide how a mark or an object is treated.
 *
 * audit_check_bucket() is here as well. Each of these commands calls it before it draws conclusions
 * from a missing object. */
#include "audit/audit_pool.h"
#include "aws/retry.h"
#include "marks/witness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALKERS 15 /* threads of audit_pool_walk(), besides the caller, which reads the marks */

struct mark_ref audit_mark_ref(
	const struct audit_place *place, const struct audit_conns *conns, const char *key)
{
	return (struct mark_ref){.conn = conns->marks,
		.space = place->space,
		.key = key,
		.session = "",
		.source = "",
		.suffix = "",
		.limits = place->limits};
}

bool audit_mark_key(const char *object_key, size_t suffix_index,
	char ret[static KEY_BYTES_MAX + SUFFIX_MAX + 1], const char **ret_suffix)
{
	const char *suffix = family_suffix(suffix_index);
	const size_t object_bytes = strlen(object_key), suffix_bytes = strlen(suffix);
	*ret_suffix = suffix;
	if (object_bytes <= suffix_bytes || object_bytes > KEY_BYTES_MAX + SUFFIX_MAX ||
		strcmp(object_key + object_bytes - suffix_bytes, suffix) != 0)
		return false;
	/* snprintf() copies the key up to its suffix, and adds a NUL. */
	snprintf(ret, object_bytes - suffix_bytes + 1, "%s", object_key);
	return true;
}

enum outcome audit_check_bucket(const struct audit_place *place, const struct audit_conns *conns,
	struct problem *ret_problem)
{
	struct bucket_row row;
	struct witness_shown unused;
	const struct mark_space *space = place->space;
	const struct witness_asking asking = {.marks = conns->marks,
		.s3 = conns->s3,
		.space = space,
		.keys = place->keys,
		.limits = place->limits};
	const enum outcome o =
		bucket_row_read(conns->marks, space, &place->limits, &row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	const enum witness_answer shown = witness_ask(&asking, &row, &unused, ret_problem);
	if (shown == WITNESS_SHOWN)
		return OUTCOME_OK;
	if (shown == WITNESS_NOTHING)
		return outcome_error(ret_problem, OUTCOME_ABSENT,
			"no mark of bucket %s at %s says done: check name, endpoint, --marks",
			quote(space->bucket).text, quote(space->service).text);
	/* A stop also causes WITNESS_NO_ANSWER, which is then no fault of the setup. */
	if (shown == WITNESS_NO_ANSWER && limits_are_over(&place->limits))
		return OUTCOME_ABANDONED;
	if (shown == WITNESS_REFUSED)
		problem_prefix(ret_problem,
			"nothing shows whether bucket %s is the one that the marks are about",
			quote(space->bucket).text);
	/* witness_ask() has set the sentence. */
	return OUTCOME_SETUP;
}

void audit_pool_stop(struct audit_pool *pool, enum outcome outcome, const struct problem *problem)
{
	uv_mutex_lock(&pool->locked.mutex);
	if (pool->locked.outcome == OUTCOME_OK) {
		pool->locked.outcome = outcome;
		pool->locked.problem = *problem;
	}
	uv_mutex_unlock(&pool->locked.mutex);
	pool_close(&pool->threads);
}

/* Whether no outcome has ended the pool yet. */
static bool is_running(struct audit_pool *pool)
{
	uv_mutex_lock(&pool->locked.mutex);
	const bool is_ok = pool->locked.outcome == OUTCOME_OK;
	uv_mutex_unlock(&pool->locked.mutex);
	return is_ok;
}

/* Works on an item, or leaves it if the pool has ended. The pool ends here if the limits of the
 * place are over, or if the work has an outcome other than OK. */
static void work_on_item(struct audit_pool *pool, const struct audit_conns *conns, void *item)
{
	struct problem problem = {0};
	enum outcome o = OUTCOME_OK;
	if (limits_are_over(&pool->place.limits))
		audit_pool_stop(pool, OUTCOME_ABANDONED, PROBLEM("it was stopped"));
	if (is_running(pool))
		o = pool->work.each(pool->work.arg, conns, item, &problem);
	else if (pool->work.leave)
		pool->work.leave(pool->work.arg, item);
	/* Without leave(), the pool owns the item. Otherwise each() or leave() does. */
	if (!pool->work.leave)
		free(item);
	if (o != OUTCOME_OK)
		audit_pool_stop(pool, o, &problem);
}

/* A thread of the pool. If its connections cannot be made, it ends the pool, and then leaves all
 * items that it takes. */
static void audit_thread(void *arg)
{
	struct audit_pool *pool = arg;
	const struct audit_place *place = &pool->place;
	struct audit_conns conns = {0};
	void *item;
	if ((place->store && store_conn_new(place->store, &conns.marks)) ||
		(place->s3 && s3_conn_new(place->s3, &conns.s3)))
		audit_pool_stop(pool, OUTCOME_LOCAL, PROBLEM(PROBLEM_NO_DESCRIPTORS));
	while ((item = pool_take(&pool->threads)))
		work_on_item(pool, &conns, item);
	store_conn_free(conns.marks);
	s3_conn_free(conns.s3);
}

bool audit_pool_init(struct audit_pool *pool, const struct audit_place *place,
	const struct audit_pool_work *work, unsigned threads, struct problem *ret_problem)
{
	/* The queue has a few items for each thread, so that the threads stay busy while the caller
	 * reads. */
	const struct pool_options options = {.max_threads = threads, .room = 4 * threads};
	*pool = (struct audit_pool){.place = *place, .work = *work};
	uv_mutex_init(&pool->locked.mutex);
	return pool_init(&pool->threads, &options) == 0 ||
	       problem_error(ret_problem, false, "out of memory");
}

bool audit_pool_add(struct audit_pool *pool, void *item)
{
	/* Without a thread, the caller works on the item itself. If the queue is closed, since the
	 * pool has ended, work_on_item() gives the item back. */
	if (!pool_feed(&pool->threads, audit_thread, pool, item))
		work_on_item(pool, &pool->place.own, item);
	return is_running(pool);
}

enum outcome audit_pool_end(struct audit_pool *pool, enum outcome o, struct problem *ret_problem)
{
	if (pool->threads.threads) /* NULL: pool_init() has failed */
		pool_end(&pool->threads);
	/* No thread is left, so the mutex need not be held. */
	if (o == OUTCOME_OK && pool->locked.outcome != OUTCOME_OK) {
		o = pool->locked.outcome;
		*ret_problem = pool->locked.problem;
	}
	uv_mutex_destroy(&pool->locked.mutex);
	return o;
}

enum outcome audit_pool_walk(const struct audit_place *place, const struct mark_range *range,
	const struct audit_pool_work *work, struct problem *ret_problem)
{
	struct audit_pool pool;
	struct mark_stream *stream = NULL;
	struct packed_mark *row = NULL;
	enum outcome o = OUTCOME_LOCAL; /* the outcome if memory runs out */
	if (!audit_pool_init(&pool, place, work, WALKERS, ret_problem))
		return audit_pool_end(&pool, o, ret_problem);
	bool goes_on = mark_stream_new(
			       place->own.marks, place->space, range, &place->limits, &stream) == 0;
	if (!goes_on)
		problem_set(ret_problem, "out of memory");
	while (goes_on) {
		o = mark_stream_next(stream, &row, ret_problem);
		/* audit_pool_add() takes the row in any case, so no row is freed here. */
		goes_on = o == OUTCOME_OK && row && audit_pool_add(&pool, row);
	}
	o = audit_pool_end(&pool, o, ret_problem);
	mark_stream_free(stream);
	return o;
}
