/* The store for one host: the operations of store.h on an SQLite file, each of which the queue's
 * thread performs. store.c and the locks open it. No caller touches the connection itself. */
#include "store/sqlite.h"
#include "base/clock.h"
#include "store/sqlite_file.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_BYTES (ITEMS_BATCH * (DOC_BYTES + 4096))

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

struct sqlite_store {
	struct store store;
	sqlite3 *db;
	char *name;
	struct sqlite_queue *queue;
	atomic_ulong counts[ITEMS_KINDS];
};

struct sqlite_conn {
	struct store_conn conn;
	struct sqlite_ticket ticket;
};

static struct sqlite_store *store_of(const struct store *store)
{
	return (struct sqlite_store *)(uintptr_t)store;
}

static struct sqlite_ticket *ticket_of(struct store_conn *conn)
{
	return &((struct sqlite_conn *)conn)->ticket;
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct sqlite_conn *conn = calloc(1, sizeof *conn);
	int r = conn ? ticket_init(&conn->ticket.ticket) : -ENOMEM;

	if (r) {
		free(conn);
		return r;
	}
	conn->conn.store = store;
	*ret = &conn->conn;
	return 0;
}

static void conn_free(struct store_conn *conn)
{
	ticket_clear(&ticket_of(conn)->ticket);
	free(conn);
}

struct row {
	struct item_key key;
	const char *doc;
};

static struct row row_at(const char *pk)
{
	const char *sk = pk + strlen(pk) + 1;

	return (struct row){{pk, sk}, sk + strlen(sk) + 1};
}

static enum outcome decode_row(struct row row, struct item *ret, struct problem *ret_problem)
{
	int r = doc_decode(row.key, row.doc, ret);

	return r ? doc_failure(row.key, r, ret_problem) : OUTCOME_OK;
}

/* Hands the rows of an op out and frees them. The visitor may use the connection. */
static enum outcome visit_rows(
	struct items_op *op, item_visitor *each, void *arg, struct problem *ret_problem)
{
	struct text rows = op->rows;
	enum outcome outcome = OUTCOME_OK;
	struct row row;

	op->rows = TEXT(0);
	for (size_t at = 0; at < rows.len && outcome == OUTCOME_OK;
		at = (size_t)(row.doc - rows.data) + strlen(row.doc) + 1) {
		struct item item = {0};
		row = row_at(rows.data + at);
		outcome = decode_row(row, &item, ret_problem);
		if (outcome == OUTCOME_OK && each(arg, row.key.pk, row.key.sk, &item)) {
			problem_set(ret_problem, "reading the marks was ended half-way");
			outcome = OUTCOME_LOCAL;
		}
		item_clear(&item);
	}
	text_clear(&rows);
	return outcome;
}

static enum outcome perform_op(struct store_conn *conn, const struct items_op *op,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct sqlite_store *store = store_of(conn->store);
	struct sqlite_ticket *ticket = ticket_of(conn);

	ticket->op = *op;
	ticket->op.rows = TEXT(ROWS_BYTES);
	atomic_fetch_add_explicit(&store->counts[op->kind], 1, memory_order_relaxed);
	sqlite_queue_perform(store->queue, ticket, limits);
	enum outcome outcome = ticket->op.outcome;
	if (ret_problem && outcome != OUTCOME_OK) {
		if (outcome == OUTCOME_REFUSED || outcome == OUTCOME_ABSENT)
			problem_set(ret_problem, "%s: %s", store->name, outcome_name(outcome));
		else
			*ret_problem = ticket->op.problem;
	}
	return outcome;
}

/* The ops that answer with at most one item. */
static enum outcome perform_single(struct store_conn *conn, const struct items_op *op,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	enum outcome outcome = perform_op(conn, op, limits, ret_problem);
	struct text *rows = &ticket_of(conn)->op.rows;

	if (rows->len && ret) {
		enum outcome decoded = decode_row(row_at(rows->data), ret, ret_problem);
		if (decoded != OUTCOME_OK)
			outcome = decoded;
	}
	text_clear(rows);
	return outcome;
}

