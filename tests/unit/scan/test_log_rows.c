#include "../check.h"
#include "scan/rotated/log_rows.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DAY    86400
#define SCOPE  "b/p"
#define NO_ROW NULL

static const struct log_family_name family = {"/var/log", "app.log"};

static struct log_rows *open_as(const char *scope, int64_t day, bool read_only)
{
	struct log_rows *rows = NULL;
	sqlite3 *db;
	struct problem problem = {.text = ""};
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	if (!CHECK_INT(log_rows_new(db, scope, read_only, day * DAY, &rows, &problem), 0))
		fprintf(stderr, "\t%s\n", problem.text);
	return rows;
}

static struct log_row row_of(const char *file, uint64_t end)
{
	struct log_row row = {.file_size = end + 1,
		.file_mtime_ns = -5,
		.was_live = true,
		.seen = 100,
		.missing = 99,
		.end = end,
		.until = ID};
	row.identity.n = strlen(file);
	memcpy(row.identity.bytes, file, row.identity.n);
	const struct log_piece piece = {.end = end, .mtime_ns = -7, .id = ID};
	CHECK_INT(log_row_add_piece(&row, &piece), 0);
	return row;
}

static int keep(struct log_rows *rows, struct log_row *row, enum log_change change)
{
	struct problem problem = {.text = ""};
	row->change = change;
	const int error = log_rows_keep(rows, &family, row, 1, &problem);
	CHECK_STRING(problem.text, "");
	return error;
}

static int put(struct log_rows *rows, struct log_row *row)
{
	return keep(rows, row, LOG_CHANGED);
}

static int drop(struct log_rows *rows, struct log_row *row)
{
	return keep(rows, row, LOG_LOST);
}

/* How many rows there are of the family. The first one is the caller's. */
static size_t load(struct log_rows *rows, const struct log_family_name *of, struct log_row *ret)
{
	struct log_row *all = NULL;
	struct problem problem = {.text = ""};
	size_t n = 0;
	CHECK_INT(log_rows_load(rows, of, &all, &n, &problem), 0);
	for (size_t i = ret ? 1 : 0; i < n; i++)
		log_row_clear(&all[i]);
	if (ret)
		*ret = n ? all[0] : (struct log_row){0};
	free(all);
	return n;
}

static void test_kept(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, false);
	struct log_row row = row_of("abc", 10), kept;
	CHECK_INT(load(rows, &family, NO_ROW), 0);
	CHECK_INT(put(rows, &row), 0);
	const struct log_piece piece = {.start = 10, .end = 30, .mtime_ns = 8, .id = ID};
	CHECK_INT(log_row_add_piece(&row, &piece), 0);
	log_rows_free(rows);
	rows = open_as(SCOPE, 100, false);
	CHECK_INT(load(rows, &family, &kept), 1);
	CHECK_INT(kept.identity.n, 3);
	CHECK(memcmp(kept.identity.bytes, "abc", 3) == 0);
	CHECK(kept.was_live && kept.file_size == 11 && kept.file_mtime_ns == -5);
	CHECK(kept.seen == 100 && kept.missing == 99 && kept.end == 10);
	CHECK_STRING(kept.until, ID);
	CHECK(kept.n_pieces == 1 && kept.n_kept == 1);
	const int64_t version = kept.version;
	/* the next piece follows; those that are kept are not kept again */
	CHECK_INT(log_row_add_piece(&kept, &piece), 0);
	kept.end = 30;
	CHECK_INT(put(rows, &kept), 0);
	log_row_clear(&kept);
	CHECK_INT(load(rows, &family, &kept), 1);
	CHECK(kept.end == 30 && kept.version == version + 1);
	if (!CHECK(kept.n_pieces == 2 && kept.pieces))
		return;
	CHECK(kept.pieces[0].start == 0 && kept.pieces[0].end == 10);
	CHECK_INT(kept.pieces[0].mtime_ns, -7);
	CHECK(kept.pieces[1].start == 10 && kept.pieces[1].end == 30);
	CHECK_STRING(kept.pieces[1].id, ID);
	CHECK_INT(drop(rows, &kept), 0);
	CHECK_INT(load(rows, &family, NO_ROW), 0);
	log_row_clear(&kept);
	log_row_clear(&row);
	log_rows_free(rows);
	unlink("rows.db");
}

