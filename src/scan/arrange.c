#include "scan/arrange.h"
#include "scan/collision.h"
#include "scan/rotated/rotation.h"
#include "scan/scan_over.h"
#include "scan/source_name.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES_MAX       (256UL * 1024) /* as a source's */
#define STEPS_BETWEEN_ASKING 100000         /* of SQLite's machine: some milliseconds */

/* Of the two files that are compared for their keys. */
struct row {
	struct scan_entry entry;
	struct text key, relative, path, suffix;
	bool is_there, collides;
};

struct arrange {
	struct source *sources;
	size_t n, at;              /* sources[at] is being read */
	struct rotation *rotation; /* reads them where logs rotate, else NULL */
	const struct scan_options *options;
	sqlite3 *db;
	sqlite3_stmt *insert, *sorted; /* sorted: NULL while the sources are being read */
	struct row rows[2], *next;     /* next: read, not handed out */
};

/* A file without a name, which SQLite makes when its cache is full, and which is gone with the
 * process. Nothing is kept, so nothing need be safe against a crash. Only the sorting of ORDER BY
 * is used: it writes and reads the disk in order, where an index would go back and forth. */
/* clang-format off */
static const char create_sql[] =
	"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
	"PRAGMA temp_store = FILE; PRAGMA cache_size = -4096;"
	"CREATE TABLE files(key BLOB, source INTEGER, relative BLOB, young INTEGER, size INTEGER,"
	" mtime INTEGER, dev INTEGER, ino INTEGER, future INTEGER, id TEXT, suffix TEXT,"
	" rotated INTEGER, piece INTEGER, start INTEGER);"
	"BEGIN";
static const char insert_sql[] = "INSERT INTO files VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char sorted_sql[] = "SELECT * FROM files ORDER BY key, source, relative";
/* clang-format on */
enum {
	KEY,
	SOURCE,
	RELATIVE,
	YOUNG,
	SIZE,
	MTIME,
	DEV,
	INO,
	FUTURE,
	CONTENT_ID,
	SUFFIX,
	ROTATED,
	PIECE,
	START
};

static int sorting_failed(const struct arrange *arrange, int rc, struct problem *ret_problem)
{
	if ((rc & 0xff) == SQLITE_INTERRUPT)
		return scan_stopped(ret_problem);
	if ((rc & 0xff) == SQLITE_NOMEM || !arrange->db) {
		problem_set(ret_problem, "out of memory while the files were listed");
		return -ENOMEM;
	}
	const int error = sqlite3_system_errno(arrange->db);
	problem_set(ret_problem,
		"the keys that --key makes cannot be sorted in a temporary file (%s%s%s); make "
		"room in /var/tmp, or name a folder with room in SQLITE_TMPDIR",
		sqlite3_errstr(rc), error ? ": " : "", error ? strerror(error) : "");
	return -EIO;
}

static int is_sorting_over(void *arg)
{
	return scan_is_cancelled(((const struct arrange *)arg)->options);
}

