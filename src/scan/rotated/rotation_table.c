/* The names in listings of rotated logs, in a temporary database, with the knowledge about their
 * files: the live file of each family, the files that wait, and whether two listings agree.
 * rotation.c fills the table, and growing_logs.c reads it, family after family. No file of a SOURCE
 * is opened here. */
#include "scan/rotated/rotation_table.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/statements.h"
#include "scan/scan_entry.h"
#include "scan/scratch.h"
#include "scan/source.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The time after its last write for which the newest log of a family counts as live. */
#define REST_NS (24 * 3600 * (int64_t)NS_PER_S)
/* The least time by which another file of a family has to be written later to prove that the one
 * with the family's name is finished: programs that still write to the renamed log for a moment
 * take less. */
#define LATER_MIN_NS ((int64_t)NS_PER_S)
/* A compressed file that was not written to for this long is not being made any more. */
#define COMPRESSING_NS (3600 * (int64_t)NS_PER_S)

enum statement { FORGET, ADD, LIVE, REST, WAIT, SAME, KNOW, LATER, UNKNOWN, ALL, NEW, STATEMENTS };

struct rotation_table {
	const struct scan_options *options; /* borrowed */
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	int listing;              /* the number of the listing whose names are being added */
	struct text family, bare; /* parts of the name being added */
	struct text packed_twice; /* the first name found that was rotated again after it had been
				     compressed */
};

/* The columns family and bare include the folder. bare is the name without the suffix of
 * compression. kind is an enum scan_kind: 0 is a FILE, 1 a PROBLEM, and 3 a file that WAITS. form
 * is an enum family_form: 0 is PLAIN, 1 DATED, 2 COUNTED and 3 INDEXED. live is an enum
 * log_liveness.
 */
/* clang-format off */
static const char create_sql[] =
	"CREATE TABLE names(listing INT, source INT, kind INT, size INT, mtime INT, dev INT, ino INT,"
	" future INT, own INT, form INT, live INT, rested INT, wait INT, relative TEXT, problem TEXT,"
	" family TEXT, bare TEXT, suffix TEXT);"
	"CREATE INDEX by_relative ON names(listing, source, relative);"
	/* With the last columns, LIVE finds each file's peers without reading the whole family. */
	"CREATE INDEX by_family ON names(listing, source, family, suffix, form, mtime, relative);"
	/* A version without id and problem was being written to. One without id whose problem is ''
	 * is live after all. */
	"CREATE TABLE known(dev INT, ino INT, size INT, mtime INT, id TEXT, problem TEXT,"
	" PRIMARY KEY(dev, ino, size, mtime)) WITHOUT ROWID";

enum log_liveness { FINISHED, IS_LIVE, UNFINISHED };

/* The other files of the same family that may be written to, and so are not compressed. */
#define PEERS                                                                                      \
	"SELECT 1 FROM names AS peer WHERE peer.listing = :listing AND peer.source = names.source" \
	" AND peer.family = names.family AND peer.kind IN (0, 3) AND peer.suffix = ''"             \
	" AND peer.live <> 2 AND peer.relative <> names.relative"
/* A file has to be written to so much later than the one that has the family's name. */
#define HAS_LATER                                                                                  \
	"EXISTS (" PEERS                                                                           \
	" AND peer.form IN (1, 2) AND peer.mtime >= names.mtime + :least_later)"
/* The columns by which two listings are compared. Size and time count only for files that are to be
 * uploaded (kind 0), since a file that waits may be written to. */
#define FOUND(listing)                                                                             \
	"SELECT source, family, suffix, kind, dev, ino, iif(kind = 0, size, 0),"                   \
	" iif(kind = 0, mtime, 0) FROM names WHERE listing = " listing                             \
	" AND (kind = 1 OR (kind IN (0, 3) AND NOT live))"
#define IS_KNOWN                                                                                   \
	"known.dev = names.dev AND known.ino = names.ino AND known.size = names.size"              \
	" AND known.mtime = names.mtime"
#define ENTRIES                                                                                    \
	"SELECT source, relative, names.size, names.mtime, names.dev, names.ino, kind, future,"    \
	" coalesce(known.problem, names.problem), live, suffix, id, family, wait, form, rested,"   \
	" own FROM names LEFT JOIN known ON NOT live AND kind = 0 AND " IS_KNOWN                   \
	" WHERE listing = :listing"
#define WAIT_LIVE   "2"
#define COMPRESSING "4"
#define CHANGED     "7"
_Static_assert(S3ONCE_WAIT_LIVE == 2 && S3ONCE_WAIT_COMPRESSING == 4 && S3ONCE_WAIT_CHANGED == 7,
	"as the statements have it");
