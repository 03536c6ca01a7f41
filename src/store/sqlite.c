/* The store for one host: the operations of store.h on an SQLite file, and the one thread that
 * performs them. Writes that wait together are one transaction and at most one sync
 * (docs/protocol.md, "Marks that are synced later"). store.c and the locks open it. No caller
 * touches the connection itself, and no write is acknowledged before it is committed. */
#include "store/sqlite.h"
#include "aws/retry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "store/sqlite_file.h"
#include "store/tickets.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_BYTES                                                                                 \
	(ITEMS_BATCH *                                                                             \
		(DOC_BYTES + 4096)) /* the most bytes of rows of one op; 4,096 are for the keys */
/* the longest that a write with may_sync_later waits for its sync */
#define SYNC_LATER_NS NS_PER_S
#define LOOK_NS       (100 * NS_PER_MS) /* the time between two tries of a caller to withdraw */

static const char *const kinds[ITEMS_KINDS] = {
	[ITEMS_PUT] = "Put",
	[ITEMS_UPDATE] = "Update",
	[ITEMS_TAKE] = "Take",
	[ITEMS_DELETE] = "Delete",
	[ITEMS_SYNC] = "Sync",
	[ITEMS_GET] = "Get",
	[ITEMS_GET_MANY] = "BatchGet",
	[ITEMS_QUERY] = "Query",
	[ITEMS_COMPACT] = "Compact",
};

/* All waiting writes become one transaction. If one of them has to be synced at once, a single sync
 * acknowledges them all. If all of them may_sync_later, they are acknowledged before the sync,
 * which follows within a second. */
struct sqlite_store {
	struct store store;
	bool only_reads;
	/* Once the thread has started, it alone uses these four, except for the name of the file.
	 */
	struct sqlite_file file;
	struct items *items;
	uint64_t unsynced_since_ns; /* time of the first commit since the last sync; 0: all is
				       synced */
	/* The first I/O error of a write or a sync, or 0. It is kept here, since the kernel reports
	 * each error only once. */
	int failed_rc;
	bool has_thread;
	uv_thread_t thread;
	uv_mutex_t mutex;
	uv_cond_t work;
	struct {
		struct tickets waiting;
		bool closing;
	} locked;
	atomic_ulong counts[ITEMS_KINDS]; /* number of ops requested, by kind */
};

/* A caller that waits for the thread, and the op that it requests. */
struct sqlite_ticket {
	struct ticket ticket;
	struct items_op op;
	const struct call_limits *limits;
	bool is_given_up; /* its limits were over before it was queued */
	bool is_held;     /* it is queued together with the next one of the connection */
};
struct sqlite_conn {
	struct store_conn conn;
	struct sqlite_ticket ticket, begun; /* `begun` is for begin_write() */
};

static struct sqlite_store *store_of(const struct store *store)
{
	return (struct sqlite_store *)(uintptr_t)store;
}

static struct sqlite_ticket *ticket_of(struct store_conn *conn)
{
	return &((struct sqlite_conn *)conn)->ticket;
}

static struct sqlite_ticket *begun_of(struct store_conn *conn)
{
	return &((struct sqlite_conn *)conn)->begun;
}

static struct items_op *op_of(struct ticket *ticket)
{
	return &((struct sqlite_ticket *)ticket)->op;
}

/* Every kind up to ITEMS_SYNC is a write. */
static bool is_write(struct ticket *ticket)
{
	return op_of(ticket)->kind <= ITEMS_SYNC;
}

/* The tickets to take off the queue. OVERDUE are those that have waited for as long as the file may
 * be locked. */
enum choice { READS, WRITES, OVERDUE };

static bool is_chosen(struct ticket *ticket, enum choice choice, uint64_t now_ns)
{
	if (choice == OVERDUE)
		return now_ns >= ticket->since_ns + SQLITE_LOCKED_MAX_S * NS_PER_S;
	return is_write(ticket) == (choice == WRITES);
}