/* Rows come in the order of their ends, with what recognises the file without a reading of it. */
static void test_order_and_edges(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, false);
	static const uint64_t ends[] = {200, 70, 130};
	for (size_t i = 0; i < 3; i++) {
		struct log_row row = row_of(i == 0 ? "a" : i == 1 ? "b" : "c", ends[i]);
		snprintf(row.edges, sizeof row.edges, "%s", ID);
		row.edges[0] = (char)('0' + i);
		memset(row.sha256.state, (int)i + 1, sizeof row.sha256.state);
		row.moment = -20260101;
		row.was_packed = true;
		CHECK_INT(put(rows, &row), 0);
		log_row_clear(&row);
	}
	struct log_row *all = NULL;
	struct problem problem;
	size_t n = 0;
	CHECK_INT(log_rows_load(rows, &family, &all, &n, &problem), 0);
	CHECK_INT(n, 3);
	for (size_t i = 0; i < n; i++) {
		static const unsigned made[] = {1, 2, 0};
		unsigned char state[sizeof all[i].sha256.state];
		memset(state, (int)made[i] + 1, sizeof state);
		CHECK_INT(all[i].end, ends[made[i]]);
		CHECK_INT(all[i].edges[0], '0' + made[i]);
		CHECK(memcmp(all[i].sha256.state, state, sizeof state) == 0);
		CHECK_INT(all[i].sha256.bytes, ends[made[i]] / SHA256_STEP * SHA256_STEP);
		CHECK(all[i].moment == -20260101 && all[i].was_packed);
		log_row_clear(&all[i]);
	}
	free(all);
	/* A state of another length is that of another version: the file is read again. */
	sqlite3 *db;
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "UPDATE logs SET sha256 = x'00'", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	struct log_row first;
	CHECK_INT(load(rows, &family, &first), 3);
	CHECK_STRING(first.edges, "");
	log_row_clear(&first);
	log_rows_free(rows);
	unlink("rows.db");
}

/* A file is elsewhere if its row is in another family of the same scope. */
static void test_elsewhere(void)
{
	static const struct log_family_name other = {"/var/log/old", "app.log"},
					    below = {"/var/log", "old/app.log"},
					    renamed = {"/var/log", "app.log-night"};
	struct log_rows *rows = open_as(SCOPE, 100, false), *elsewhere = open_as("b/q", 100, false);
	struct log_row row = row_of("abc", 10), stranger = row_of("def", 10);
	struct problem problem = {.text = ""};
	CHECK_INT(put(rows, &row), 0);
	CHECK(!log_rows_are_elsewhere(rows, &family, &row.identity, &problem));
	CHECK(!log_rows_are_elsewhere(rows, &other, &stranger.identity, &problem));
	CHECK(!log_rows_are_elsewhere(elsewhere, &other, &row.identity, &problem));
	CHECK_STRING(problem.text, "");
	CHECK(log_rows_are_elsewhere(rows, &other, &row.identity, &problem));
	CHECK(strstr(problem.text, "is known as a log of /var/log/app.log: it was moved") != NULL);
	CHECK(log_rows_are_elsewhere(rows, &below, &row.identity, &problem));
	CHECK(strstr(problem.text, "is known as a log of /var/log/app.log: it was moved") != NULL);
	CHECK(log_rows_are_elsewhere(rows, &renamed, &row.identity, &problem));
	CHECK(strstr(problem.text, "is known as a log of /var/log/app.log: it is a hard link, or "
				   "was renamed") != NULL);
	log_row_clear(&row);
	log_row_clear(&stranger);
	log_rows_free(rows);
	log_rows_free(elsewhere);
	unlink("rows.db");
}

