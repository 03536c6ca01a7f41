#include "store/store_sqlite_file.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "store/store.h"
#include "store/store_sqlite_path.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define APPLICATION_ID 0x73336f6e /* "s3on" */
#define LAYOUT         1
#define NAME_MAX_BYTES 160
#define TO_STRING_(x)  #x
#define TO_STRING(x)   TO_STRING_(x)

static char *shown_name(const char *path)
{
	struct text shown = TEXT(4 * NAME_MAX_BYTES + 4);
	size_t n = strlen(path), skip = n > NAME_MAX_BYTES ? n - NAME_MAX_BYTES : 0;

	if (skip)
		text_add(&shown, "...");
	while (skip && ((unsigned char)path[skip] & 0xc0) == 0x80)
		skip++;
	text_add_escaped(&shown, path + skip, n - skip);
	return shown.error ? (text_clear(&shown), NULL) : shown.data;
}

enum outcome sqlite_failure(sqlite3 *db, int rc, const char *name, struct problem *ret_problem)
{
	int e = db ? sqlite3_system_errno(db) : 0;
	const char *because = e ? strerror(e) : sqlite3_errstr(rc);

	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		problem_set(ret_problem, "%s: out of memory", name);
		return OUTCOME_LOCAL;
	case SQLITE_FULL:
		problem_set(
			ret_problem, "%s: the file system is full: make room and run again", name);
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		problem_set(ret_problem,
			"%s: another process kept it locked for %d s: end that (fuser shows it) "
			"and run "
			"again",
			name, SQLITE_LOCKED_MAX_S);
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		problem_set(ret_problem,
			"%s: cannot be written: check its mode and how its file system is mounted",
			name);
		break;
	case SQLITE_NOTADB:
		problem_set(ret_problem,
			"%s: is not an SQLite file: give another path; if these are damaged "
			"marks, move the file away, and the next run compares each file with what S3 holds",
			name);
		break;
	case SQLITE_CORRUPT:
		problem_set(ret_problem,

			"%s: is damaged (%s): restore it or move it away; without marks the next "
			"run "
			"compares each file with what S3 holds",
			name, sqlite3_errstr(rc));
		break;
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_FSYNC) {
			problem_set(ret_problem,
				"%s: the last marks cannot be synced to the disk, and a failure of "
				"power may undo them: check the disk and run again, and the next run "
				"writes them once more",
				name);
			break;
		}
		problem_set(ret_problem, "%s: I/O error (%s): check the disk", name, because);
		break;
	case SQLITE_CANTOPEN:
		problem_set(ret_problem, "%s: cannot be opened (%s): check its folder and rights",
			name, because);
		break;
	default:
		problem_set(ret_problem, "%s: SQLite: %s", name, sqlite3_errstr(rc));
	}
	return OUTCOME_SETUP;
}

static int read_number(sqlite3 *db, const char *sql, int *ret)
{
	sqlite3_stmt *statement;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (rc)
		return rc;
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_INTERNAL : rc;
}