/* Moves the chosen tickets from the queue to *ret, in order. */
static void take_tickets(struct sqlite_store *store, enum choice choice, struct tickets *ret)
{
	const uint64_t now_ns = clock_boot_ns();

	uv_mutex_lock(&store->mutex);
	for (struct ticket *next, *t = store->locked.waiting.first; t; t = next) {
		next = t->next;
		if (is_chosen(t, choice, now_ns))
			ticket_move(t, ret, TICKET_TAKEN);
	}
	uv_mutex_unlock(&store->mutex);
}

/* Answers a list of tickets. If the SQLite result code rc is an error, all of them fail, whatever
 * outcome each had. An answered ticket stays TAKEN, since await_answer() only asks whether it still
 * waits. */
static void answer_tickets(struct sqlite_store *store, struct tickets *list, int rc)
{
	const bool has_failed = rc != SQLITE_OK;
	for (struct ticket *t = list->first; has_failed && t; t = t->next) {
		struct items_op *op = op_of(t);
		text_clear(&op->rows);
		op->outcome = sqlite_failure(store->file.db, rc, store->file.name, &op->problem);
	}
	tickets_wake(list);
}

/* The low byte of an SQLite result code is the primary one; the rest is detail. */
static int primary_code(int rc)
{
	return rc & 0xff;
}

/* Answers a list of tickets, or puts them back into the queue if the file was locked. Returns
 * whether it was locked. */
static bool answer_or_requeue(struct sqlite_store *store, struct tickets *list, int rc)
{
	if (primary_code(rc) != SQLITE_BUSY) {
		answer_tickets(store, list, rc);
		return false;
	}
	uv_mutex_lock(&store->mutex);
	while (list->first)
		ticket_move(list->first, &store->locked.waiting, TICKET_WAITS);
	uv_mutex_unlock(&store->mutex);
	return true;
}

/* Performs a read, or compacts the file, which is in no transaction of other writes. Returns
 * SQLITE_OK with the outcome set, or the result code of an SQLite failure. */
static int perform_read(struct sqlite_store *store, struct items_op *op)
{
	/* To compact the file is to write it, and to checkpoint the log. */
	const bool has_failed = op->kind == ITEMS_COMPACT && store->failed_rc;
	const int rc = has_failed ? store->failed_rc : items_apply(store->items, op);

	if (sqlite_file_is_unchanged(&store->file))
		return rc;
	text_clear(&op->rows);
	op->outcome = outcome_error(&op->problem, OUTCOME_SETUP,
		"%s: another process has begun to write to it: run again", store->file.name);
	return SQLITE_OK;
}

/* Performs the reads in the queue, one by one. It does so outside of a write transaction, so that
 * they never show uncommitted rows. Returns whether the file was locked. */
static bool perform_reads(struct sqlite_store *store)
{
	bool locked = false;
	struct tickets list = {0}, one = {0};

	take_tickets(store, READS, &list);
	for (struct ticket *t = list.first; t; t = list.first) {
		ticket_move(t, &one, TICKET_TAKEN);
		locked |= answer_or_requeue(store, &one, perform_read(store, op_of(t)));
	}
	return locked;
}

/* Remembers an I/O error, after which the state of the log on the disk is unknown. All later writes
 * of this process fail. The next process that opens the file writes the log again, with the same
 * bytes. So when this process closes the file, SQLite must not checkpoint and remove the log.
 */
