/* Fetches ranges of objects ahead of the thread that prints them. Tasks are in a ring, in the order
 * in which they are printed. The threads of a pool perform them in any order. */
#include "cat/read_ahead.h"
#include "base/pool.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16

/* A HEAD to send, or a range to fetch. */
struct ahead_task {
	struct read_ahead *ahead;
	struct log_object *head_of; /* the object to send a HEAD of; NULL: the task is a range */
	/* The range: n bytes from the offset `at` of the object. */
	const struct log_object *object;
	uint64_t at;
	size_t n;
	/* The result of a range. That of a HEAD is set in the object. */
	struct http_reply reply; /* its memory is reused */
	char etag[S3_ETAG_MAX + 1];
	enum outcome outcome;
	struct problem problem;
	bool is_done; /* guarded by the mutex */
};

struct read_ahead {
	struct read_place place;
	struct pool pool;
	atomic_bool is_over;
	uv_mutex_t mutex;
	uv_cond_t done;
	struct ahead_task ring[READ_AHEAD];
	size_t first, n; /* the first task in the ring, and the number of tasks */
	bool is_lent;    /* the first task is lent to the caller of read_ahead_next() */
	/* The range that is queued next: from the offset `at` of the object `next`. `end` is the
	 * end of the array of objects. */
	const struct log_object *next, *end;
	uint64_t at;
};

/* Whether read_ahead_stop() was called: the `abandon` of each request. */
static bool is_over(void *arg)
{
	const struct read_ahead *ahead = arg;
	return atomic_load(&ahead->is_over);
}

/* Sends the request of a task. `conn` is NULL if no connection could be made. */
static void perform_task(struct ahead_task *task, struct s3_conn *conn)
{
	struct read_ahead *ahead = task->ahead;
	struct call_limits limits = ahead->place.limits;
	struct log_object *head_of = task->head_of;
	struct problem *problem = head_of ? &head_of->problem : &task->problem;
	enum outcome o;
	limits.abandon = is_over;
	limits.abandon_arg = ahead;
	const struct s3_target target = {
		.key = head_of ? head_of->key : task->object->key, .headers = ahead->place.headers};
	if (is_over(ahead))
		o = OUTCOME_ABANDONED;
	else if (!conn)
		o = outcome_error(problem, OUTCOME_LOCAL, PROBLEM_NO_DESCRIPTORS);
	else if (head_of)
		o = s3_head_object(conn, &target, &limits, &head_of->head, problem);
	else
		o = s3_get_range(conn, &target, task->at, task->n, &limits, &task->reply,
			task->etag, problem);
	if (head_of)
		head_of->outcome = o;
	else
		task->outcome = o;
	uv_mutex_lock(&ahead->mutex);
	task->is_done = true;
	uv_cond_broadcast(&ahead->done);
	uv_mutex_unlock(&ahead->mutex);
}

/* A thread of the pool: performs tasks, on a connection of its own, until the pool ends. */
static void reading_thread(void *arg)
{
	struct read_ahead *ahead = arg;
	struct s3_conn *conn = NULL;
	struct ahead_task *task;
	if (s3_conn_new(ahead->place.s3, &conn))
		conn = NULL;
	while ((task = pool_take(&ahead->pool)))
		perform_task(task, conn);
	s3_conn_free(conn);
}

