/* SQLite's part of what a scan keeps in temporary files (scratch.h). What the tables hold is known
 * in key_order.c and rotation_table.c alone. */
#include "scan/scratch.h"
#include "scan/open.h"
#include <errno.h>
#include <string.h>

int scratch_open(const char *create_sql, sqlite3 **ret)
{
	/* The database need not survive a crash. */
	static const char pragmas[] = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
				      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = FILE;"
				      "PRAGMA cache_size = -4096";
	int rc = sqlite3_open_v2(
		"", ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!rc)
		rc = sqlite3_exec(*ret, pragmas, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_exec(*ret, create_sql, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_exec(*ret, "BEGIN", NULL, NULL, NULL);
	return rc;
}

int scratch_failed(sqlite3 *db, int rc, const char *failed, struct problem *ret_problem)
{
	/* Cancellation and lack of memory have the same sentences in every part of a scan:
	 * open_explain_fatal() sets them. `db` is NULL only if memory ran out when it was
	 * opened. */
	const int scan_error = (rc & 0xff) == SQLITE_INTERRUPT      ? -ECANCELED
			       : (rc & 0xff) == SQLITE_NOMEM || !db ? -ENOMEM
								    : 0;
	if (open_explain_fatal(scan_error, ret_problem))
		return scan_error;
	const int error = sqlite3_system_errno(db); /* errno of the failed system call, or 0 */
	return problem_error(ret_problem, -EIO,
		"%s in a temporary file (%s%s%s); make room in /var/tmp, or name a folder with "
		"room in SQLITE_TMPDIR",
		failed, sqlite3_errstr(rc), error ? ": " : "", error ? strerror(error) : "");
}