static void remember_failure(struct sqlite_store *store, int rc)
{
	if (primary_code(rc) != SQLITE_IOERR || store->failed_rc)
		return;
	store->failed_rc = rc;
	sqlite3_db_config(store->file.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* Syncs the committed writes. A failed sync is not retried, since a later sync would seem to
 * succeed (see items_sync()). */
static int sync_file(struct sqlite_store *store)
{
	store->unsynced_since_ns = 0;
	const int rc = items_sync(store->items);
	remember_failure(store, rc);
	return rc;
}

/* Performs the writes in the queue as one transaction. Returns whether another process had the file
 * locked. The writes are taken off the queue only once this process has locked the file for them:
 * until then their callers may withdraw them. */
static bool perform_writes(struct sqlite_store *store)
{
	/* After an I/O error, all writes fail with it. */
	int rc = store->failed_rc ? store->failed_rc : items_begin(store->items);
	struct tickets list = {0};
	bool may_sync_later = true; /* all of the writes may be synced later */

	if (primary_code(rc) == SQLITE_BUSY)
		return true;
	take_tickets(store, WRITES, &list);
	for (struct ticket *t = list.first; t && !rc; t = t->next) {
		const struct item_write *write = op_of(t)->write; /* NULL for an ITEMS_SYNC */
		may_sync_later &= write && write->may_sync_later;
		rc = items_apply(store->items, op_of(t));
	}
	if (!rc)
		rc = items_commit(store->items);
	if (!rc && !store->unsynced_since_ns)
		store->unsynced_since_ns = clock_boot_ns();
	if (!rc && !may_sync_later)
		rc = sync_file(store);
	remember_failure(store, rc);
	if (rc)
		items_rollback(store->items);
	return answer_or_requeue(store, &list, rc);
}

static bool has_write(const struct tickets *list)
{
	for (struct ticket *t = list->first; t; t = t->next)
		if (is_write(t))
			return true;
	return false;
}

/* Returns the time at which the file has to be synced, or 0 if all is synced. */
static uint64_t sync_due_ns(const struct sqlite_store *store)
{
	return store->unsynced_since_ns ? store->unsynced_since_ns + SYNC_LATER_NS : 0;
}

/* Waits until there are tickets, a sync is due, or the store is closing. Returns false if it is
 * closing and no ticket waits. *ret_has_writes is set if one of the tickets is a write. */
static bool wait_for_work(struct sqlite_store *store, bool *ret_has_writes)
{
	uv_mutex_lock(&store->mutex);
	wait_until(store->locked.waiting.n || store->locked.closing, .cond = &store->work,
		.mutex = &store->mutex, .deadline_ns = sync_due_ns(store));
	const bool is_at_end = store->locked.closing && !store->locked.waiting.n;
	*ret_has_writes = has_write(&store->locked.waiting);
	uv_mutex_unlock(&store->mutex);
	return !is_at_end;
}

/* The thread of the store. It removes old sessions once, unless the store is only read, and then
 * performs the callers' ops until the store is closed. */
static void run_thread(void *arg)
{
	struct sqlite_store *store = arg;
	char boot[37];
	bool has_writes;

	thread_be_batch(); /* this thread is woken often, and does little each time */
	clock_boot_id(boot);
	const int rc = store->only_reads ? SQLITE_OK
					 : items_sweep_sessions(store->items, clock_wall_s(), boot);
	if (rc) /* only housekeeping: if the file is locked, the next run does it */
		log_debug("%s: old sessions not swept: %s", store->file.name, sqlite3_errstr(rc));
	while (wait_for_work(store, &has_writes)) {
		/* No caller waits for this sync, nor for the last one below. If one fails,
		 * sync_file() remembers that for later writes. */
		if (sync_due_ns(store) && clock_boot_ns() >= sync_due_ns(store))
			sync_file(store);
		bool locked = perform_reads(store);
		if (has_writes)
			locked |= perform_writes(store);
		if (!locked)
			continue;
		/* Another process has locked the file. Tickets that have waited too long fail; the
		 * rest wait a moment. */
		struct tickets overdue = {0};
		take_tickets(store, OVERDUE, &overdue);
		answer_tickets(store, &overdue, SQLITE_BUSY);
		uv_sleep(1 + (unsigned)random_below(3));
	}
	if (sync_due_ns(store))
		sync_file(store);
}

static void queue_locked(struct sqlite_store *store, struct ticket *ticket)
{
	ticket->since_ns = clock_boot_ns();
	ticket_move(ticket, &store->locked.waiting, TICKET_WAITS);
}

/* Queues a ticket of the connection, and before it the one that is held. Both come under one mutex,
 * so that the thread performs them in one transaction. */
static void queue_ticket(struct store_conn *conn, struct sqlite_ticket *ticket)
{
	struct sqlite_store *store = store_of(conn->store);
	struct sqlite_ticket *begun = begun_of(conn);

	uv_mutex_lock(&store->mutex);
	if (!store->locked.waiting.n) /* otherwise the thread is awake, or being woken */
		uv_cond_signal(&store->work);
	if (begun->is_held)
		queue_locked(store, &begun->ticket);
	if (ticket != begun)
		queue_locked(store, &ticket->ticket);
	uv_mutex_unlock(&store->mutex);
	begun->is_held = false;
}

/* Waits for the answer to a ticket in the queue. Returns false if the limits ended before the
 * thread had begun with it. Then the ticket was withdrawn, and nothing was applied. */
static bool await_answer(
	struct sqlite_store *store, struct ticket *ticket, const struct call_limits *limits)
{
	/* The body of the loop runs once the limits have ended. A ticket that the thread has taken
	 * can be withdrawn only if the thread puts it back into the queue because another process
	 * has locked the file. So withdrawing is tried every LOOK_NS until the ticket is
	 * answered. */
	while (!wakeup_await(
		&ticket->wakeup, limits->deadline_ns, limits->abandon, limits->abandon_arg)) {
		uv_mutex_lock(&store->mutex);
		const bool waits = ticket->state == TICKET_WAITS;
		if (waits)
			ticket_move(ticket, NULL, TICKET_ANSWERED);
		uv_mutex_unlock(&store->mutex);
		if (waits)
			return false;
		if (wakeup_await(&ticket->wakeup, clock_boot_ns() + LOOK_NS, NULL, NULL))
			break;
	}
	return true;
}

/* Prepares a ticket for a copy of the op. */
static void prepare_ticket(struct sqlite_store *store, struct sqlite_ticket *ticket,
	const struct items_op *wanted, const struct call_limits *limits)
{
	ticket->op = *wanted;
	ticket->op.rows = TEXT(ROWS_BYTES);
	ticket->limits = limits ? limits : &no_limits;
	ticket->is_given_up = limits_are_over(ticket->limits);
	atomic_fetch_add_explicit(&store->counts[wanted->kind], 1, memory_order_relaxed);
}

/* Waits until the ticket's op was performed. The op has the results; the caller frees its rows. */
static enum outcome await_ticket(
	struct sqlite_store *store, struct sqlite_ticket *ticket, struct problem *ret_problem)
{
	struct items_op *op = &ticket->op;

	if (ticket->is_given_up || !await_answer(store, &ticket->ticket, ticket->limits)) {
		op->outcome = OUTCOME_ABANDONED;
		problem_set(&op->problem, "%s: stopped before it had answered", store->file.name);
	}
	/* These two outcomes leave op->problem unset. */
	if (op->outcome == OUTCOME_REFUSED || op->outcome == OUTCOME_ABSENT)
		problem_set(ret_problem, "%s: %s", store->file.name, outcome_name(op->outcome));
	else if (ret_problem && op->outcome != OUTCOME_OK)
		*ret_problem = op->problem;
	return op->outcome;
}

/* Has the thread perform a copy of the op, in the connection's ticket. The copy gets the results;
 * the caller frees its rows. */
static enum outcome perform(struct store_conn *conn, const struct items_op *wanted,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct sqlite_ticket *ticket = ticket_of(conn);

	prepare_ticket(store_of(conn->store), ticket, wanted, limits);
	if (!ticket->is_given_up)
		queue_ticket(conn, ticket);
	return await_ticket(store_of(conn->store), ticket, ret_problem);
}

/* Moves the item of an op that yields at most one to *ret: the result of a get, the present item of
 * a refused write, or the new one of a write that `returns_item`. Returns the outcome of the op, or
 * that of reading the item. */
static enum outcome take_single(
	struct items_op *op, enum outcome outcome, struct item *ret, struct problem *ret_problem)
{
	struct text *rows = &op->rows;

	if (rows->len && ret) {
		const char *at = rows->data;
		const struct items_row row = items_row_take(&at);
		const enum outcome decoded = items_row_decode(&row, ret, ret_problem);
		if (decoded != OUTCOME_OK)
			outcome = decoded;
	}
	text_clear(rows);
	return outcome;
}

/* Performs an op that yields many items, and hands them out. The visitor may use the connection, so
 * the rows are taken out of its op first. */
static enum outcome perform_many(struct store_conn *conn, const struct items_op *wanted,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	enum outcome outcome = perform(conn, wanted, limits, ret_problem);
	struct items_op *op = &ticket_of(conn)->op;
	struct text rows = op->rows;
	const char *at = rows.data;

	op->rows = TEXT(0); /* the visitor may perform another op */
	if (outcome == OUTCOME_OK)
		*ret_more = op->more;
	while (outcome == OUTCOME_OK && rows.len && at < rows.data + rows.len) {
		const struct items_row row = items_row_take(&at);
		const struct found_item found = {
			.key = row.key, .packed = row.doc, .packed_bytes = row.doc_bytes};
		const int r = each(arg, &found);
		if (r == -EBADMSG)
			outcome = items_row_outcome(r, row.key, ret_problem);
		else if (r)
			outcome = outcome_error(ret_problem, OUTCOME_LOCAL,
				"reading the marks was stopped before its end");
	}
	text_clear(&rows);
	return outcome;
}

/* All four kinds of writes are performed alike, but counted apart. */
static struct items_op op_of_write(struct item_key key, const struct item_write *write)
{
	const bool takes = write->or_absent || write->returns_item;

	return (struct items_op){.kind = write->item      ? ITEMS_PUT
					 : write->removes ? ITEMS_DELETE
					 : takes          ? ITEMS_TAKE
							  : ITEMS_UPDATE,
		.key = key,
		.write = write};
}

/* Requests the write, and does not wait. The op is copied; the key and *write that it points to are
 * borrowed. The ticket is held until the connection's next op is queued, or end_write() queues it.
 * If the limits are over already, it is never queued, and end_write() returns ABANDONED. */
static void begin_write(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits)
{
	const struct items_op op = op_of_write(key, write);
	struct sqlite_ticket *begun = begun_of(conn);

	prepare_ticket(store_of(conn->store), begun, &op, limits);
	begun->is_held = !begun->is_given_up;
}

static enum outcome end_write(
	struct store_conn *conn, struct item *ret, struct problem *ret_problem)
{
	struct sqlite_ticket *begun = begun_of(conn);

	if (begun->is_held)
		queue_ticket(conn, begun);
	return take_single(&begun->op, await_ticket(store_of(conn->store), begun, ret_problem), ret,
		ret_problem);
}

static enum outcome write_item(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	const struct items_op op = op_of_write(key, write);
	const enum outcome outcome = perform(conn, &op, limits, ret_problem);

	return take_single(&ticket_of(conn)->op, outcome, ret, ret_problem);
}

/* Every read of an SQLite file is consistent, whether or not that is requested. */
static enum outcome get(struct store_conn *conn, struct item_key key, enum consistency consistency,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	const struct items_op op = {.kind = ITEMS_GET, .key = key};

	const enum outcome outcome = perform(conn, &op, limits, ret_problem);

	return take_single(&ticket_of(conn)->op, outcome, ret, ret_problem);
}

static enum outcome get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, found_visitor *each, void *arg,
	struct problem *ret_problem)
{
	enum outcome outcome = OUTCOME_OK;
	bool unused_more; /* one op finds all of its keys, however many bytes that are */

	for (size_t done = 0; done < n && outcome == OUTCOME_OK; done += ITEMS_BATCH) {
		const size_t batch = n - done < ITEMS_BATCH ? n - done : ITEMS_BATCH;
		const struct items_op op = {
			.kind = ITEMS_GET_MANY, .keys = keys + done, .n_keys = batch};
		outcome = perform_many(conn, &op, limits, each, arg, &unused_more, ret_problem);
	}
	return outcome;
}

static enum outcome query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	const struct items_op op = {.kind = ITEMS_QUERY, .range = range};

	return perform_many(conn, &op, limits, each, arg, ret_more, ret_problem);
}