/* Only the version that was read is changed, and no two rows of one scope have the same file. */
static void test_two_runs(void)
{
	struct log_rows *a = open_as(SCOPE, 100, false), *b = open_as(SCOPE, 100, false);
	struct log_row row = row_of("abc", 10), same = row_of("abc", 5), of_a, of_b;
	CHECK_INT(put(a, &row), 0);
	CHECK_INT(put(b, &same), -EAGAIN);
	CHECK_INT(load(a, &family, &of_a), 1);
	CHECK_INT(load(b, &family, &of_b), 1);
	of_a.missing = of_b.missing = 101;
	CHECK_INT(put(a, &of_a), 0);
	CHECK_INT(put(b, &of_b), -EAGAIN);
	CHECK_INT(drop(b, &of_b), -EAGAIN);
	log_row_clear(&of_b);
	CHECK_INT(load(b, &family, &of_b), 1);
	CHECK_INT(of_b.n_pieces, 1);
	CHECK_INT(drop(b, &of_b), 0);
	CHECK_INT(put(a, &of_a), -EAGAIN);
	CHECK_INT(put(b, &same), 0); /* the file is free again */
	log_row_clear(&row);
	log_row_clear(&same);
	log_row_clear(&of_a);
	log_row_clear(&of_b);
	log_rows_free(a);
	log_rows_free(b);
	unlink("rows.db");
}

/* The number of a row that was dropped is given to the next one. A run that still has the old row
 * does not take the new one for it. */
static void test_number_used_again(void)
{
	struct log_rows *a = open_as(SCOPE, 100, false), *b = open_as(SCOPE, 100, false);
	struct log_row row = row_of("abc", 10), next = row_of("def", 5), old, of_b;
	CHECK_INT(put(a, &row), 0);
	CHECK_INT(load(a, &family, &old), 1);
	CHECK_INT(load(b, &family, &of_b), 1);
	CHECK_INT(drop(b, &of_b), 0);
	CHECK_INT(put(b, &next), 0);
	CHECK_INT(next.number, old.number);
	CHECK_INT(put(a, &old), -EAGAIN);
	CHECK_INT(drop(a, &old), -EAGAIN);
	log_row_clear(&of_b);
	CHECK_INT(load(b, &family, &of_b), 1);
	CHECK(of_b.end == 5 && of_b.n_pieces == 1);
	log_row_clear(&row);
	log_row_clear(&next);
	log_row_clear(&old);
	log_row_clear(&of_b);
	log_rows_free(a);
	log_rows_free(b);
	unlink("rows.db");
}

/* Another run, which drops a row as soon as the first piece of it is read. */
struct other_run {
	struct log_rows *rows;
	struct log_row *row;
	bool has_dropped;
};

static int drop_meanwhile(unsigned event, void *arg, void *statement, void *none)
{
	struct other_run *other = arg;
	(void)event, (void)none;
	if (!other->has_dropped && strstr(sqlite3_sql(statement), "log_pieces")) {
		other->has_dropped = true;
		CHECK_INT(drop(other->rows, other->row), 0);
	}
	return 0;
}

/* A row comes with the pieces that it had at that moment. */
static void test_dropped_while_it_is_read(void)
{
	struct log_rows *b = open_as(SCOPE, 100, false);
	sqlite3 *db;
	struct log_rows *a = NULL;
	struct log_row row = row_of("abc", 10), of_a, of_b;
	struct problem problem = {.text = ""};
	const struct log_piece piece = {.start = 10, .end = 30, .mtime_ns = 8, .id = ID};
	CHECK_INT(log_row_add_piece(&row, &piece), 0);
	CHECK_INT(put(b, &row), 0);
	CHECK_INT(load(b, &family, &of_b), 1);
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), 0);
	CHECK_INT(log_rows_new(db, SCOPE, false, 100 * DAY, &a, &problem), 0);
	struct other_run other = {.rows = b, .row = &of_b};
	sqlite3_trace_v2(db, SQLITE_TRACE_ROW, drop_meanwhile, &other);
	CHECK_INT(load(a, &family, &of_a), 1);
	CHECK(other.has_dropped);
	CHECK_INT(of_a.n_pieces, 2);
	CHECK_INT(load(a, &family, NO_ROW), 0);
	log_row_clear(&row);
	log_row_clear(&of_a);
	log_row_clear(&of_b);
	log_rows_free(a);
	log_rows_free(b);
	unlink("rows.db");
}

