/* SQLite's statements, for the marks and for the tables of a scan. */
#include "base/statements.h"

int statements_prepare(sqlite3 *db, const char *const *sql, size_t n, sqlite3_stmt **ret)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; !rc && i < n; i++)
		rc = sqlite3_prepare_v3(db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &ret[i], NULL);
	return rc;
}

void statements_finalize(sqlite3_stmt *const *statements, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sqlite3_finalize(statements[i]);
}

const char *column_string(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	return text ? text : "";
}
