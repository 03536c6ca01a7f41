/* The objects that growing logs were cut into, as rows in the SQLite file of the marks.
 * growing_logs.c reads the rows of one family, decides, and writes the changes in one transaction.
 * Other runs may do the same meanwhile: each row has a version, and the loser rereads. */
#include "scan/rotated/log_rows.h"
#include "base/files.h"
#include "base/random.h"
#include "base/statements.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S           86400
#define BUSY_TIMEOUT_MS 30000

enum log_statement {
	LOAD,
	DROP,
	DROP_PIECES,
	ADD,
	CHANGE,
	ADD_PIECE,
	NOTE_ONCE,
	ELSEWHERE,
	STATEMENTS
};

struct log_rows {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	char *scope;
	int64_t today;
	bool read_only;
};

/* The columns of logs and log_pieces are fields of struct log_row and struct log_piece: file is the
 * identity, size and mtime are those of the file, live and packed are was_live and was_packed. A
 * row of logs_told is a message that log_rows_note_once() has noted. */
/* clang-format off */
static const char create_sql[] =
	"CREATE TABLE IF NOT EXISTS logs(log INTEGER PRIMARY KEY, scope TEXT NOT NULL, directory BLOB"
	" NOT NULL, family BLOB NOT NULL, file BLOB NOT NULL, size INT, mtime INT, live INT, seen INT,"
	" missing INT, end INT, until TEXT, version INT, moment INT, packed INT, edges TEXT,"
	" sha256 BLOB);"
	"CREATE UNIQUE INDEX IF NOT EXISTS logs_by_file ON logs(scope, file);"
	"CREATE INDEX IF NOT EXISTS logs_by_family ON logs(scope, directory, family);"
	/* A piece is known by its end: the first piece of a log that was empty begins where the
	 * next one begins, too. */
	"CREATE TABLE IF NOT EXISTS log_pieces(log INT, start INT, end INT, mtime INT, id TEXT,"
	" PRIMARY KEY(log, end)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS logs_told(scope TEXT, directory BLOB, family BLOB, what TEXT,"
	" PRIMARY KEY(scope, directory, family, what)) WITHOUT ROWID;";
/* The days of the rows are counted. A new day begins when the clock shows another date than at the
 * run before. So a clock that is wrong by years makes only two days: one when it goes wrong, and
 * one when it is right again. In a file without a count, the count begins with the last `seen` of
 * the rows, or with the day of the clock if that is earlier. Rows that no run has seen for 400 days
 * belong to folders that no run reads any more. */
static const char day_sql[] =
	"CREATE TABLE IF NOT EXISTS log_day(one INTEGER PRIMARY KEY, day INT, clock INT);"
	"INSERT OR IGNORE INTO log_day SELECT 1, ifnull(min(max(seen), %lld), 0), NULL FROM logs;"
	"UPDATE log_day SET day = day + 1, clock = %lld WHERE clock IS NOT %lld;"
	"DELETE FROM logs WHERE seen < (SELECT day - 400 FROM log_day);"
	"DELETE FROM log_pieces WHERE log NOT IN (SELECT log FROM logs);"
	"SELECT day FROM log_day";

static const char *const sql[STATEMENTS] = {
	/* One statement reads the logs and their pieces as they are at one moment. */
	[LOAD] = "SELECT log, version, file, size, logs.mtime, live, seen, missing, logs.end, until,"
		 " moment, packed, edges, sha256, start, log_pieces.end, log_pieces.mtime, id"
		 " FROM logs LEFT JOIN log_pieces USING (log)"
		 " WHERE scope = ?1 AND directory = ?2 AND family = ?3 ORDER BY logs.end, log,"
		 " log_pieces.end",
	[DROP] = "DELETE FROM logs WHERE log = ?1 AND version = ?2",
	[DROP_PIECES] = "DELETE FROM log_pieces WHERE log = ?1",
	/* SQLite gives the number of a dropped row to a new one. So a new row begins with a random
	 * version, which no run has read before. Half of the numbers are left for adding 1. */
	[ADD] = "INSERT INTO logs(scope, directory, family, file, size, mtime, live, seen, missing,"
		" end, moment, packed, until, edges, sha256, version)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
	[CHANGE] = "UPDATE logs SET file = ?4, size = ?5, mtime = ?6, live = ?7, seen = ?8,"
		   " missing = ?9, end = ?10, moment = ?11, packed = ?12, until = ?13,"
		   " edges = ?14, sha256 = ?15, version = version + 1"
		   " WHERE log = ?1 AND version = ?2",
	[ADD_PIECE] = "INSERT INTO log_pieces VALUES(?1, ?2, ?3, ?4, ?5)",
	[NOTE_ONCE] = "INSERT OR IGNORE INTO logs_told VALUES(?1, ?2, ?3, ?4)",
	[ELSEWHERE] = ("SELECT directory || '/' || family FROM logs"
		       " WHERE (directory, family) <> (?2, ?3) AND scope = ?1 AND file = ?4"),
};
/* clang-format on */

