#include "store/store_sqlite_statements.h"
#include <stdlib.h>

#define INSERT_ROW "INSERT INTO items(pk, sk, doc) VALUES(?1, ?2, ?3)"

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
	[ITEMS_SQL_SWEEP] = "DELETE FROM items WHERE pk >= 'session#' AND pk < 'session$'"
			    " AND CASE WHEN json_valid(doc)"
			    " THEN CAST(json_extract(doc, '$.expires.N') AS INTEGER) < ?1"
			    " AND (json_extract(doc, '$.state.S') IS NOT 'open'"
			    " OR json_extract(doc, '$.boot.S') IS NOT ?2) ELSE 0 END",
};

int items_new(sqlite3 *db, struct items **ret)
{
	struct items *items = calloc(1, sizeof *items);
	int rc = items ? SQLITE_OK : SQLITE_NOMEM;

	if (items) {
		items->db = db;
		rc = sqlite3_exec(db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
	}
	for (int i = 0; i < ITEMS_SQL_STATEMENTS && !rc; i++)
		rc = sqlite3_prepare_v3(
			db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &items->statements[i], NULL);
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
	for (int i = 0; i < ITEMS_SQL_STATEMENTS; i++)
		sqlite3_finalize(items->statements[i]);
	free(items);
}

int items_run(struct items *items, enum items_statement which)
{
	sqlite3_step(items->statements[which]);
	return sqlite3_reset(items->statements[which]);
}

sqlite3_stmt *items_bound(struct items *items, enum items_statement which, struct item_key key)
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

/* PRAGMA synchronous = FULL would do so with each commit. It cannot be set for a single one, since
 * what will be in a transaction is not known before it has begun. */
/* NULL for a store in memory. */
static int find_log(struct items *items, sqlite3_file **ret)
{
	int rc = sqlite3_file_control(items->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, ret);

	if (*ret && !(*ret)->pMethods)
		*ret = NULL;
	return rc;
}

int items_sync(struct items *items)
{
	sqlite3_file *log = NULL;
	int rc = find_log(items, &log);

	return rc || !log ? rc : log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

static int write_over_itself(sqlite3_file *log)
{
	static const int piece_bytes = 1 << 16; /* SQLite's files take less than 128 KiB at once */
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
	return rc || !size ? rc : log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

/* The transaction keeps other processes from writing to the log or beginning it anew. */
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

int items_sweep(struct items *items, int64_t now_s, const char *boot)
{
	sqlite3_bind_int64(items->statements[ITEMS_SQL_SWEEP], 1, now_s);
	sqlite3_bind_text(items->statements[ITEMS_SQL_SWEEP], 2, boot, -1, SQLITE_TRANSIENT);
	return items_run(items, ITEMS_SQL_SWEEP);
}
