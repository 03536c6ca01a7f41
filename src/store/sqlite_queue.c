/* The thread that uses an SQLite file, and what waits for it. Writes that wait together are one
 * transaction and at most one sync (docs/protocol.md, "Marks that are synced later"). Every
 * operation of the SQLite store comes through here. Nothing is acknowledged that was not committed.
 */
#include "aws/retry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "store/sqlite.h"
#include "store/sqlite_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYNC_LATER_NS NS_PER_S
#define LOOK_NS       (100 * NS_PER_MS) /* how often a caller that must end tries to withdraw */

struct sqlite_queue {
	sqlite3 *db;
	const char *name;
	struct items *items;
	uint64_t unsynced_since_ns; /* 0: all is synced; the thread's */
	int failed_rc; /* an I/O error of a write or a sync, which the kernel tells only once */
	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t work;
	struct {
		struct tickets waiting;
		bool closing;
	} locked;
};

static struct items_op *op_of(struct ticket *ticket)
{
	return &((struct sqlite_ticket *)ticket)->op;
}

static bool is_write(struct ticket *ticket)
{
	return op_of(ticket)->kind <= ITEMS_SYNC;
}

/* Which tickets to take off the queue. */
enum choice { READS, WRITES, OVERDUE };

static bool is_chosen(struct ticket *ticket, enum choice choice, uint64_t now_ns)
{
	if (choice == OVERDUE)
		return now_ns >= ticket->since_ns + SQLITE_LOCKED_MAX_S * NS_PER_S;
	return is_write(ticket) == (choice == WRITES);
}

/* Moves the chosen ones to a list of their own, in order. */
static void take_chosen(struct sqlite_queue *queue, enum choice choice, struct tickets *ret)
{
	uint64_t now_ns = clock_boot_ns();

	uv_mutex_lock(&queue->mutex);
	for (struct ticket *next, *t = queue->locked.waiting.first; t; t = next) {
		next = t->next;
		if (is_chosen(t, choice, now_ns))
			ticket_move(t, ret, TICKET_TAKEN);
	}
	uv_mutex_unlock(&queue->mutex);
}

static void fail_all(struct sqlite_queue *queue, struct tickets *list, int rc)
{
	for (struct ticket *t = list->first; t; t = t->next) {
		struct items_op *op = op_of(t);
		text_clear(&op->rows);
		op->outcome = sqlite_failure(queue->db, rc, queue->name, &op->problem);
	}
	tickets_call(list);
}

static void put_back(struct sqlite_queue *queue, struct tickets *list)
{
	uv_mutex_lock(&queue->mutex);
	while (list->first)
		ticket_move(list->first, &queue->locked.waiting, TICKET_WAITS);
	uv_mutex_unlock(&queue->mutex);
}

/* The end of a list of tickets that met an SQLite result. Returns whether the file was locked. */
static bool settle_tickets(struct sqlite_queue *queue, struct tickets *list, int rc)
{
	bool locked = (rc & 0xff) == SQLITE_BUSY;

	if (locked)
		put_back(queue, list);
	else if (rc)
		fail_all(queue, list, rc);
	else
		tickets_call(list);
	return locked;
}

/* Reads are done outside of a write transaction, so that they never show uncommitted rows. */
static bool perform_reads(struct sqlite_queue *queue)
{
	bool locked = false;

	struct tickets list = {0}, one = {0};
	take_chosen(queue, READS, &list);
	for (struct ticket *t; (t = list.first);) {
		ticket_move(t, &one, TICKET_TAKEN);
		locked |= settle_tickets(queue, &one, items_apply(queue->items, op_of(t)));
	}
	return locked;
}

/* What the log has on the disk is not known any more. Who opens the file next writes it anew, so
 * it must not be written back and removed before. */