static const char *const sql[STATEMENTS] = {
	[FORGET] = "DELETE FROM names WHERE listing < :listing - 1",
	[ADD] = "INSERT INTO names VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	/* The live file of a family is the one that has its name, unless another one was written to
	 * later (:least_later): these names may be a ring, see counts_as_live() in rotation.c. If
	 * none has its name, the newest one is live, unless it has a number after a dot, which
	 * rotation gives to a finished log. A file with an index may be live in any case. With
	 * :takes_live, live files are taken. */
	[LIVE] = "UPDATE names SET live = 1 WHERE listing = :listing AND kind IN (0, 3)"
		 " AND suffix = '' AND live = 0 AND (form = 3"
		 " OR (form = 0 AND (:takes_live OR NOT " HAS_LATER "))"
		 " OR (form = 1 AND NOT EXISTS (" PEERS " AND peer.form = 0)"
		 "  AND NOT EXISTS (" PEERS " AND peer.form = 1 AND peer.mtime > names.mtime)"
		 "  AND NOT EXISTS (" PEERS " AND peer.form = 1 AND peer.mtime = names.mtime"
		 "   AND peer.relative > names.relative)))",
	/* A file that was not written to since :at_rest_before is finished. But the file with the
	 * family's own name waits until it is renamed or emptied: its writer may be quiet for
	 * weeks, and then append to it. */
	[REST] = "UPDATE names SET live = 0, rested = 1 WHERE listing = :listing AND live = 1"
		 " AND size AND mtime < :at_rest_before AND form <> 0",
	/* With :takes_live, live files are taken, however young they are. */
	[WAIT] = "UPDATE names SET (kind, wait) = (SELECT iif(why, 3, 0), why FROM (SELECT CASE"
		 " WHEN live = 1 AND :takes_live THEN 0 WHEN kind = 3 THEN wait"
		 " WHEN live = 1 THEN " WAIT_LIVE
		 /* A compressed file beside the file that it is made of: it was written to
		  * within an hour, or it has been given the time of that file already, to the
		  * second. SQLite would choose the other index, and read all names. */
		 " WHEN suffix <> '' AND EXISTS (SELECT 1 FROM names AS other"
		 "  INDEXED BY by_relative WHERE other.listing = :listing"
		 "  AND other.source = names.source AND other.relative = names.bare"
		 "  AND (names.mtime > :written_after"
		 "   OR names.mtime / 1000000000 = other.mtime / 1000000000))"
		 " THEN " COMPRESSING
		 /* a file that a program is still writing, in this version or another one */
		 " WHEN NOT live AND EXISTS (SELECT 1 FROM known WHERE known.dev = names.dev"
		 "  AND known.ino = names.ino AND id IS NULL AND known.problem = '') THEN " WAIT_LIVE
		 /* a file that was being written to, likewise */
		 " WHEN NOT live AND EXISTS (SELECT 1 FROM known WHERE known.dev = names.dev"
		 "  AND known.ino = names.ino AND id IS NULL AND known.problem IS NULL) THEN " CHANGED
		 " ELSE 0 END AS why)) WHERE listing = :listing AND kind IN (0, 3)",
	[SAME] = "SELECT NOT EXISTS (" FOUND(":before") " EXCEPT " FOUND(":listing") ")"
		 " AND NOT EXISTS (" FOUND(":listing") " EXCEPT " FOUND(":before") ")"
		 /* A live log that was emptied meanwhile was copied to a file before. */
		 " AND NOT EXISTS (SELECT 1 FROM names a JOIN names b USING (source, relative)"
		 "  WHERE a.listing = :before AND b.listing = :listing AND b.form = 0"
		 "  AND b.size < a.size)",
	[LATER] = "SELECT relative FROM names WHERE listing = :listing AND source = :source"
		  " AND family = :family AND kind IN (0, 3) AND suffix = '' AND form IN (1, 2)"
		  " ORDER BY mtime DESC",
	[UNKNOWN] = ENTRIES " AND NOT live AND kind = 0 AND known.dev IS NULL ORDER BY source, relative",
	[KNOW] = "INSERT OR REPLACE INTO known(dev, ino, size, mtime, id, problem)"
		 " VALUES(:dev, :ino, :size, :mtime, :id, :problem)",
	[ALL] = ENTRIES " ORDER BY source, family, names.mtime, relative",
	[NEW] = ENTRIES " AND NOT live AND kind IN (0, 3) AND (names.dev, names.ino, names.mtime) NOT IN"
		" (SELECT dev, ino, mtime FROM names WHERE listing = :listing - 1)",
};
/* The columns of ENTRIES. */
enum { SOURCE, RELATIVE, SIZE, MTIME, DEV, INO, KIND, FUTURE, WHY, LIVENESS, SUFFIX, ID, FAMILY };
enum { REASON = FAMILY + 1, FORM, RESTED, OWN };
/* clang-format on */
_Static_assert(SCAN_FILE == 0 && SCAN_PROBLEM == 1 && SCAN_WAITS == 3, "as the statements have it");
_Static_assert(FAMILY_PLAIN == 0 && FAMILY_DATED == 1 && FAMILY_COUNTED == 2 && FAMILY_INDEXED == 3,
	"as the statements have it");
