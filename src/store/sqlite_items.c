/* The operations on an SQLite connection: SQL and rows, without threads. The thread of sqlite.c
 * performs them, and begins a transaction before it writes. The conditions of a write are tested on
 * the row within that transaction. */
#include "base/statements.h"
#include "store/item_pack.h"
#include "store/sqlite.h"
#include "store/sqlite_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMPACT_PAGES "500" /* freed at a time: 2 MiB */
#define INSERT_ROW    "INSERT INTO items(pk, sk, doc) VALUES(?1, ?2, ?3)"

enum items_statement {
	ITEMS_SQL_BEGIN,
	ITEMS_SQL_SNAPSHOT,
	ITEMS_SQL_COMMIT,
	ITEMS_SQL_ROLLBACK,
	ITEMS_SQL_SELECT,
	ITEMS_SQL_INSERT,
	ITEMS_SQL_UPSERT,
	ITEMS_SQL_UPDATE,
	ITEMS_SQL_DELETE,
	ITEMS_SQL_RANGE,
	ITEMS_SQL_SWEEP,
	ITEMS_SQL_STATEMENTS
};

struct items {
	sqlite3 *db;
	sqlite3_stmt *statements[ITEMS_SQL_STATEMENTS];
};

static const char *const sql[ITEMS_SQL_STATEMENTS] = {
	[ITEMS_SQL_BEGIN] = "BEGIN IMMEDIATE",
	[ITEMS_SQL_SNAPSHOT] = "BEGIN",
	[ITEMS_SQL_COMMIT] = "COMMIT",
	[ITEMS_SQL_ROLLBACK] = "ROLLBACK",
	[ITEMS_SQL_SELECT] = "SELECT doc FROM items WHERE pk = ?1 AND sk = ?2",
	[ITEMS_SQL_INSERT] = INSERT_ROW " ON CONFLICT DO NOTHING",
	[ITEMS_SQL_UPSERT] = INSERT_ROW " ON CONFLICT(pk, sk) DO UPDATE SET doc = excluded.doc",
	[ITEMS_SQL_UPDATE] = "UPDATE items SET doc = ?3 WHERE pk = ?1 AND sk = ?2",
	[ITEMS_SQL_DELETE] = "DELETE FROM items WHERE pk = ?1 AND sk = ?2",
	[ITEMS_SQL_RANGE] = "SELECT sk, doc FROM items WHERE pk = ?1 AND sk >= ?2 ORDER BY sk",
	/* '$' follows '#', so these are the keys that begin with "session#". A damaged row stays,
	 * since it has no `expires`. */
	[ITEMS_SQL_SWEEP] = "DELETE FROM items WHERE pk >= 'session#' AND pk < 'session$'"
			    " AND attribute(doc, 'expires') < ?1"
			    " AND (attribute(doc, 'state') IS NOT 'open'"
			    " OR attribute(doc, 'boot') IS NOT ?2)",
};

/* Implements SQL's attribute(doc, name): the attribute of the item as a string or an integer. NULL
 * if it is absent, of another type, or if the doc is damaged. */
static void sql_attribute(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	const void *doc = sqlite3_value_blob(arguments[0]);
	const char *name = (const char *)sqlite3_value_text(arguments[1]);
	struct item item = {0};
	int64_t number;

	if (item_unpack((struct item_key){"", ""}, doc, (size_t)sqlite3_value_bytes(arguments[0]),
		    &item))
		return; /* the result stays NULL */
	if (item_string(&item, name))
		sqlite3_result_text(context, item_string(&item, name), -1, SQLITE_TRANSIENT);
	else if (!item_number(&item, name, &number))
		sqlite3_result_int64(context, number);
	item_clear(&item);
}