static void roll_back(sqlite3 *db)
{
	if (!sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

struct identity {
	int application, layout, tables;
};

/* In one transaction, since another process may be making the tables. */
static int identify_database(sqlite3 *db, struct identity *ret)
{
	int rc = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);

	if (!rc)
		rc = read_number(db, "PRAGMA application_id", &ret->application);
	if (!rc)
		rc = read_number(db, "PRAGMA user_version", &ret->layout);
	if (!rc)
		rc = read_number(db, "SELECT count(*) FROM sqlite_schema", &ret->tables);
	roll_back(db);
	return rc;
}

static bool is_our_file(const struct identity *identity)
{
	return identity->application == APPLICATION_ID;
}

static bool is_new_file(const struct identity *identity)
{
	return !identity->application && !identity->layout && !identity->tables;
}

/* clang-format off */
static const char create_sql[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS items(pk TEXT NOT NULL, sk TEXT NOT NULL, doc TEXT NOT NULL,"
	" PRIMARY KEY(pk, sk)) WITHOUT ROWID;"
	"PRAGMA application_id = " TO_STRING(APPLICATION_ID) ";"
	"PRAGMA user_version = " TO_STRING(LAYOUT) ";"
	"COMMIT";
/* clang-format on */

static const char settings_sql[] =
	"PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
	"PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000";

struct preparation {
	sqlite3 *db;
	bool is_anothers; /* read only */
	struct identity identity;
};

/* Nothing is written to a file that is not ours or blank. */
static int prepare_file(void *arg)
{
	struct preparation *preparation = arg;
	sqlite3 *db = preparation->db;
	struct identity *identity = &preparation->identity;
	int rc = identify_database(db, identity);

	if (rc || (!is_our_file(identity) && !is_new_file(identity)) || identity->layout > LAYOUT)
		return rc;
	/* In a file that has a page already, it takes effect only with the next VACUUM. */
	if (!preparation->is_anothers && is_new_file(identity))
		rc = sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	if (!rc && !preparation->is_anothers)
		rc = sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	if (!rc && !preparation->is_anothers && is_new_file(identity)) {
		rc = sqlite3_exec(db, create_sql, NULL, NULL, NULL);
		roll_back(db);
		if (!rc)
			rc = identify_database(db, identity);
	}
	return rc ? rc : sqlite3_exec(db, settings_sql, NULL, NULL, NULL);
}

int sqlite_patiently(int (*attempt)(void *arg), void *arg)
{
	uint64_t deadline = clock_boot_ns() + SQLITE_LOCKED_MAX_S * NS_PER_S;
	int rc;

	while (((rc = attempt(arg)) & 0xff) == SQLITE_BUSY && clock_boot_ns() < deadline)
		uv_sleep(1 + (unsigned)random_below(10));
	return rc;
}

static int configure_database(
	sqlite3 *db, bool is_anothers, const char *name, struct problem *ret_problem)
{
	struct preparation preparation = {.db = db, .is_anothers = is_anothers};
	const struct identity *identity = &preparation.identity;
	int rc = sqlite_patiently(prepare_file, &preparation);

	if (!rc && is_anothers && is_new_file(identity)) {
		problem_set(ret_problem, "%s: there are no marks in it yet: push makes them", name);
		return -ENOENT;
	}
	if (!rc && !is_our_file(identity)) {
		problem_set(ret_problem,
			"%s: is an SQLite file of another program: give another path", name);
		return -EBADMSG;
	}
	if (!rc && identity->layout > LAYOUT) {
		problem_set(ret_problem,

			"%s: was made by a newer s3once (layout %d, this one knows %d): use that "
			"one",
			name, identity->layout, LAYOUT);
		return -EBADMSG;
	}
	if (!rc && !is_anothers && sqlite3_db_readonly(db, "main") == 1)
		rc = SQLITE_READONLY;
	if (!rc)
		return 0;
	return sqlite_failure(db, rc, name, ret_problem) == OUTCOME_LOCAL ? -ENOMEM : -EIO;
}

/* The write-ahead log of a file of another user is needed to read it. If root makes it, SQLite
 * gives it to the owner of the file. */
static int open_path(const struct sqlite_path *path, const char *name, sqlite3 **ret,
	struct problem *ret_problem)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path->real, &db,
		(path->is_anothers ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
			SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
			SQLITE_OPEN_EXRESCODE,
		NULL);
	int r = -EIO;

	if (rc)
		sqlite_failure(db, rc, name, ret_problem);
	else
		r = configure_database(db, path->is_anothers, name, ret_problem);
	if (r)
		sqlite3_close(db);
	else
		*ret = db;
	return r;
}

int sqlite_file_open(const char *path, bool only_read, sqlite3 **ret, char **ret_name,
	struct problem *ret_problem)
{
	char *name = shown_name(path);
	struct sqlite_path safe = {0};
	int r = name ? 0 : -ENOMEM;

	if (!r && strcmp(path, STORE_SQLITE_NOWHERE) == 0)
		r = (safe.real = strdup(path)) ? 0 : -ENOMEM;
	else if (!r)
		r = sqlite_path_secure(path, only_read, name, &safe, ret_problem);
	if (!r)
		r = open_path(&safe, name, ret, ret_problem);
	if (r == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	free(safe.real);
	if (r)
		free(name);
	else
		*ret_name = name;
	return r;
}