/* All changes or none: the second row has the file of a known one. */
static void test_undone(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, false);
	struct log_row known = row_of("abc", 10), both[] = {row_of("def", 5), row_of("abc", 7)};
	struct problem problem = {.text = ""};
	CHECK_INT(put(rows, &known), 0);
	both[0].change = both[1].change = LOG_CHANGED;
	CHECK_INT(log_rows_keep(rows, &family, both, 2, &problem), -EAGAIN);
	CHECK_INT(load(rows, &family, NO_ROW), 1);
	log_row_clear(&known);
	log_row_clear(&both[0]);
	log_row_clear(&both[1]);
	log_rows_free(rows);
	unlink("rows.db");
}

/* Lost logs go first, since a new row may be about the same file. Unchanged ones stay. */
static void test_order_of_changes(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, false);
	struct log_row row = row_of("abc", 10), all[2];
	struct problem problem = {.text = ""};
	CHECK_INT(put(rows, &row), 0);
	CHECK_INT(load(rows, &family, &all[1]), 1);
	all[0] = row_of("abc", 5);
	CHECK_INT(log_rows_keep(rows, &family, all, 2, &problem), 0);
	CHECK_INT(all[0].number, 0);
	all[0].change = LOG_CHANGED;
	all[1].change = LOG_LOST;
	CHECK_INT(log_rows_keep(rows, &family, all, 2, &problem), 0);
	log_row_clear(&row);
	CHECK_INT(load(rows, &family, &row), 1);
	CHECK_INT(row.end, 5);
	log_row_clear(&row);
	log_row_clear(&all[0]);
	log_row_clear(&all[1]);
	log_rows_free(rows);
	unlink("rows.db");
}

static void test_families_and_scopes(void)
{
	static const struct log_family_name others[] = {
		{"/var/log", "app.lo"}, {"/var/lo", "app.log"}, {"/var/log", "APP.LOG"}};
	struct log_rows *rows = open_as(SCOPE, 100, false), *other = open_as("b/q", 100, false);
	struct log_row row = row_of("abc", 10), also = row_of("abc", 10);
	CHECK_INT(put(rows, &row), 0);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK_INT(load(rows, &others[i], NO_ROW), 0);
	CHECK_INT(load(other, &family, NO_ROW), 0);
	CHECK_INT(put(other, &also), 0); /* the same file may go to another place */
	CHECK_INT(load(rows, &family, NO_ROW), 1);
	CHECK(log_rows_note_once(rows, &family, "x"));
	CHECK(!log_rows_note_once(rows, &family, "x"));
	CHECK(log_rows_note_once(rows, &family, "y"));
	CHECK(log_rows_note_once(rows, &others[0], "x"));
	CHECK(log_rows_note_once(other, &family, "x"));
	log_row_clear(&row);
	log_row_clear(&also);
	log_rows_free(rows);
	log_rows_free(other);
	unlink("rows.db");
}

/* Opens the rows when the clock has this day, runs the statement, and returns the day that the rows
 * have. */
static int64_t day_at(int64_t clock, const char *statement)
{
	struct log_rows *rows = open_as(SCOPE, clock, false);
	sqlite3 *db;
	const int64_t today = log_rows_today(rows);
	log_rows_free(rows);
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, statement, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	return today;
}

