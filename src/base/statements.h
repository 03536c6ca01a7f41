/* Helpers of all code that uses SQLite: they prepare statements once for many uses, and read text
 * from their rows. Only the thread that uses the database may call them. */
#pragma once
#include <sqlite3.h>
#include <stddef.h>

/* Prepares n statements that are used again and again. Returns SQLite's result. After an error, the
 * rest of *ret is unchanged. */
int statements_prepare(sqlite3 *db, const char *const *sql, size_t n, sqlite3_stmt **ret);
/* Frees n statements, of which any may be NULL. */
void statements_finalize(sqlite3_stmt *const *statements, size_t n);
/* The text in this column of the row; "" also if memory ran out. Borrowed from the statement. */
const char *column_string(sqlite3_stmt *s, int column);
