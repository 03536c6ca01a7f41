/* Checks that the SQLite file of a mark store is safe to use, and opens it. */
#pragma once
#include "aws/outcome.h"
#include "base/problem.h"
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>

#define SQLITE_LOCKED_MAX_S 30 /* after this time, a locked file is an error */

/* An open SQLite file. The connection belongs to one thread at a time. */
struct sqlite_file {
	sqlite3 *db;
	char *name; /* its path in messages: escaped, and perhaps shortened */
	/* It is read without SQLite's locks, so that other processes may change it meanwhile: see
	 * sqlite_file_is_unchanged(). */
	bool is_unlocked;
	struct stat seen; /* if it is unlocked: the file when it was opened */
};
/* Opens the file as described at store_sqlite_open(). The caller closes ret->db and frees
 * ret->name. Returns 0, or -errno with a sentence. */
int sqlite_file_open(
	const char *path, bool only_read, struct sqlite_file *ret, struct problem *ret_problem);
/* Whether all that was read since the file was opened is good. It may not be if the file is
 * unlocked, and a process has written to it. */
bool sqlite_file_is_unchanged(const struct sqlite_file *file);

/* Makes a sentence of an SQLite result code other than OK, about the file with this name. `db` may
 * be NULL. Returns SETUP, or LOCAL if there is no memory. */
enum outcome sqlite_failure(sqlite3 *db, int rc, const char *name, struct problem *ret_problem);
/* Likewise, but returns -ENOMEM if there is no memory, and -EIO otherwise. */
int sqlite_error(sqlite3 *db, int rc, const char *name, struct problem *ret_problem);
/* Runs the SQL, and sets *ret to the first column of its first row. Returns an SQLite result code,
 * which is SQLITE_INTERNAL if there is no row. */
int sqlite_read_number(sqlite3 *db, const char *sql, int *ret);

/* Repeats the attempt as long as it returns SQLITE_BUSY, for 30 s at most, and returns its last
 * result code. SQLite's busy handler does not suffice: it is not called for the change to WAL, for
 * a log that is being recovered, or for a file that another process is just closing. */
int sqlite_retry_busy(int (*attempt)(void *arg), void *arg);

/* Whether a statfs(2) type is that of a network file system, where SQLite's locks and shared memory
 * cannot be relied on. */
bool sqlite_path_is_remote(unsigned long type);