int read_ahead_new(
	const struct read_place *place, struct read_ahead **ret, struct problem *ret_problem)
{
	struct read_ahead *ahead = calloc(1, sizeof *ahead);
	const struct pool_options options = {.max_threads = THREADS, .room = READ_AHEAD};
	if (!ahead || pool_init(&ahead->pool, &options)) {
		free(ahead);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	ahead->place = *place;
	uv_mutex_init(&ahead->mutex);
	uv_cond_init(&ahead->done);
	for (size_t i = 0; i < READ_AHEAD; i++)
		ahead->ring[i].ahead = ahead;
	*ret = ahead;
	return 0;
}

void read_ahead_stop(struct read_ahead *ahead)
{
	atomic_store(&ahead->is_over, true);
}

void read_ahead_free(struct read_ahead *ahead)
{
	if (!ahead)
		return;
	read_ahead_stop(ahead);
	pool_end(&ahead->pool);
	for (size_t i = 0; i < READ_AHEAD; i++)
		http_reply_clear(&ahead->ring[i].reply);
	uv_cond_destroy(&ahead->done);
	uv_mutex_destroy(&ahead->mutex);
	free(ahead);
}

/* Adds a task after the last one of the ring, which has room for it. The caller sets its members
 * and queues it. */
static struct ahead_task *append_task(struct read_ahead *ahead)
{
	return &ahead->ring[(ahead->first + ahead->n++) % READ_AHEAD];
}

/* Queues the task for the threads, or performs it here if there are none. */
static void queue_task(struct read_ahead *ahead, struct ahead_task *task)
{
	task->is_done = false;
	if (!pool_feed(&ahead->pool, reading_thread, ahead, task))
		perform_task(task, ahead->place.conn);
}

static void await_task(struct read_ahead *ahead, const struct ahead_task *task)
{
	uv_mutex_lock(&ahead->mutex);
	wait_until(task->is_done, .cond = &ahead->done, .mutex = &ahead->mutex);
	uv_mutex_unlock(&ahead->mutex);
}

/* Waits for the first task of the ring, and drops it. */
static void drop_first(struct read_ahead *ahead)
{
	await_task(ahead, &ahead->ring[ahead->first]);
	ahead->first = (ahead->first + 1) % READ_AHEAD;
	ahead->n--;
	ahead->is_lent = false;
}

void read_ahead_heads(struct read_ahead *ahead, struct log_object *objects, size_t n)
{
	read_ahead_end(ahead);
	for (size_t i = 0; i < n; i++) {
		if (ahead->n == READ_AHEAD)
			drop_first(ahead);
		struct ahead_task *task = append_task(ahead);
		task->head_of = &objects[i];
		queue_task(ahead, task);
	}
	while (ahead->n)
		drop_first(ahead);
}

void read_ahead_begin(struct read_ahead *ahead, const struct log_object *objects, size_t n)
{
	read_ahead_end(ahead);
	ahead->next = objects;
	ahead->end = objects + n;
	ahead->at = 0;
}

void read_ahead_end(struct read_ahead *ahead)
{
	while (ahead->n)
		drop_first(ahead);
	ahead->next = ahead->end = NULL;
}

/* Queues the next ranges until the ring is full, or none is left. */
static void queue_ranges(struct read_ahead *ahead)
{
	while (ahead->n < READ_AHEAD && ahead->next < ahead->end) {
		const struct log_object *object = ahead->next;
		const uint64_t left = object->head.size - ahead->at;
		if (!log_object_is_read(object) || !left) {
			ahead->next++;
			ahead->at = 0;
			continue;
		}
		struct ahead_task *task = append_task(ahead);
		task->head_of = NULL;
		task->object = object;
		task->at = ahead->at;
		task->n = left < READ_BYTES ? (size_t)left : READ_BYTES;
		ahead->at += task->n;
		queue_task(ahead, task);
	}
}

enum outcome read_ahead_next(struct read_ahead *ahead, const struct log_object *object,
	struct read_range *ret, struct problem *ret_problem)
{
	*ret = (struct read_range){.n = 0};
	if (ahead->is_lent)
		drop_first(ahead);
	for (;;) {
		queue_ranges(ahead);
		const struct ahead_task *task = &ahead->ring[ahead->first];
		/* The objects are in one array, so a pointer that is less is to an earlier one. */
		if (!ahead->n || task->object > object)
			return OUTCOME_OK; /* the end of the object */
		if (task->object < object) {
			drop_first(ahead);
			continue;
		}
		await_task(ahead, task);
		ahead->is_lent = true;
		if (task->outcome != OUTCOME_OK) {
			*ret_problem = task->problem;
			return task->outcome;
		}
		if (strcmp(task->etag, object->head.etag) != 0)
			return outcome_error(
				ret_problem, OUTCOME_REFUSED, "it was replaced while it was read");
		*ret = (struct read_range){(const unsigned char *)task->reply.body.data, task->n};
		return OUTCOME_OK;
	}
}