_Static_assert(IS_LIVE == 1 && UNFINISHED == 2, "as the statements have it");
_Static_assert(UNKNOWN + ROTATION_ALL == ALL && UNKNOWN + ROTATION_NEW == NEW, "in one order");

/* Sets the sentence of this SQLite error, and returns the -errno of the scan. */
static int table_failed(const struct rotation_table *table, int rc, struct problem *ret_problem)
{
	return scratch_failed(
		table->db, rc, "the names of rotated files cannot be kept", ret_problem);
}

int rotation_table_new(const struct scan_options *options, struct rotation_table **ret,
	struct problem *ret_problem)
{
	struct rotation_table *table = calloc(1, sizeof *table);
	if (!table)
		return scan_no_memory(ret_problem);
	table->options = options;
	table->family = table->bare = table->packed_twice = TEXT(SOURCE_PATH_BYTES_MAX);
	int rc = scratch_open(create_sql, &table->db);
	if (!rc)
		rc = statements_prepare(table->db, sql, STATEMENTS, table->statements);
	const int error = rc ? table_failed(table, rc, ret_problem) : 0;
	if (error)
		rotation_table_free(table);
	else
		*ret = table;
	return error;
}

void rotation_table_free(struct rotation_table *table)
{
	if (!table)
		return;
	statements_finalize(table->statements, STATEMENTS);
	sqlite3_close(table->db);
	text_clear(&table->family);
	text_clear(&table->bare);
	text_clear(&table->packed_twice);
	free(table);
}

/* Returns the number of a parameter, which has this name in the statement. */
static int parameter(sqlite3_stmt *s, const char *name)
{
	const int number = sqlite3_bind_parameter_index(s, name);
	assert(number > 0);
	return number;
}

static void bind_number(sqlite3_stmt *s, const char *name, int64_t value)
{
	sqlite3_bind_int64(s, parameter(s, name), value);
}

/* Runs a statement that yields no row, and whose parameters are bound. Returns 0, or -errno with a
 * sentence. */
static int run_statement(
	struct rotation_table *table, enum statement which, struct problem *ret_problem)
{
	sqlite3_step(table->statements[which]);
	const int rc = sqlite3_reset(table->statements[which]);
	return rc ? table_failed(table, rc, ret_problem) : 0;
}

/* Sets the columns family and bare for a file of this path and family: table->family and
 * table->bare. Also notes the path if the file was rotated again after it had been compressed.
 * Returns 0 or -ENOMEM. */
static int set_names(
	struct rotation_table *table, const struct scan_entry *entry, const struct family *family)
{
	const char *path = entry->relative, *name = path_name(path);
	text_reset(&table->family);
	text_add_bytes(&table->family, path, (size_t)(name - path));
	family_add(&table->family, family);
	text_reset(&table->bare);
	text_add_bytes(&table->bare, path, (size_t)(family->suffix - path));
	if (entry_is_file(entry) && family->was_packed && !table->packed_twice.len)
		text_add(&table->packed_twice, path);
	return table->family.error || table->bare.error || table->packed_twice.error ? -ENOMEM : 0;
}

