/* Temporary tables of a scan, in an SQLite database that lives in a file without a name, so that
 * memory does not grow with the number of files. SQLite makes the file in /var/tmp or SQLITE_TMPDIR
 * once its cache is full, and it is gone with the process. For one thread at a time. */
#pragma once
#include "base/problem.h"
#include <sqlite3.h>

/* Opens a database, makes its tables with create_sql, and begins the one transaction that all its
 * changes belong to. Returns SQLite's result; whatever it is, the caller closes *ret. */
int scratch_open(const char *create_sql, sqlite3 **ret);
/* Sets the sentence of this SQLite error. `failed` says what cannot be done ("the keys cannot be
 * sorted", for instance). Returns the -errno of the scan: -ECANCELED, -ENOMEM or -EIO. */
int scratch_failed(sqlite3 *db, int rc, const char *failed, struct problem *ret_problem);