static enum outcome sync_marks(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	return perform(conn, &(struct items_op){.kind = ITEMS_SYNC}, limits, ret_problem);
}

static enum outcome compact(struct store_conn *conn, const struct call_limits *limits,
	bool *ret_more, struct problem *ret_problem)
{
	const struct items_op op = {.kind = ITEMS_COMPACT};
	const enum outcome outcome = perform(conn, &op, limits, ret_problem);

	*ret_more = outcome == OUTCOME_OK && ticket_of(conn)->op.more;
	return outcome;
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct sqlite_conn *conn = calloc(1, sizeof *conn);

	if (!conn)
		return -ENOMEM;
	wakeup_init(&conn->ticket.ticket.wakeup);
	wakeup_init(&conn->begun.ticket.wakeup);
	conn->conn.store = store;
	*ret = &conn->conn;
	return 0;
}

static void conn_free(struct store_conn *conn)
{
	wakeup_clear(&ticket_of(conn)->ticket.wakeup);
	wakeup_clear(&begun_of(conn)->ticket.wakeup);
	free(conn);
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	if (i >= ITEMS_KINDS)
		return NULL;
	*ret_count = atomic_load_explicit(&store_of(store)->counts[i], memory_order_relaxed);
	return kinds[i];
}

/* Frees a store that may be half made. The thread ends once it has performed all waiting ops. */
static void close_store(struct store *store)
{
	struct sqlite_store *sqlite = store_of(store);

	if (sqlite->has_thread) {
		uv_mutex_lock(&sqlite->mutex);
		sqlite->locked.closing = true;
		uv_cond_signal(&sqlite->work);
		uv_mutex_unlock(&sqlite->mutex);
		uv_thread_join(&sqlite->thread);
	}
	items_free(sqlite->items);
	sqlite3_close(sqlite->file.db);
	uv_cond_destroy(&sqlite->work);
	uv_mutex_destroy(&sqlite->mutex);
	free(sqlite->file.name);
	free(sqlite);
}