int rotation_table_add(
	struct rotation_table *table, const struct scan_entry *entry, struct problem *ret_problem)
{
	sqlite3_stmt *s = table->statements[ADD];
	const bool is_file = entry_is_file(entry);
	struct family family;
	family_of(table->options->rotated, path_name(entry->relative), &family);
	if (set_names(table, entry, &family))
		return scan_no_memory(ret_problem);
	/* By its name, the file is one that another program has not finished. */
	const bool is_unfinished = is_file && family.is_unfinished;
	struct scan_entry judged = {.kind = entry->kind, .wait = entry->wait};
	if (is_unfinished)
		entry_let_wait(&judged, S3ONCE_WAIT_UNFINISHED);
	const int64_t live = is_unfinished ? UNFINISHED : FINISHED, rested = false;
	/* In the order of the columns: the numbers from listing to wait, then the texts from
	 * relative to suffix. */
	const int64_t numbers[] = {table->listing, (int64_t)entry->source, judged.kind,
		(int64_t)entry->size, entry->mtime_ns, (int64_t)entry->dev, (int64_t)entry->ino,
		entry->is_from_future, entry->is_own, family.form, live, rested, judged.wait};
	const char *const texts[] = {entry->relative, is_file ? "" : entry->problem.text,
		text_string(&table->family), text_string(&table->bare),
		is_file ? family.suffix : ""};
	int parameter = 1;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sqlite3_bind_int64(s, parameter++, numbers[i]);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		sqlite3_bind_text(s, parameter++, texts[i], -1, SQLITE_STATIC);
	return run_statement(table, ADD, ret_problem);
}

/* Returns the least time by which another file has to be written later than the one with the
 * family's name, so that this counts as finished: LATER_MIN_NS, or the least age of files. */
static int64_t least_later_ns(const struct scan_options *options)
{
	/* The limit keeps the sum of this and a time within 64 bits. */
	const uint64_t max_ms = INT64_MAX / 4 / NS_PER_MS;
	const uint64_t age_ms = options->min_age_ms < max_ms ? options->min_age_ms : max_ms;
	const int64_t age_ns = (int64_t)(age_ms * NS_PER_MS);
	return age_ns > LATER_MIN_NS ? age_ns : LATER_MIN_NS;
}

/* Finds out which files are live, which of these are at rest, and which files wait: in this order,
 * since a live file waits. Returns 0, or -errno with a sentence. */
static int judge_listing(struct rotation_table *table, struct problem *ret_problem)
{
	const struct scan_options *options = table->options;
	const int64_t now_ns = clock_wall_ns();
	sqlite3_stmt *const *s = table->statements;
	for (enum statement which = LIVE; which <= WAIT; which++)
		bind_number(s[which], ":listing", table->listing);
	bind_number(s[LIVE], ":least_later", least_later_ns(options));
	bind_number(s[LIVE], ":takes_live", scan_takes_live(options));
	bind_number(s[REST], ":at_rest_before", now_ns - REST_NS);
	bind_number(s[WAIT], ":takes_live", scan_takes_live(options));
	bind_number(s[WAIT], ":written_after", now_ns - COMPRESSING_NS);
	/* A log at rest may get more lines later. A run that takes files that are being written
	 * keeps such a log live, unless rows of its pieces show where the new lines begin. */
	const bool takes_rest = !options->takes_open_logs || options->log_rows;
	int r = run_statement(table, LIVE, ret_problem);
	if (r == 0 && takes_rest)
		r = run_statement(table, REST, ret_problem);
	return r < 0 ? r : run_statement(table, WAIT, ret_problem);
}

int rotation_table_end(struct rotation_table *table, struct problem *ret_problem)
{
	sqlite3_stmt *s = table->statements[SAME];
	int r = judge_listing(table, ret_problem);
	if (r < 0)
		return r;
	bind_number(s, ":before", table->listing - 1);
	bind_number(s, ":listing", table->listing);
	const bool agrees_with_last = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0);
	const int rc = sqlite3_reset(s);
	if (rc)
		return table_failed(table, rc, ret_problem);
	/* This listing and the one before it stay. */
	bind_number(table->statements[FORGET], ":listing", table->listing);
	r = run_statement(table, FORGET, ret_problem);
	const bool is_first = table->listing == 0; /* it has none before it to agree with */
	table->listing++;
	return r < 0 ? r : agrees_with_last && !is_first;
}

int rotation_table_note_content(struct rotation_table *table, const struct scan_entry *version,
	enum reading_result result, const char *text, struct problem *ret_problem)
{
	/* The columns of `known` by which ENTRIES and WAIT tell the results apart. */
	const char *const id = result == READING_ID ? text : result == READING_NO_ID ? "" : NULL;
	const char *const sentence = result == READING_FAILED ? text
				     : result == READING_LIVE ? ""
							      : NULL;
	sqlite3_stmt *s = table->statements[KNOW];
	bind_number(s, ":dev", (int64_t)version->dev);
	bind_number(s, ":ino", (int64_t)version->ino);
	bind_number(s, ":size", (int64_t)version->size);
	bind_number(s, ":mtime", version->mtime_ns);
	sqlite3_bind_text(s, parameter(s, ":id"), id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, parameter(s, ":problem"), sentence, -1, SQLITE_STATIC);
	return run_statement(table, KNOW, ret_problem);
}