int arrange_new(struct source *sources, size_t n, struct arrange **ret, struct problem *ret_problem)
{
	struct arrange *arrange = calloc(1, sizeof *arrange);
	if (!arrange) {
		problem_set(ret_problem, "out of memory while the files were listed");
		return -ENOMEM;
	}
	arrange->sources = sources;
	arrange->n = n;
	arrange->options = sources->options;
	for (size_t i = 0; i < 2; i++) {
		struct row *row = &arrange->rows[i];
		row->key = row->relative = row->path = row->suffix = TEXT(PATH_BYTES_MAX);
	}
	int rc = sqlite3_open_v2("", &arrange->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!rc)
		rc = sqlite3_exec(arrange->db, create_sql, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_prepare_v2(arrange->db, insert_sql, -1, &arrange->insert, NULL);
	if (rc) {
		const int error = sorting_failed(arrange, rc, ret_problem);
		arrange_free(arrange);
		return error;
	}
	if (arrange->options->rotated) {
		const int error = rotation_new(sources, n, &arrange->rotation, ret_problem);
		if (error) {
			arrange_free(arrange);
			return error;
		}
	}
	sqlite3_progress_handler(arrange->db, STEPS_BETWEEN_ASKING, is_sorting_over, arrange);
	*ret = arrange;
	return 0;
}

void arrange_free(struct arrange *arrange)
{
	if (!arrange)
		return;
	for (size_t i = 0; i < 2; i++) {
		text_clear(&arrange->rows[i].key);
		text_clear(&arrange->rows[i].relative);
		text_clear(&arrange->rows[i].path);
		text_clear(&arrange->rows[i].suffix);
	}
	rotation_free(arrange->rotation);
	sqlite3_finalize(arrange->insert);
	sqlite3_finalize(arrange->sorted);
	sqlite3_close(arrange->db);
	free(arrange);
}

/* What is left alone today would take the key tomorrow. */
static bool takes_key(const struct scan_entry *entry)
{
	return (entry->kind == SCAN_FILE || entry->kind == SCAN_YOUNG) && *entry->key;
}

static int insert_row(
	struct arrange *arrange, const struct scan_entry *entry, struct problem *ret_problem)
{
	sqlite3_stmt *s = arrange->insert;
	sqlite3_bind_blob(s, KEY + 1, entry->key, (int)strlen(entry->key), SQLITE_STATIC);
	sqlite3_bind_int64(s, SOURCE + 1, (int64_t)entry->source);
	sqlite3_bind_blob(
		s, RELATIVE + 1, entry->relative, (int)strlen(entry->relative), SQLITE_STATIC);
	sqlite3_bind_int(s, YOUNG + 1, entry->kind == SCAN_YOUNG);
	sqlite3_bind_int64(s, SIZE + 1, (int64_t)entry->size);
	sqlite3_bind_int64(s, MTIME + 1, entry->mtime_ns);
	sqlite3_bind_int64(s, DEV + 1, (int64_t)entry->dev);
	sqlite3_bind_int64(s, INO + 1, (int64_t)entry->ino);
	sqlite3_bind_int(s, FUTURE + 1, entry->is_from_future);
	sqlite3_bind_text(s, CONTENT_ID + 1, entry->content_id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, SUFFIX + 1, entry->suffix, -1, SQLITE_STATIC);
	sqlite3_bind_int(s, ROTATED + 1, entry->is_rotated);
	sqlite3_bind_int(s, PIECE + 1, entry->is_piece);
	sqlite3_bind_int64(s, START + 1, (int64_t)entry->offset);
	sqlite3_step(s);
	const int rc = sqlite3_reset(s); /* tells also what the binding met */
	return rc ? sorting_failed(arrange, rc, ret_problem) : 0;
}

static int add_column(struct arrange *arrange, int column, struct text *ret)
{
	text_reset(ret);
	text_add_bytes(ret, sqlite3_column_blob(arrange->sorted, column),
		(size_t)sqlite3_column_bytes(arrange->sorted, column));
	return ret->error;
}

static int copy_columns(struct arrange *arrange, struct row *row)
{
	sqlite3_stmt *s = arrange->sorted;
	int error = add_column(arrange, KEY, &row->key);
	if (!error)
		error = add_column(arrange, RELATIVE, &row->relative);
	if (!error)
		error = add_column(arrange, SUFFIX, &row->suffix);
	const size_t source = (size_t)sqlite3_column_int64(s, SOURCE);
	text_reset(&row->path);
	if (!error)
		source_add_path(&arrange->sources[source], text_string(&row->relative), &row->path);
	if (error || row->path.error)
		return -ENOMEM;
	row->entry = (struct scan_entry){
		.kind = sqlite3_column_int(s, YOUNG) ? SCAN_YOUNG : SCAN_FILE,
		.key = text_string(&row->key),
		.path = text_string(&row->path),
		.source = source,
		.relative = text_string(&row->relative),
		.size = (uint64_t)sqlite3_column_int64(s, SIZE),
		.mtime_ns = sqlite3_column_int64(s, MTIME),
		.dev = (dev_t)sqlite3_column_int64(s, DEV),
		.ino = (ino_t)sqlite3_column_int64(s, INO),
		.is_from_future = sqlite3_column_int(s, FUTURE) != 0,
		.is_rotated = sqlite3_column_int(s, ROTATED) != 0,
		.is_piece = sqlite3_column_int(s, PIECE) != 0,
		.offset = (uint64_t)sqlite3_column_int64(s, START),
		.suffix = text_string(&row->suffix),
	};
	const char *id = (const char *)sqlite3_column_text(s, CONTENT_ID);
	if (!id)
		return -ENOMEM;
	strncpy(row->entry.content_id, id, sizeof row->entry.content_id - 1);
	row->is_there = true;
	return 0;
}

/* The next row of what is sorted. 0, also where there is none, or -errno with a sentence. */
static int read_row(struct arrange *arrange, struct row *row, struct problem *ret_problem)
{
	row->is_there = row->collides = false;
	const int rc = sqlite3_step(arrange->sorted);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return sorting_failed(arrange, rc, ret_problem);
	return copy_columns(arrange, row) ? sorting_failed(arrange, SQLITE_NOMEM, ret_problem) : 0;
}

/* The next entry of all sources, in any order: 1 and whose head it is, 0 at the end. */
static int read_next(struct arrange *arrange, struct source **ret, struct problem *ret_problem)
{
	if (arrange->rotation) {
		int r = rotation_next(arrange->rotation, ret, ret_problem);
		return r > 0 ? source_name_head(*ret, ret_problem) : r;
	}
	while (arrange->at < arrange->n) {
		*ret = &arrange->sources[arrange->at];
		int r = source_next(*ret, ret_problem);
		if (r)
			return r;
		arrange->at++;
	}
	return 0;
}

/* Reads the sources to the end but for what has no key: 1 and that entry, 0 at the end. */
static int arrange_all(struct arrange *arrange, struct scan_entry *ret, struct problem *ret_problem)
{
	struct source *source;
	int r;
	while ((r = read_next(arrange, &source, ret_problem)) > 0) {
		if (!takes_key(&source->head)) {
			*ret = source->head;
			return 1;
		}
		r = insert_row(arrange, &source->head, ret_problem);
		if (r < 0)
			return r;
	}
	return r;
}

static int sort(struct arrange *arrange, struct problem *ret_problem)
{
	const int rc = sqlite3_prepare_v2(arrange->db, sorted_sql, -1, &arrange->sorted, NULL);
	if (rc)
		return sorting_failed(arrange, rc, ret_problem);
	arrange->next = &arrange->rows[0];
	return read_row(arrange, arrange->next, ret_problem);
}

static void refuse_both(struct row *a, struct row *b)
{
	const struct collision collision = {text_string(&a->key), text_string(&a->path),
		text_string(&b->path),
		"exclude one, or make --key distinguish them, for instance by {path} or {mtime:…}"};
	struct problem problem;
	collision_tell(&collision, &problem);
	if (!a->collides)
		a->entry.problem = problem;
	b->entry.problem = problem;
	a->collides = b->collides = true;
}

int arrange_next(struct arrange *arrange, struct scan_entry *ret, struct problem *ret_problem)
{
	int r = arrange->sorted ? 0 : arrange_all(arrange, ret, ret_problem);
	if (r)
		return r;
	if (!arrange->sorted)
		r = sort(arrange, ret_problem);
	struct row *row = arrange->next;
	if (r < 0 || !row->is_there)
		return r;
	struct row *after = &arrange->rows[row == &arrange->rows[0]];
	r = read_row(arrange, after, ret_problem);
	if (r < 0)
		return r;
	if (after->is_there && strcmp(row->entry.key, after->entry.key) == 0)
		refuse_both(row, after);
	arrange->next = after;
	*ret = row->entry;
	if (row->collides)
		ret->kind = SCAN_PROBLEM;
	return 1;
}