static const struct store_ops sqlite_ops = {
	.removes_for_good = true,
	.conn_new = conn_new,
	.conn_free = conn_free,
	.write = write_item,
	.begin_write = begin_write,
	.end_write = end_write,
	.get = get,
	.get_many = get_many,
	.query = query,
	.sync = sync_marks,
	.compact = compact,
	.kind = kind,
	.close = close_store,
};

/* Prepares a file that was just opened. sqlite_retry_busy() repeats this while the file is locked.
 */
static int prepare_store(void *arg)
{
	struct sqlite_store *store = arg;
	const int rc = store->items ? SQLITE_OK : items_new(store->file.db, &store->items);

	if (rc)
		return rc;
	if (store->only_reads) /* SQLite refuses every write from then on */
		return sqlite3_exec(store->file.db, "PRAGMA query_only = ON", NULL, NULL, NULL);
	/* Another process may have written to the log and failed to sync it. A sync alone would
	 * skip those bytes, so each byte of the log is written over itself, and synced. */
	return items_write_anew(store->items);
}

int store_sqlite_open(
	const char *path, enum store_use use, struct store **ret, struct problem *ret_problem)
{
	struct sqlite_store *store = calloc(1, sizeof *store);

	if (!store)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	uv_mutex_init(&store->mutex);
	uv_cond_init(&store->work);
	store->store.ops = &sqlite_ops;
	store->only_reads = use == STORE_ONLY_READ;
	/* r is 0 or -errno, and rc a result code of SQLite. */
	int r = sqlite_file_open(path, store->only_reads, &store->file, ret_problem);
	const int rc = r ? SQLITE_OK : sqlite_retry_busy(prepare_store, store);
	if (rc) {
		r = sqlite_error(store->file.db, rc, store->file.name, ret_problem);
	} else if (!r) {
		r = thread_start(&store->thread, run_thread, store);
		store->has_thread = !r;
		if (r)
			problem_set(ret_problem, "%s: " PROBLEM_NO_THREAD, store->file.name);
	}
	if (r)
		close_store(&store->store);
	else
		*ret = &store->store;
	return r;
}