static void keep_failure(struct sqlite_queue *queue, int rc)
{
	if ((rc & 0xff) != SQLITE_IOERR || queue->failed_rc)
		return;
	queue->failed_rc = rc;
	sqlite3_db_config(queue->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

static int sync_file(struct sqlite_queue *queue)
{
	queue->unsynced_since_ns = 0;
	const int rc = items_sync(queue->items);
	keep_failure(queue, rc);
	return rc;
}

/* Of a list that was committed. */
static int sync_tickets(struct sqlite_queue *queue, const struct tickets *list)
{
	bool may_wait = true;

	for (struct ticket *t = list->first; t; t = t->next)
		may_wait &= op_of(t)->write && op_of(t)->write->may_sync_later;
	if (!queue->unsynced_since_ns)
		queue->unsynced_since_ns = clock_boot_ns();
	return may_wait ? SQLITE_OK : sync_file(queue);
}

/* The queue is emptied only after the file's lock was had: until then each may be withdrawn. */
static bool perform_writes(struct sqlite_queue *queue)
{
	int rc = queue->failed_rc ? queue->failed_rc : items_begin(queue->items);

	if ((rc & 0xff) == SQLITE_BUSY)
		return true;
	struct tickets list = {0};
	take_chosen(queue, WRITES, &list);
	for (struct ticket *t = list.first; t && !rc; t = t->next)
		rc = items_apply(queue->items, op_of(t));
	if (!rc)
		rc = items_commit(queue->items);
	if (!rc)
		rc = sync_tickets(queue, &list);
	keep_failure(queue, rc);
	if (rc)
		items_rollback(queue->items);
	return settle_tickets(queue, &list, rc);
}

/* Returns false when there is nothing more to do, ever. Meanwhile what is due is synced. */
static bool wait_for_work(struct sqlite_queue *queue, bool *ret_has_writes)
{
	const uint64_t since_ns = queue->unsynced_since_ns;
	const uint64_t due_ns = since_ns ? since_ns + SYNC_LATER_NS : 0;

	uv_mutex_lock(&queue->mutex);
	wait_until(queue->locked.waiting.n || queue->locked.closing, .told = &queue->work,
		.mutex = &queue->mutex, .deadline_ns = due_ns);
	bool more = queue->locked.waiting.n || !queue->locked.closing;
	*ret_has_writes = false;
	for (struct ticket *t = queue->locked.waiting.first; t && !*ret_has_writes; t = t->next)
		*ret_has_writes = is_write(t);
	uv_mutex_unlock(&queue->mutex);
	if (since_ns && (!more || clock_boot_ns() >= due_ns))
		sync_file(queue);
	return more;
}

/* Another process has locked the file. Tickets that have waited too long fail, and the rest wait a
 * moment. */
static void wait_for_file(struct sqlite_queue *queue)
{
	struct tickets overdue = {0};
	take_chosen(queue, OVERDUE, &overdue);
	fail_all(queue, &overdue, SQLITE_BUSY);
	uv_sleep(1 + (unsigned)random_below(3));
}

/* Only housekeeping: when the file is locked, the next run does it. */
static void sweep(struct sqlite_queue *queue)
{
	char boot[37];
	clock_boot_id(boot);
	int rc = items_sweep(queue->items, clock_wall_ns() / (int64_t)NS_PER_S, boot);

	if (rc)
		log_debug("%s: old sessions not swept: %s", queue->name, sqlite3_errstr(rc));
}

static void run_queue(void *arg)
{
	struct sqlite_queue *queue = arg;
	bool has_writes;

	thread_be_batch();
	sweep(queue);
	while (wait_for_work(queue, &has_writes)) {
		bool locked = perform_reads(queue);
		if (has_writes)
			locked |= perform_writes(queue);
		if (locked)
			wait_for_file(queue);
	}
}

static int prepare_statements(void *arg)
{
	struct sqlite_queue *queue = arg;

	return items_new(queue->db, &queue->items);
}

static int write_anew(void *arg)
{
	return items_write_anew(((struct sqlite_queue *)arg)->items);
}

static int start_thread(struct sqlite_queue *queue)
{
	int r = uv_mutex_init(&queue->mutex);
	if (r)
		return r;
	uv_cond_init(&queue->work);
	r = thread_start(&queue->thread, run_queue, queue);
	if (r) {
		uv_cond_destroy(&queue->work);
		uv_mutex_destroy(&queue->mutex);
	}
	return r;
}

static int fill_queue(struct sqlite_queue *queue, struct problem *ret_problem)
{
	int rc = sqlite_patiently(prepare_statements, queue);

	if (!rc && sqlite3_db_readonly(queue->db, "main") == 0)
		rc = sqlite_patiently(write_anew, queue);
	if (rc) {
		enum outcome o = sqlite_failure(queue->db, rc, queue->name, ret_problem);
		return o == OUTCOME_LOCAL ? -ENOMEM : -EIO;
	}
	const int r = start_thread(queue);
	if (r)
		problem_set(ret_problem, "%s: " PROBLEM_NO_THREAD, queue->name);
	return r;
}

int sqlite_queue_new(
	sqlite3 *db, const char *name, struct sqlite_queue **ret, struct problem *ret_problem)
{
	struct sqlite_queue *queue = calloc(1, sizeof *queue);

	if (!queue) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	queue->db = db;
	queue->name = name;
	const int r = fill_queue(queue, ret_problem);
	if (r) {
		items_free(queue->items);
		free(queue);
		return r;
	}
	*ret = queue;
	return 0;
}

void sqlite_queue_free(struct sqlite_queue *queue)
{
	if (!queue)
		return;
	uv_mutex_lock(&queue->mutex);
	queue->locked.closing = true;
	uv_cond_signal(&queue->work);
	uv_mutex_unlock(&queue->mutex);
	uv_thread_join(&queue->thread);
	items_free(queue->items);
	uv_cond_destroy(&queue->work);
	uv_mutex_destroy(&queue->mutex);
	free(queue);
}

static void submit(struct sqlite_queue *queue, struct ticket *ticket)
{
	uv_mutex_lock(&queue->mutex);
	ticket->since_ns = clock_boot_ns();
	if (!queue->locked.waiting.n)
		uv_cond_signal(&queue->work);
	ticket_move(ticket, &queue->locked.waiting, TICKET_WAITS);
	uv_mutex_unlock(&queue->mutex);
}

static bool withdraw(struct sqlite_queue *queue, struct ticket *ticket)
{
	uv_mutex_lock(&queue->mutex);
	bool waits = ticket->state == TICKET_WAITS;
	if (waits)
		ticket_move(ticket, NULL, TICKET_ANSWERED);
	uv_mutex_unlock(&queue->mutex);
	return waits;
}

static void give_up(struct sqlite_queue *queue, struct items_op *op)
{
	op->outcome = OUTCOME_ABANDONED;
	problem_set(&op->problem, "%s: stopped before the mark store had answered", queue->name);
}

void sqlite_queue_perform(
	struct sqlite_queue *queue, struct sqlite_ticket *own, const struct call_limits *limits)
{
	static const struct call_limits none;
	struct ticket *ticket = &own->ticket;

	if (!limits)
		limits = &none;
	if (limits_are_over(limits)) {
		give_up(queue, &own->op);
		return;
	}
	submit(queue, ticket);
	/* What the thread has taken cannot be withdrawn, unless the file is locked and it is put
	 * back. */
	while (!bell_await(
		&ticket->called, limits->deadline_ns, limits->abandon, limits->abandon_arg)) {
		if (withdraw(queue, ticket)) {
			give_up(queue, &own->op);
			return;
		}
		if (bell_await(&ticket->called, clock_boot_ns() + LOOK_NS, NULL, NULL))
			return;
	}
}
