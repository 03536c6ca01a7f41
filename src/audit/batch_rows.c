#include "audit/batch_rows.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct batch_rows {
	sqlite3 *db;
	sqlite3_stmt *insert, *sorted; /* sorted: NULL until the first row is asked for */
};

/* A file without a name, which SQLite makes when its cache is full, and which is gone with the
 * process. */
/* clang-format off */
static const char create_sql[] =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
	"PRAGMA temp_store = FILE; PRAGMA cache_size = -4096;"
	"CREATE TABLE tasks(key BLOB, version TEXT, failed INTEGER, absent INTEGER, code TEXT,"
	" message TEXT);"
	"BEGIN";
static const char insert_sql[] = "INSERT INTO tasks VALUES(?, ?, ?, ?, ?, ?)";
static const char sorted_sql[] = "SELECT * FROM tasks ORDER BY key";
/* clang-format on */
enum { KEY, VERSION, FAILED, ABSENT, CODE, MESSAGE };

static int sorting_failed(const struct batch_rows *rows, int rc, struct problem *ret_problem)
{
	if ((rc & 0xff) == SQLITE_NOMEM || !rows->db) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	const int error = sqlite3_system_errno(rows->db);
	problem_set(ret_problem,
		"the rows of the report cannot be sorted in a temporary file (%s%s%s); make room "
		"in /var/tmp, or name a folder with room in SQLITE_TMPDIR",
		sqlite3_errstr(rc), error ? ": " : "", error ? strerror(error) : "");
	return -EIO;
}

int batch_rows_new(struct batch_rows **ret, struct problem *ret_problem)
{
	struct batch_rows *rows = calloc(1, sizeof *rows);
	if (!rows) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	int rc = sqlite3_open_v2("", &rows->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!rc)
		rc = sqlite3_exec(rows->db, create_sql, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_prepare_v2(rows->db, insert_sql, -1, &rows->insert, NULL);
	if (rc) {
		const int error = sorting_failed(rows, rc, ret_problem);
		batch_rows_free(rows);
		return error;
	}
	*ret = rows;
	return 0;
}

void batch_rows_free(struct batch_rows *rows)
{
	if (!rows)
		return;
	sqlite3_finalize(rows->insert);
	sqlite3_finalize(rows->sorted);
	sqlite3_close(rows->db);
	free(rows);
}

int batch_rows_add(
	struct batch_rows *rows, const struct batch_row *row, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->insert;
	sqlite3_bind_blob(s, KEY + 1, row->key, (int)strlen(row->key), SQLITE_STATIC);
	sqlite3_bind_text(s, VERSION + 1, row->version_id, -1, SQLITE_STATIC);
	sqlite3_bind_int(s, FAILED + 1, row->has_failed);
	sqlite3_bind_int(s, ABSENT + 1, row->is_absent);
	sqlite3_bind_text(s, CODE + 1, row->code, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, MESSAGE + 1, row->message, -1, SQLITE_STATIC);
	sqlite3_step(s);
	const int rc = sqlite3_reset(s); /* tells also what the binding met */
	return rc ? sorting_failed(rows, rc, ret_problem) : 0;
}

static const char *text_column(sqlite3_stmt *s, int column, bool *ret_fails)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	*ret_fails |= !text;
	return text;
}

int batch_rows_next(struct batch_rows *rows, struct batch_row *ret, struct problem *ret_problem)
{
	int rc = 0;
	if (!rows->sorted)
		rc = sqlite3_prepare_v2(rows->db, sorted_sql, -1, &rows->sorted, NULL);
	if (!rc)
		rc = sqlite3_step(rows->sorted);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return sorting_failed(rows, rc, ret_problem);
	bool fails = false;
	sqlite3_stmt *s = rows->sorted;
	*ret = (struct batch_row){
		.key = text_column(s, KEY, &fails),
		.version_id = text_column(s, VERSION, &fails),
		.has_failed = sqlite3_column_int(s, FAILED) != 0,
		.is_absent = sqlite3_column_int(s, ABSENT) != 0,
		.code = text_column(s, CODE, &fails),
		.message = text_column(s, MESSAGE, &fails),
	};
	return fails ? sorting_failed(rows, SQLITE_NOMEM, ret_problem) : 1;
}