/* Sets the sentence of this SQLite error. SQLite opens no database at all only if memory ran out.
 * Returns -ENOMEM or -EIO. */
static int rows_failed(struct log_rows *rows, int rc, struct problem *ret_problem)
{
	if ((rc & 0xff) == SQLITE_NOMEM || !rows->db)
		return problem_error(
			ret_problem, -ENOMEM, "out of memory while the files were listed");
	return problem_error(ret_problem, -EIO,
		"what was uploaded of logs that grow cannot be kept in the file of the marks (%s); "
		"check its folder, its mode and the room on its disk",
		sqlite3_errstr(rc));
}

/* Binds scope, directory and family to the first three parameters. */
static void bind_family(
	struct log_rows *rows, sqlite3_stmt *s, const struct log_family_name *family)
{
	sqlite3_bind_text(s, 1, rows->scope, -1, SQLITE_STATIC);
	sqlite3_bind_blob(s, 2, family->directory, (int)strlen(family->directory), SQLITE_STATIC);
	sqlite3_bind_blob(s, 3, family->family, (int)strlen(family->family), SQLITE_STATIC);
}

/* sqlite3_exec() calls it with the one row of day_sql. */
static int read_day(void *today, int n, char **values, char **names)
{
	(void)n, (void)names;
	*(int64_t *)today = strtoll(values[0], NULL, 10);
	return 0;
}

/* Makes the tables if they are missing, counts the day, and prepares the statements. `wall_day` is
 * the day that the wall clock shows. With read_only, no day is counted. Returns SQLite's result.
 */
static int set_up(struct log_rows *rows, long long wall_day)
{
	char day_statement[sizeof day_sql + 100]; /* with room for three numbers */
	sqlite3_busy_timeout(rows->db, BUSY_TIMEOUT_MS);
	int rc = sqlite3_exec(rows->db, create_sql, NULL, NULL, NULL);
	sqlite3_snprintf(
		sizeof day_statement, day_statement, day_sql, wall_day, wall_day, wall_day);
	if (!rc && !rows->read_only)
		rc = sqlite3_exec(rows->db, day_statement, read_day, &rows->today, NULL);
	return rc ? rc : statements_prepare(rows->db, sql, STATEMENTS, rows->statements);
}