int items_new(sqlite3 *db, struct items **ret)
{
	struct items *items = calloc(1, sizeof *items);

	if (!items)
		return SQLITE_NOMEM;
	items->db = db;
	int rc = sqlite3_exec(db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_create_function_v2(db, "attribute", 2,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL, sql_attribute,
			NULL, NULL, NULL);
	if (!rc)
		rc = statements_prepare(db, sql, ITEMS_SQL_STATEMENTS, items->statements);
	if (rc)
		items_free(items);
	else
		*ret = items;
	return rc;
}

void items_free(struct items *items)
{
	if (!items)
		return;
	statements_finalize(items->statements, ITEMS_SQL_STATEMENTS);
	free(items);
}

/* Runs a statement that yields no rows. Returns an SQLite result code: sqlite3_reset() returns the
 * error of the last step, here and below. */
static int items_run(struct items *items, enum items_statement which)
{
	sqlite3_step(items->statements[which]);
	return sqlite3_reset(items->statements[which]);
}

/* Binds the key to the first two parameters of a statement, which borrows it until it is reset.
 * Returns the statement. */
static sqlite3_stmt *items_bind_key(
	struct items *items, enum items_statement which, struct item_key key)
{
	sqlite3_stmt *statement = items->statements[which];

	sqlite3_bind_text(statement, 1, key.pk, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, key.sk, -1, SQLITE_STATIC);
	return statement;
}

int items_begin(struct items *items)
{
	return items_run(items, ITEMS_SQL_BEGIN);
}

int items_commit(struct items *items)
{
	return items_run(items, ITEMS_SQL_COMMIT);
}

/* Finds SQLite's file of the log. For SQLite a WAL is one kind of journal. *ret is NULL for a store
 * in memory. Returns an SQLite result code. */
static int find_log(struct items *items, sqlite3_file **ret)
{
	int rc = sqlite3_file_control(items->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, ret);

	if (*ret && !(*ret)->pMethods)
		*ret = NULL;
	return rc;
}

/* The sync is not left to PRAGMA synchronous = FULL, which would sync with each commit. The pragma
 * cannot be set for some transactions only: it has to be set before a transaction begins, but
 * sqlite.c knows only afterwards which writes are in the transaction, and whether they need a sync.
 */
int items_sync(struct items *items)
{
	sqlite3_file *log = NULL;
	int rc = find_log(items, &log);

	return (rc || !log) ? rc : log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

/* Writes each byte of the log over itself, and syncs the log. Otherwise a sync would skip bytes
 * that an earlier sync has failed to write, since Linux counts them as written. */
static int write_over_itself(sqlite3_file *log)
{
	static const int piece_bytes = 1 << 16; /* SQLite accepts less than 128 KiB at once */
	char *piece = malloc((size_t)piece_bytes);
	sqlite3_int64 size = 0;
	int rc = piece ? log->pMethods->xFileSize(log, &size) : SQLITE_NOMEM;

	for (sqlite3_int64 at = 0; at < size && !rc; at += piece_bytes) {
		const int n = size - at < piece_bytes ? (int)(size - at) : piece_bytes;
		rc = log->pMethods->xRead(log, piece, n, at);
		if (!rc)
			rc = log->pMethods->xWrite(log, piece, n, at);
	}
	free(piece);
	return (rc || !size) ? rc : log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

/* While the log is written over itself, the transaction keeps other processes from writing to it or
 * restarting it. */
int items_write_anew(struct items *items)
{
	sqlite3_file *log = NULL;
	int rc = items_begin(items);

	if (!rc)
		rc = find_log(items, &log);
	if (!rc && log)
		rc = write_over_itself(log);
	items_rollback(items);
	return rc;
}

void items_rollback(struct items *items)
{
	if (!sqlite3_get_autocommit(items->db))
		items_run(items, ITEMS_SQL_ROLLBACK);
}

int items_sweep_sessions(struct items *items, int64_t now_s, const char *boot)
{
	sqlite3_bind_int64(items->statements[ITEMS_SQL_SWEEP], 1, now_s);
	sqlite3_bind_text(items->statements[ITEMS_SQL_SWEEP], 2, boot, -1, SQLITE_TRANSIENT);
	return items_run(items, ITEMS_SQL_SWEEP);
}

enum outcome items_row_outcome(int r, struct item_key key, struct problem *ret_problem)
{
	if (!r)
		return OUTCOME_OK;
	struct text of = TEXT(400); /* long keys are cut */
	const char *what = r == -EBADMSG    ? "is damaged: delete its row"
			   : r == -EMSGSIZE ? "is larger than 400 KB"
			   : r == -EILSEQ   ? "holds text that is not UTF-8"
					    : "out of memory";
	text_add(&of, "item pk=\"");
	text_add_escaped_string(&of, key.pk);
	text_add(&of, "\" sk=\"");
	text_add_escaped_string(&of, key.sk);
	text_add_char(&of, '"');
	problem_set(ret_problem, "%s %s", text_string(&of), what);
	text_clear(&of);
	return r == -ENOMEM ? OUTCOME_LOCAL : r == -EBADMSG ? OUTCOME_SETUP : OUTCOME_INVALID;
}

enum outcome items_row_decode(
	const struct items_row *row, struct item *ret, struct problem *ret_problem)
{
	return items_row_outcome(
		item_unpack(row->key, row->doc, row->doc_bytes, ret), row->key, ret_problem);
}

enum outcome items_row_encode(struct item_key key, const struct item *item, struct text *ret_doc,
	struct problem *ret_problem)
{
	*ret_doc = TEXT(DOC_BYTES);
	const int error = item_pack(item, ret_doc);

	if (error)
		text_clear(ret_doc);
	return items_row_outcome(error, key, ret_problem);
}

struct items_row items_row_take(const char **at)
{
	const char *pk = *at, *sk = pk + strlen(pk) + 1, *bytes = sk + strlen(sk) + 1;
	struct items_row row = {{pk, sk}, bytes + sizeof row.doc_bytes, 0};

	memcpy(&row.doc_bytes, bytes, sizeof row.doc_bytes);
	*at = (const char *)row.doc + row.doc_bytes;
	return row;
}

/* Adds a row to the op's rows: pk and sk with their NULs, the length of the doc, and the doc.
 * Returns an SQLite result code. */
static int add_op_row(struct items_op *op, const struct items_row *row)
{
	text_add_bytes(&op->rows, row->key.pk, strlen(row->key.pk) + 1);
	text_add_bytes(&op->rows, row->key.sk, strlen(row->key.sk) + 1);
	text_add_bytes(&op->rows, &row->doc_bytes, sizeof row->doc_bytes);
	text_add_bytes(&op->rows, row->doc, row->doc_bytes);
	return op->rows.error ? SQLITE_NOMEM : SQLITE_OK;
}

/* Adds the row of a statement, whose column with this number is the doc. Returns an SQLite result
 * code. An empty blob, which no doc is, counts as damaged. */
static int add_found_row(
	struct items_op *op, struct item_key key, sqlite3_stmt *statement, int column)
{
	const void *doc = sqlite3_column_blob(statement, column);
	const struct items_row row = {
		key, doc ? doc : "", (size_t)sqlite3_column_bytes(statement, column)};

	return add_op_row(op, &row);
}

/* Finds one row and adds it to the op's rows. Returns an SQLite result code; an absent row is no
 * error. */
static int find_row(struct items *items, struct items_op *op, struct item_key key, bool *ret_found)
{
	sqlite3_stmt *select = items_bind_key(items, ITEMS_SQL_SELECT, key);
	int rc = SQLITE_OK;

	*ret_found = sqlite3_step(select) == SQLITE_ROW;
	if (*ret_found)
		rc = add_found_row(op, key, select, 0);
	int reset = sqlite3_reset(select);
	return rc ? rc : reset;
}

/* Finds several rows, in one transaction. Without it, each search would take and give back two
 * locks of the file. */
static int get_many(struct items *items, struct items_op *op)
{
	bool found;
	int rc = items_run(items, ITEMS_SQL_SNAPSHOT);

	for (size_t i = 0; i < op->n_keys && !rc; i++)
		rc = find_row(items, op, op->keys[i], &found);
	if (!rc)
		rc = items_run(items, ITEMS_SQL_COMMIT);
	if (rc)
		items_rollback(items);
	return rc;
}

/* Adds the rows of a range to the op's rows, until the page is full. `more` is set once a further
 * row is found. */
static int query(struct items *items, struct items_op *op)
{
	const struct store_range *range = op->range;
	const struct item_key from = {range->pk, range->from ? range->from : ""};
	sqlite3_stmt *select = items_bind_key(items, ITEMS_SQL_RANGE, from);
	unsigned count = 0;
	int rc = SQLITE_OK;

	text_reserve(&op->rows, ITEMS_PAGE); /* growing step by step would wipe each step */
	while (!rc && sqlite3_step(select) == SQLITE_ROW) {
		const char *sk = (const char *)sqlite3_column_text(select, 0);
		if (!sk) { /* the column is NOT NULL */
			rc = SQLITE_NOMEM;
			break;
		}
		if (range->after && range->from && strcmp(sk, range->from) == 0)
			continue;
		if (range->to && strcmp(sk, range->to) > 0)
			break;
		const bool has_max = range->max_items && count == range->max_items;
		if (has_max || op->rows.len >= ITEMS_PAGE) {
			op->more = true;
			break;
		}
		rc = add_found_row(op, (struct item_key){range->pk, sk}, select, 1);
		count++;
	}
	int reset = sqlite3_reset(select);
	return rc ? rc : reset;
}

static int delete_row(struct items *items, struct item_key key)
{
	items_bind_key(items, ITEMS_SQL_DELETE, key);
	return items_run(items, ITEMS_SQL_DELETE);
}

/* Makes the doc that a put or an update writes. An update changes `item`, the item found, into the
 * new one. The caller clears *ret_doc. OK, or the fault with a sentence. */
static enum outcome make_doc(struct items_op *op, struct item *item, struct text *ret_doc)
{
	const bool is_update = !op->write->item;
	const int r = is_update ? write_update(op->write, item) : 0;

	if (r)
		return items_row_outcome(r, op->key, &op->problem);
	return items_row_encode(op->key, is_update ? item : op->write->item, ret_doc, &op->problem);
}

/* Performs a put or an update whose conditions are met. For an update, `item` is the item found, or
 * empty, and becomes the new item. `found`: a search has found the row.
 *
 * A put if absent comes here with its condition untested: the INSERT fails if the row exists. That
 * saves one of two searches for each new file. If it is refused, or if the write
 * `returns_item`, the row is left in op->rows.
 *
 * Returns an SQLite result code. An item that cannot be written is no failure of SQLite;
 * op->outcome has its fault. */
static int write_row(struct items *items, struct items_op *op, struct item *item, bool found)
{
	const bool if_absent = write_puts_if_absent(op->write, "pk");
	struct text doc = TEXT(0);

	op->outcome = make_doc(op, item, &doc);
	if (op->outcome != OUTCOME_OK)
		return SQLITE_OK;
	const enum items_statement which = if_absent ? ITEMS_SQL_INSERT
					   : found   ? ITEMS_SQL_UPDATE
						     : ITEMS_SQL_UPSERT;
	sqlite3_bind_blob(
		items_bind_key(items, which, op->key), 3, doc.data, (int)doc.len, SQLITE_STATIC);
	int rc = items_run(items, which);
	const bool is_refused = if_absent && !sqlite3_changes(items->db); /* the row exists */
	if (!rc && is_refused) {
		op->outcome = OUTCOME_REFUSED;
		rc = find_row(items, op, op->key, &found);
	} else if (!rc && op->write->returns_item) {
		rc = add_op_row(op, &(struct items_row){op->key, doc.data, doc.len});
	}
	text_clear(&doc);
	return rc;
}

/* Performs a write if its conditions are met. If it is refused, the present row is left in
 * op->rows, where find_row() has put it. Returns an SQLite result code, with the outcome in
 * op->outcome if it is OK. */
static int perform_write(struct items *items, struct items_op *op)
{
	const struct item_write *write = op->write;
	/* The present row is needed only for updates and for conditions. For a put if absent,
	 * INSERT itself tests the condition. */
	const bool is_update = !write->item && !write->removes;
	const bool insert_tests = write_puts_if_absent(write, "pk");
	const bool has_to_look = is_update || (write->n_conditions && !insert_tests);
	bool found = false;
	int rc = has_to_look ? find_row(items, op, op->key, &found) : SQLITE_OK;
	struct item item = {0};

	if (rc)
		return rc;
	if (found) {
		const char *at = op->rows.data;
		const struct items_row row = items_row_take(&at);
		op->outcome = items_row_decode(&row, &item, &op->problem);
	}
	if (op->outcome == OUTCOME_OK && !write_conditions_met(write, &item, found))
		op->outcome = OUTCOME_REFUSED;
	else
		text_reset(&op->rows); /* only a refusal or `returns_item` returns a row */
	if (op->outcome == OUTCOME_OK)
		rc = write->removes ? delete_row(items, op->key)
				    : write_row(items, op, &item, found);
	item_clear(&item);
	return rc;
}

/* Returns some free pages to the file system. A file that was made without auto_vacuum is rewritten
 * once, as a whole.
 *
 * The file becomes shorter only when its log is written back into it. That fails while another
 * process reads the file. Then the last process that closes the file writes the log back. */
static int compact(struct items *items, struct items_op *op)
{
	int mode, left = 0;
	int rc = sqlite_read_number(items->db, "PRAGMA auto_vacuum", &mode);

	if (!rc)
		rc = sqlite3_exec(items->db,
			mode ? "PRAGMA incremental_vacuum(" COMPACT_PAGES ")"
			     : "PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
			NULL, NULL, NULL);
	if (!rc)
		rc = sqlite_read_number(items->db, "PRAGMA freelist_count", &left);
	op->more = !rc && left > 0;
	if (!rc && !op->more) /* a failure only delays that, see above */
		sqlite3_exec(items->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	return rc;
}

int items_apply(struct items *items, struct items_op *op)
{
	bool found = false;
	int rc;

	op->more = false;
	op->outcome = OUTCOME_OK;
	text_reset(&op->rows);
	switch (op->kind) {
	case ITEMS_SYNC:
		return SQLITE_OK;
	case ITEMS_GET:
		rc = find_row(items, op, op->key, &found);
		op->outcome = found ? OUTCOME_OK : OUTCOME_ABSENT;
		return rc;
	case ITEMS_GET_MANY:
		return get_many(items, op);
	case ITEMS_QUERY:
		return query(items, op);
	case ITEMS_COMPACT:
		return compact(items, op);
	default:
		return perform_write(items, op);
	}
}