/* Whether the file in this row of ENTRIES has its family's own name, which no rotation has changed.
 */
static bool has_family_name(sqlite3_stmt *s)
{
	return sqlite3_column_int(s, FORM) == FAMILY_PLAIN && !*column_string(s, SUFFIX);
}

/* Makes an entry of a row of ENTRIES, without its content_id and its problem. */
static void read_entry(sqlite3_stmt *s, struct scan_entry *ret)
{
	*ret = (struct scan_entry){.source = (size_t)sqlite3_column_int64(s, SOURCE),
		.relative = column_string(s, RELATIVE),
		.size = (uint64_t)sqlite3_column_int64(s, SIZE),
		.mtime_ns = sqlite3_column_int64(s, MTIME),
		.dev = (dev_t)sqlite3_column_int64(s, DEV),
		.ino = (ino_t)sqlite3_column_int64(s, INO),
		.kind = (enum scan_kind)sqlite3_column_int(s, KIND),
		.is_from_future = sqlite3_column_int(s, FUTURE) != 0,
		.is_own = sqlite3_column_int(s, OWN) != 0,
		.wait = (enum s3once_wait)sqlite3_column_int(s, REASON),
		.suffix = column_string(s, SUFFIX)};
	ret->is_rotated = entry_is_file(ret) && sqlite3_column_int(s, LIVENESS) == FINISHED;
	ret->may_grow = sqlite3_column_int(s, RESTED) || has_family_name(s);
}

/* Adds the content id of the entry, or the reason why there is none. */
static void read_known(sqlite3_stmt *s, struct scan_entry *entry)
{
	const char *id = column_string(s, ID), *why = column_string(s, WHY);
	if (strlen(id) == CONTENT_ID_CHARS)
		memcpy(entry->content_id, id, CONTENT_ID_CHARS + 1);
	if (*why)
		problem_set(&entry->problem, "%s", why);
	/* The id is "" if none is wanted, and NULL if there is none. */
	const bool lacks_id = entry->kind == SCAN_FILE && entry->is_rotated &&
			      sqlite3_column_type(s, ID) == SQLITE_NULL;
	if (lacks_id && *why)
		entry->kind = SCAN_PROBLEM;
	else if (lacks_id)
		entry_let_wait(entry, S3ONCE_WAIT_CHANGED);
}

int rotation_table_next(struct rotation_table *table, enum rotation_entries which,
	struct scan_entry *ret, struct problem *ret_problem)
{
	sqlite3_stmt *s = table->statements[UNKNOWN + which];
	/* The first call begins with the listing that has ended last, and so does the first call
	 * after the end. */
	if (!sqlite3_stmt_busy(s))
		bind_number(s, ":listing", table->listing - 1);
	if (sqlite3_step(s) != SQLITE_ROW) {
		const int rc = sqlite3_reset(s);
		return rc ? table_failed(table, rc, ret_problem) : 0;
	}
	read_entry(s, ret);
	if (!*ret->relative || !*column_string(s, FAMILY)) /* only if memory ran out */
		return scan_no_memory(ret_problem);
	read_known(s, ret);
	return 1;
}

int rotation_table_find_later(
	struct rotation_table *table, struct text *ret_relative, struct problem *ret_problem)
{
	/* rotation_table_next() has left this statement at the row of the entry that it returned.
	 */
	sqlite3_stmt *unknown = table->statements[UNKNOWN], *s = table->statements[LATER];
	text_reset(ret_relative);
	if (!has_family_name(unknown) || sqlite3_column_int(unknown, RESTED))
		return 0;
	bind_number(s, ":listing", table->listing - 1);
	bind_number(s, ":source", sqlite3_column_int64(unknown, SOURCE));
	sqlite3_bind_text(
		s, parameter(s, ":family"), column_string(unknown, FAMILY), -1, SQLITE_TRANSIENT);
	if (sqlite3_step(s) == SQLITE_ROW)
		text_add(ret_relative, column_string(s, 0));
	const int rc = sqlite3_reset(s);
	if (rc)
		return table_failed(table, rc, ret_problem);
	return ret_relative->error ? scan_no_memory(ret_problem) : ret_relative->len != 0;
}

const char *rotation_table_packed_twice(const struct rotation_table *table)
{
	return text_string(&table->packed_twice);
}

const char *rotation_table_family(const struct rotation_table *table)
{
	return column_string(table->statements[ALL], FAMILY);
}