/* Adds the rows of a scope in one table to the same table of the rows. Returns SQLite's result. */
static int copy_table(struct log_rows *rows, sqlite3 *from, const char *select, const char *insert)
{
	sqlite3_stmt *source = NULL, *target = NULL;
	int rc = sqlite3_prepare_v2(from, select, -1, &source, NULL);
	if (!rc)
		rc = sqlite3_prepare_v2(rows->db, insert, -1, &target, NULL);
	if (!rc)
		rc = sqlite3_bind_text(source, 1, rows->scope, -1, SQLITE_STATIC);
	while (!rc && (rc = sqlite3_step(source)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(source); i++)
			sqlite3_bind_value(target, i + 1, sqlite3_column_value(source, i));
		sqlite3_step(target);
		rc = sqlite3_reset(target);
	}
	sqlite3_finalize(source);
	sqlite3_finalize(target);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Opens a database in memory and copies the rows of the scope into it, as they are at one moment.
 * Returns SQLite's result. */
static int copy_to_memory(struct log_rows *rows, sqlite3 *from)
{
	static const char has_tables[] = "SELECT 1 FROM logs, log_pieces LIMIT 0";
	int rc = sqlite3_open(":memory:", &rows->db);
	if (!rc)
		rc = sqlite3_exec(rows->db, create_sql, NULL, NULL, NULL);
	if (rc || !from)
		return rc;
	sqlite3_busy_timeout(from, BUSY_TIMEOUT_MS);
	rc = sqlite3_exec(from, has_tables, NULL, NULL, NULL);
	if ((rc & 0xff) == SQLITE_ERROR) /* no run has made the tables in this file */
		return SQLITE_OK;
	if (!rc)
		rc = sqlite3_exec(from, "BEGIN", NULL, NULL, NULL);
	if (!rc)
		rc = copy_table(rows, from, "SELECT * FROM logs WHERE scope = ?1",
			"INSERT INTO logs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
	if (!rc)
		rc = copy_table(rows, from,
			"SELECT * FROM log_pieces"
			" WHERE log IN (SELECT log FROM logs WHERE scope = ?1)",
			"INSERT INTO log_pieces VALUES(?,?,?,?,?)");
	return rc;
}

int log_rows_new(sqlite3 *db, const char *scope, bool read_only, int64_t now_s,
	struct log_rows **ret, struct problem *ret_problem)
{
	struct log_rows *rows = calloc(1, sizeof *rows);
	int rc = SQLITE_OK;
	if (!rows || !(rows->scope = strdup(scope))) {
		sqlite3_close(db);
		free(rows);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	}
	rows->db = db;
	rows->read_only = read_only;
	/* A dry run does not keep the file open. It reads its marks there, too, and on
	 * a full disk a file may be open only once (open_file() in sqlite_file.c). */
	if (!db || read_only) {
		rc = copy_to_memory(rows, db);
		sqlite3_close(db);
	}
	if (!rc)
		rc = set_up(rows, now_s / DAY_S);
	const int error = rc ? rows_failed(rows, rc, ret_problem) : 0;
	if (error)
		log_rows_free(rows);
	else
		*ret = rows;
	return error;
}

void log_rows_free(struct log_rows *rows)
{
	if (!rows)
		return;
	statements_finalize(rows->statements, STATEMENTS);
	sqlite3_close(rows->db);
	free(rows->scope);
	free(rows);
}

int64_t log_rows_today(const struct log_rows *rows)
{
	return rows->today;
}

/* Runs a statement that has to change a row. Returns 0; -EAGAIN if no row was changed, or the new
 * row already exists; or another -errno with a sentence. */
static int change_row(struct log_rows *rows, enum log_statement which, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[which];
	sqlite3_step(s);
	const int rc = sqlite3_reset(s);
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return -EAGAIN;
	if (rc)
		return rows_failed(rows, rc, ret_problem);
	return sqlite3_changes(rows->db) ? 0 : -EAGAIN;
}

/* Drops a row of the database and its pieces, of which it has at least one. Returns 0,
 * -EAGAIN if another run has changed the row, or another -errno with a sentence. */
static int drop_row(struct log_rows *rows, const struct log_row *row, struct problem *ret_problem)
{
	sqlite3_bind_int64(rows->statements[DROP], 1, row->number);
	sqlite3_bind_int64(rows->statements[DROP], 2, row->version);
	const int error = change_row(rows, DROP, ret_problem);
	if (error)
		return error;
	sqlite3_bind_int64(rows->statements[DROP_PIECES], 1, row->number);
	return change_row(rows, DROP_PIECES, ret_problem);
}

/* Writes the pieces of a row that are not in the database yet. Returns 0, -EAGAIN if one is there
 * by now, or another -errno with a sentence. */
static int put_pieces(struct log_rows *rows, const struct log_row *row, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[ADD_PIECE];
	int error = 0;
	for (size_t i = row->n_kept; !error && i < row->n_pieces; i++) {
		const struct log_piece *piece = &row->pieces[i];
		sqlite3_bind_int64(s, 1, row->number);
		sqlite3_bind_int64(s, 2, (int64_t)piece->start);
		sqlite3_bind_int64(s, 3, (int64_t)piece->end);
		sqlite3_bind_int64(s, 4, piece->mtime_ns);
		sqlite3_bind_text(s, 5, piece->id, -1, SQLITE_STATIC);
		error = change_row(rows, ADD_PIECE, ret_problem);
	}
	return error;
}

/* Writes a row, which gets a number if it is new, and its new pieces. ADD and CHANGE have the same
 * parameters but for the first three and the last. Returns 0, -EAGAIN if another run has changed
 * the row, or another -errno with a sentence. */
static int put_row(struct log_rows *rows, const struct log_family_name *family, struct log_row *row,
	struct problem *ret_problem)
{
	const enum log_statement which = row->number ? CHANGE : ADD;
	sqlite3_stmt *s = rows->statements[which];
	if (row->number) {
		sqlite3_bind_int64(s, 1, row->number);
		sqlite3_bind_int64(s, 2, row->version);
	} else {
		bind_family(rows, s, family);
		sqlite3_bind_int64(s, 16, (int64_t)random_below(INT64_MAX / 2));
	}
	sqlite3_bind_blob(s, 4, row->identity.bytes, (int)row->identity.n, SQLITE_STATIC);
	const int64_t numbers[] = {(int64_t)row->file_size, row->file_mtime_ns, row->was_live,
		row->seen, row->missing, (int64_t)row->end, row->moment, row->was_packed};
	for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
		sqlite3_bind_int64(s, 5 + i, numbers[i]); /* ?5 to ?12 */
	sqlite3_bind_text(s, 13, row->until, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 14, row->edges, -1, SQLITE_STATIC);
	sqlite3_bind_blob(s, 15, row->sha256.state, sizeof row->sha256.state, SQLITE_STATIC);
	const int error = change_row(rows, which, ret_problem);
	if (error)
		return error;
	if (!row->number)
		row->number = sqlite3_last_insert_rowid(rows->db);
	return put_pieces(rows, row, ret_problem);
}

/* The passes of log_rows_keep(), in their order. */
enum pass { DROPS, KNOWN, NEW, PASSES };

static enum pass pass_of(const struct log_row *row)
{
	if (row->change == LOG_LOST)
		return DROPS;
	return row->number ? KNOWN : NEW;
}

int log_rows_keep(struct log_rows *rows, const struct log_family_name *family, struct log_row *all,
	size_t n, struct problem *ret_problem)
{
	int error = 0, rc = sqlite3_exec(rows->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	for (enum pass pass = DROPS; !rc && !error && pass < PASSES; pass++)
		for (size_t i = 0; !error && i < n; i++) {
			struct log_row *row = &all[i];
			if (row->change == LOG_UNCHANGED || pass_of(row) != pass)
				continue;
			error = pass == DROPS ? drop_row(rows, row, ret_problem)
					      : put_row(rows, family, row, ret_problem);
		}
	if (!rc && !error)
		rc = sqlite3_exec(rows->db, "COMMIT", NULL, NULL, NULL);
	if (rc)
		error = rows_failed(rows, rc, ret_problem);
	if (!sqlite3_get_autocommit(rows->db))
		sqlite3_exec(rows->db, "ROLLBACK", NULL, NULL, NULL);
	return error;
}

bool log_rows_note_once(
	struct log_rows *rows, const struct log_family_name *family, const char *what)
{
	sqlite3_stmt *s = rows->statements[NOTE_ONCE];
	struct problem ignored;
	if (rows->read_only)
		return true;
	bind_family(rows, s, family);
	sqlite3_bind_text(s, 4, what, -1, SQLITE_STATIC);
	/* INSERT OR IGNORE changes nothing if the row already exists. If it fails, the message is
	 * dropped on purpose: otherwise every run would repeat it. */
	return change_row(rows, NOTE_ONCE, &ignored) == 0;
}

/* Whether the log at this path lies in the folder of the family, such as "/var/log/nginx/" for the
 * family "nginx/access.log" of the directory "/var/log". */
static bool is_in_folder(const char *path, const struct log_family_name *family)
{
	struct text own = TEXT(8192);
	text_addf(&own, "%s/%s", family->directory, family->family);
	const size_t folder_bytes = (size_t)(path_name(text_string(&own)) - text_string(&own));
	const bool is_below = strncmp(path, text_string(&own), folder_bytes) == 0;
	text_clear(&own);
	return is_below && !strchr(path + folder_bytes, '/');
}

bool log_rows_are_elsewhere(struct log_rows *rows, const struct log_family_name *family,
	const struct file_identity *file, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[ELSEWHERE];
	bind_family(rows, s, family);
	sqlite3_bind_blob(s, 4, file->bytes, (int)file->n, SQLITE_STATIC);
	/* An error counts as no row. log_rows_keep() then refuses a second row of the file. */
	const bool is_elsewhere = sqlite3_step(s) == SQLITE_ROW;
	const char *path = is_elsewhere ? column_string(s, 0) : "";
	if (is_elsewhere && is_in_folder(path, family))
		problem_set(ret_problem,
			"is known as a log of %s: it is a hard link, or was renamed, and its name has "
			"no form in which rotated logs are known (rotation-names.md): rename it, for "
			"example to %s.1, or exclude it",
			quote(path).text, quote(path_name(path)).text);
	else if (is_elsewhere)
		problem_set(ret_problem,
			"is known as a log of %s: it was moved, or is a hard link; logs that grow "
			"have to stay in their folder: move it back, or exclude it",
			quote(path).text);
	sqlite3_reset(s);
	return is_elsewhere;
}

/* The columns of LOAD: those of the log, then those of a piece. */
enum {
	LOG,
	VERSION,
	FILE_ID,
	SIZE,
	MTIME,
	LIVE,
	SEEN,
	MISSING,
	END,
	UNTIL,
	MOMENT,
	PACKED,
	EDGES,
	SHA256_STATE
};
enum { PIECE_START = SHA256_STATE + 1, PIECE_END, PIECE_MTIME, PIECE_ID };

int log_row_add_piece(struct log_row *row, const struct log_piece *piece)
{
	struct log_piece *pieces =
		reallocarray(row->pieces, row->n_pieces + 1, sizeof *row->pieces);
	if (!pieces)
		return -ENOMEM;
	row->pieces = pieces;
	row->pieces[row->n_pieces++] = *piece;
	return 0;
}

void log_row_clear(struct log_row *row)
{
	free(row->pieces);
	*row = (struct log_row){0};
}

/* Copies the content id in this column. If there is none, ret stays as it is. */
static void copy_id(sqlite3_stmt *s, int column, char ret[static CONTENT_ID_CHARS + 1])
{
	const char *id = (const char *)sqlite3_column_text(s, column);
	if (id && strlen(id) == CONTENT_ID_CHARS)
		memcpy(ret, id, CONTENT_ID_CHARS + 1);
}

/* Makes a row without pieces of the columns of the log. */
static void read_row(sqlite3_stmt *s, struct log_row *ret)
{
	*ret = (struct log_row){.number = sqlite3_column_int64(s, LOG),
		.version = sqlite3_column_int64(s, VERSION),
		.file_size = (uint64_t)sqlite3_column_int64(s, SIZE),
		.file_mtime_ns = sqlite3_column_int64(s, MTIME),
		.was_live = sqlite3_column_int(s, LIVE) != 0,
		.seen = sqlite3_column_int64(s, SEEN),
		.missing = sqlite3_column_int64(s, MISSING),
		.end = (uint64_t)sqlite3_column_int64(s, END),
		.moment = sqlite3_column_int64(s, MOMENT),
		.was_packed = sqlite3_column_int(s, PACKED) != 0};
	const size_t n = (size_t)sqlite3_column_bytes(s, FILE_ID);
	if (n && n <= FILE_IDENTITY_BYTES_MAX) {
		memcpy(ret->identity.bytes, sqlite3_column_blob(s, FILE_ID), n);
		ret->identity.n = n;
	}
	copy_id(s, UNTIL, ret->until);
	/* Without the state the edges are of no use, and the log is read from its first byte. */
	if (sqlite3_column_bytes(s, SHA256_STATE) != sizeof ret->sha256.state)
		return;
	copy_id(s, EDGES, ret->edges);
	memcpy(ret->sha256.state, sqlite3_column_blob(s, SHA256_STATE), sizeof ret->sha256.state);
	ret->sha256.bytes = ret->end / SHA256_STEP * SHA256_STEP;
}

/* Adds the piece in these columns to the row, if there is one. Returns 0 or -ENOMEM. */
static int read_piece(sqlite3_stmt *s, struct log_row *row)
{
	if (sqlite3_column_type(s, PIECE_END) == SQLITE_NULL)
		return 0;
	struct log_piece piece = {.start = (uint64_t)sqlite3_column_int64(s, PIECE_START),
		.end = (uint64_t)sqlite3_column_int64(s, PIECE_END),
		.mtime_ns = sqlite3_column_int64(s, PIECE_MTIME)};
	copy_id(s, PIECE_ID, piece.id);
	const int error = log_row_add_piece(row, &piece);
	row->n_kept = row->n_pieces;
	return error;
}

int log_rows_load(struct log_rows *rows, const struct log_family_name *family, struct log_row **ret,
	size_t *ret_n, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[LOAD];
	size_t n = 0;
	int error = 0;
	*ret = NULL;
	bind_family(rows, s, family);
	/* The query returns each piece of a log, and each log without pieces. A log_row begins
	 * where the number of the log changes. */
	while (!error && sqlite3_step(s) == SQLITE_ROW) {
		const bool is_new_log =
			n == 0 || (*ret)[n - 1].number != sqlite3_column_int64(s, LOG);
		if (is_new_log) {
			struct log_row *more = reallocarray(*ret, n + 1, sizeof *more);
			if (!more) {
				error = -ENOMEM;
				break;
			}
			*ret = more;
			read_row(s, &more[n++]);
		}
		error = read_piece(s, &(*ret)[n - 1]);
	}
	*ret_n = n;
	const int rc = sqlite3_reset(s);
	return (error || rc) ? rows_failed(rows, error ? SQLITE_NOMEM : rc, ret_problem) : 0;
}