static enum items_kind kind_of(const struct item_write *write)
{
	if (write->item)
		return ITEMS_PUT;
	if (write->removes)
		return ITEMS_DELETE;
	return write->or_absent || write->shows ? ITEMS_TAKE : ITEMS_UPDATE;
}

static enum outcome write_item(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	char *doc = NULL;
	int r = write->item ? doc_encode(write->item, &doc) : 0;

	if (r)
		return doc_failure(key, r, ret_problem);
	const struct items_op op = {.kind = kind_of(write), .key = key, .write = write, .doc = doc};
	enum outcome outcome = perform_single(conn, &op, limits, ret, ret_problem);
	free(doc);
	return outcome;
}

static enum outcome get(struct store_conn *conn, struct item_key key, bool consistent,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	struct items_op op = {.kind = ITEMS_GET, .key = key};

	return perform_single(conn, &op, limits, ret, ret_problem);
}

static enum outcome get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem)
{
	enum outcome outcome = OUTCOME_OK;

	for (size_t done = 0; done < n && outcome == OUTCOME_OK; done += ITEMS_BATCH) {
		size_t batch = n - done < ITEMS_BATCH ? n - done : ITEMS_BATCH;
		struct items_op op = {.kind = ITEMS_GET_MANY, .keys = keys + done, .n_keys = batch};
		outcome = perform_op(conn, &op, limits, ret_problem);
		if (outcome == OUTCOME_OK)
			outcome = visit_rows(&ticket_of(conn)->op, each, arg, ret_problem);
	}
	return outcome;
}

static enum outcome query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, item_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	struct items_op op = {.kind = ITEMS_QUERY, .range = range};
	enum outcome outcome = perform_op(conn, &op, limits, ret_problem);

	if (outcome == OUTCOME_OK) {
		*ret_more = ticket_of(conn)->op.more;
		outcome = visit_rows(&ticket_of(conn)->op, each, arg, ret_problem);
	}
	return outcome;
}

static enum outcome sync_marks(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	return perform_op(conn, &(struct items_op){.kind = ITEMS_SYNC}, limits, ret_problem);
}

static enum outcome compact(struct store_conn *conn, const struct call_limits *limits,
	bool *ret_more, struct problem *ret_problem)
{
	const struct items_op op = {.kind = ITEMS_COMPACT};
	enum outcome outcome = perform_op(conn, &op, limits, ret_problem);

	*ret_more = outcome == OUTCOME_OK && ticket_of(conn)->op.more;
	return outcome;
}

static int64_t time_s(const struct store *store)
{
	return clock_wall_ns() / (int64_t)NS_PER_S;
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	if (i >= ITEMS_KINDS)
		return NULL;
	*ret_count = atomic_load_explicit(&store_of(store)->counts[i], memory_order_relaxed);
	return kinds[i];
}

static void close_store(struct store *store)
{
	struct sqlite_store *sqlite = store_of(store);

	sqlite_queue_free(sqlite->queue);
	sqlite3_close(sqlite->db);
	free(sqlite->name);
	free(sqlite);
}

static const struct store_ops sqlite_ops = {
	.removes_for_good = true,
	.conn_new = conn_new,
	.conn_free = conn_free,
	.write = write_item,
	.get = get,
	.get_many = get_many,
	.query = query,
	.sync = sync_marks,
	.compact = compact,
	.time_s = time_s,
	.kind = kind,
	.close = close_store,
};

static int open_store(
	const char *path, bool only_read, struct store **ret, struct problem *ret_problem)
{
	struct sqlite_store *store = calloc(1, sizeof *store);

	if (!store) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	store->store.ops = &sqlite_ops;
	int r = sqlite_file_open(path, only_read, &store->db, &store->name, ret_problem);
	if (!r)
		r = sqlite_queue_new(store->db, store->name, &store->queue, ret_problem);
	if (r)
		close_store(&store->store);
	else
		*ret = &store->store;
	return r;
}

int store_sqlite_open(const char *path, struct store **ret, struct problem *ret_problem)
{
	return open_store(path, false, ret, ret_problem);
}

int store_sqlite_open_to_read(const char *path, struct store **ret, struct problem *ret_problem)
{
	return open_store(path, true, ret, ret_problem);
}