/* A day is another one than at the run before, however far ahead or behind the clock is. */
static void test_days(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, true);
	struct log_row row = row_of("abc", 10);
	CHECK_INT(log_rows_today(rows), 0);
	log_rows_free(rows);
	CHECK_INT(day_at(0, ""), 1);
	CHECK_INT(day_at(0, ""), 1);
	unlink("rows.db");
	rows = open_as(SCOPE, 99, false);
	CHECK_INT(put(rows, &row), 0);
	log_rows_free(rows);
	/* The days go on from those of rows that were kept before days were counted. */
	static const char uncounted[] = "DROP TABLE log_day";
	CHECK_INT(day_at(99, uncounted), 1);
	CHECK_INT(day_at(101, uncounted), 101);
	CHECK_INT(day_at(90000, uncounted), 101);
	CHECK_INT(day_at(50, uncounted), 51);
	CHECK_INT(day_at(101, ""), 101);
	static const int64_t clocks[] = {102, 90000, 90000, 90001, 103, 0, 103};
	static const int64_t days[] = {102, 103, 103, 104, 105, 106, 107};
	for (size_t i = 0; i < sizeof days / sizeof *days; i++)
		CHECK_INT(day_at(clocks[i], ""), days[i]);
	rows = open_as(SCOPE, 103, false);
	CHECK_INT(load(rows, &family, NO_ROW), 1);
	log_row_clear(&row);
	log_rows_free(rows);
	unlink("rows.db");
}

/* Rows that no run has seen for 400 days go with their pieces, but not by a read_only run. */
static void test_forgotten(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, false);
	struct log_row row = row_of("abc", 10), kept;
	CHECK_INT(put(rows, &row), 0);
	log_row_clear(&row);
	log_rows_free(rows);
	day_at(100, "UPDATE log_day SET day = 499");
	static const struct {
		int64_t clock;
		bool read_only, is_kept;
	} days[] = {{101, false, true}, {102, true, true}, {102, false, false}};
	for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
		rows = open_as(SCOPE, days[i].clock, days[i].read_only);
		CHECK_INT(load(rows, &family, &kept), days[i].is_kept);
		CHECK_INT(kept.n_pieces, days[i].is_kept);
		log_row_clear(&kept);
		log_rows_free(rows);
	}
	sqlite3 *db;
	sqlite3_stmt *pieces;
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db, "SELECT count(*) FROM log_pieces", -1, &pieces, NULL), 0);
	CHECK_INT(sqlite3_step(pieces), SQLITE_ROW);
	CHECK_INT(sqlite3_column_int(pieces, 0), 0);
	sqlite3_finalize(pieces);
	sqlite3_close(db);
	unlink("rows.db");
}

/* A read_only run makes no tables, and reports nothing. */
static void test_read_only(void)
{
	struct log_rows *rows = open_as(SCOPE, 100, true);
	struct log_row row = row_of("abc", 10);
	CHECK_INT(load(rows, &family, NO_ROW), 0);
	CHECK_INT(put(rows, &row), 0); /* for as long as it lasts */
	CHECK_INT(load(rows, &family, NO_ROW), 1);
	CHECK(log_rows_note_once(rows, &family, "x") && log_rows_note_once(rows, &family, "x"));
	log_row_clear(&row);
	log_rows_free(rows);
	rows = open_as(SCOPE, 100, false);
	CHECK_INT(load(rows, &family, NO_ROW), 0);
	CHECK(log_rows_note_once(rows, &family, "x"));
	log_rows_free(rows);
	unlink("rows.db");
}

static void test_unusable(void)
{
	sqlite3 *db;
	struct log_rows *rows;
	struct problem problem = {.text = ""};
	FILE *file = fopen("rows.db", "we");
	CHECK(file && fprintf(file, "%s%s\n", ID, ID) > 0 && fclose(file) == 0);
	CHECK_INT(sqlite3_open("rows.db", &db), SQLITE_OK);
	CHECK_INT(log_rows_new(db, SCOPE, false, 0, &rows, &problem), -EIO);
	CHECK(strstr(problem.text, "cannot be kept in the file of the marks") != NULL);
	unlink("rows.db");
}

int main(void)
{
	char directory[] = "/tmp/rows-XXXXXX";
	if (!CHECK(mkdtemp(directory) && chdir(directory) == 0))
		return check_result();
	test_kept();
	test_order_and_edges();
	test_elsewhere();
	test_two_runs();
	test_number_used_again();
	test_dropped_while_it_is_read();
	test_undone();
	test_order_of_changes();
	test_families_and_scopes();
	test_days();
	test_forgotten();
	test_read_only();
	test_unusable();
	CHECK_INT(rmdir(directory), 0);
	return check_result();
}
