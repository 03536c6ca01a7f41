/* Two listings of rotated logs: whether they agree, which files are live, and the knowledge about
 * each version of a file. */
#include "../check.h"
#include "base/clock.h"
#include "scan/rotated/rotation_table.h"
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct family_rules *families;
static struct scan_options options;
static struct problem problem;

/* A file of a listing. Its time is in seconds since 1970, and so long ago that it rests. */
struct listed {
	const char *relative;
	uint64_t size;
	int64_t mtime_s;
	ino_t ino;
	enum scan_kind kind;
	enum s3once_wait wait;
	bool is_from_future;
};

static struct scan_entry entry_of(const struct listed *listed)
{
	struct scan_entry entry = {.kind = listed->kind,
		.wait = listed->wait,
		.relative = listed->relative,
		.suffix = "",
		.size = listed->size,
		.mtime_ns = listed->mtime_s * (int64_t)NS_PER_S,
		.dev = 1,
		.ino = listed->ino,
		.is_from_future = listed->is_from_future};
	if (listed->kind == SCAN_PROBLEM)
		problem_set(&entry.problem, "a problem");
	return entry;
}

/* Makes a listing of the files up to the first one without a name. Returns whether it agrees with
 * the one before. */
static int list(struct rotation_table *table, const struct listed *files)
{
	for (; files->relative; files++) {
		const struct scan_entry entry = entry_of(files);
		CHECK_INT(rotation_table_add(table, &entry, &problem), 0);
	}
	return rotation_table_end(table, &problem);
}

static struct rotation_table *new_table(void)
{
	struct rotation_table *table = NULL;
	CHECK_INT(rotation_table_new(&options, &table, &problem), 0);
	return table;
}

static void know(struct rotation_table *table, struct listed version, enum reading_result result,
	const char *text)
{
	const struct scan_entry entry = entry_of(&version);
	CHECK_INT(rotation_table_note_content(table, &entry, result, text, &problem), 0);
}

/* Checks the entries: the name, '!' for a problem, '(N)' for the reason of a wait, '*' for a live
 * one, and '#' for a known id. */
static bool yields(struct rotation_table *table, enum rotation_entries which, const char *want)
{
	char got[1000] = "";
	struct scan_entry entry;
	int r;
	while ((r = rotation_table_next(table, which, &entry, &problem)) > 0) {
		char wait[10] = "";
		if (entry.kind == SCAN_WAITS)
			snprintf(wait, sizeof wait, "(%d)", (int)entry.wait);
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%s%s%s%s ",
			entry.relative, entry.kind == SCAN_PROBLEM ? "!" : "", wait,
			entry.is_rotated || entry.kind == SCAN_PROBLEM ? "" : "*",
			*entry.content_id ? "#" : "", entry.is_from_future ? "@" : "");
	}
	CHECK_INT(r, 0);
	return CHECK_STRING(got, want);
}

/* Listings agree if they have the same finished files, whatever their numbers are by now. */
static void test_agreement(void)
{
	static const struct {
		const char *what;
		struct listed first[4], second[4];
		bool agree;
	} rows[] = {
		{"the same", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 1, 10, 5}}, true},
		{"another number", {{"x.log.1", 1, 10, 5}}, {{"x.log.2", 1, 10, 5}}, true},
		{"one more", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 1, 10, 5}, {"x.log.2", 1, 9, 6}},
			false},
		{"one less", {{"x.log.1", 1, 10, 5}, {"x.log.2", 1, 9, 6}}, {{"x.log.1", 1, 10, 5}},
			false},
		{"another file", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 1, 10, 6}}, false},
		{"another size", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 2, 10, 5}}, false},
		{"another time", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 1, 11, 5}}, false},
		{"compressed", {{"x.log.1", 1, 10, 5}}, {{"x.log.1.gz", 1, 10, 5}}, false},
		{"of another family", {{"x.log.1", 1, 10, 5}}, {{"y.log.1", 1, 10, 5}}, false},
		{"one that waits has grown", {{"x.log.1", 1, 10, 5, SCAN_WAITS, S3ONCE_WAIT_YOUNG}},
			{{"x.log.1", 2, 11, 5, SCAN_WAITS, S3ONCE_WAIT_YOUNG}}, true},
		{"it waits no more", {{"x.log.1", 1, 10, 5, SCAN_WAITS, S3ONCE_WAIT_YOUNG}},
			{{"x.log.1", 1, 10, 5}}, false},
		{"a live one has grown", {{"x.log", 1, 10, 5}}, {{"x.log", 2, 11, 5}}, true},
		{"a live one was emptied", {{"x.log", 2, 10, 5}}, {{"x.log", 1, 11, 5}}, false},
		{"a problem", {{"x.log.1", 1, 10, 5}}, {{"x.log.1", 1, 10, 5, SCAN_PROBLEM}},
			false},
		{"links", {{"x.log.1", 1, 10, 5}, {"l", 0, 1, 1, SCAN_LINK}},
			{{"x.log.1", 1, 10, 5}, {"m", 0, 1, 2, SCAN_LINK}}, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rotation_table *table = new_table();
		CHECK_INT(list(table, rows[i].first), 0); /* the first one has none before it */
		if (!CHECK_INT(list(table, rows[i].second), rows[i].agree))
			fprintf(stderr, "\t%s\n", rows[i].what);
		rotation_table_free(table);
	}
}

/* The file with the family's name is finished if a later one of the family was written to for long
 * enough after it, except by one with an index. */
static void test_later_files(void)
{
	static const struct {
		struct listed files[4];
		const char *want;
		const char *later; /* of x.log; NULL: it is live */
	} rows[] = {
		{{{"x.log", 1, 1000, 1}, {"x.log.1", 1, 2000, 2}}, "x.log(7) x.log.1(7) ",
			"x.log.1"},
		{{{"x.log", 1, 1000, 1}, {"x.log.1", 1, 1000, 2}}, "x.log.1(7) ", NULL},
		{{{"x.log", 1, 1000, 1}, {"x.log.1", 1, 1059, 2}}, "x.log.1(7) ", NULL},
		{{{"x.log", 1, 1000, 1}, {"x.log.1", 1, 1060, 2}}, "x.log(7) x.log.1(7) ",
			"x.log.1"},
		{{{"x.log", 1, 1000, 1}, {"x.log.1", 1, 2000, 2}, {"x.log.2", 1, 3000, 3}},
			"x.log(7) x.log.1(7) x.log.2(7) ", "x.log.2"},
		{{{"x.log", 1, 1000, 1}, {"x.log.1.gz", 1, 2000, 2}}, "x.log.1.gz(7) ", NULL},
		{{{"x.log", 1, 1000, 1}, {"x-1.log", 1, 2000, 2}}, "x-1.log(7) ", NULL},
	};
	options.min_age_ms = 60000;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rotation_table *table = new_table();
		struct scan_entry entry;
		struct text later = TEXT(100);
		list(table, rows[i].files);
		bool good = yields(table, ROTATION_UNKNOWN, rows[i].want);
		if (rows[i].later) {
			/* It is the first one of them. */
			good &= CHECK_INT(
				rotation_table_next(table, ROTATION_UNKNOWN, &entry, &problem), 1);
			good &= CHECK(entry.may_grow) &&
				CHECK_INT(rotation_table_find_later(table, &later, &problem), 1) &&
				CHECK_STRING(text_string(&later), rows[i].later);
		}
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		text_clear(&later);
		rotation_table_free(table);
	}
	options.min_age_ms = 0;
}

/* The knowledge is about exactly one version of a file, under any name. */
static void test_known(void)
{
	const struct listed file = {"x.log.1", 5, 1000, 7}, renamed = {"x.log.2", 5, 1000, 7},
			    others[] = {{"x.log.1", 6, 1000, 7}, {"x.log.1", 5, 1001, 7},
				    {"x.log.1", 5, 1000, 8}};
	struct rotation_table *table = new_table();
	list(table, (const struct listed[]){file, {NULL}});
	yields(table, ROTATION_ALL, "x.log.1(7) ");
	yields(table, ROTATION_UNKNOWN, "x.log.1(7) ");
	know(table, file, READING_ID, ID);
	yields(table, ROTATION_ALL, "x.log.1# ");
	yields(table, ROTATION_UNKNOWN, "");
	list(table, (const struct listed[]){renamed, {NULL}});
	yields(table, ROTATION_ALL, "x.log.2# ");
	for (size_t i = 0; i < 3; i++) {
		list(table, (const struct listed[]){others[i], {NULL}});
		yields(table, ROTATION_UNKNOWN, "x.log.1(7) ");
	}
	rotation_table_free(table);
}

/* A version without an id has a sentence, or waits: the file is being written to, or is live
 * whatever its name says. The latter two are noted of the file, in any version. */
static void test_without_id(void)
{
	static const struct {
		enum reading_result result;
		const char *text, *want, *grown;
		bool agrees; /* the listing in which it has grown: its size does not count */
	} rows[] = {{READING_FAILED, "cannot be read", "x.log.1! ", "x.log.1(7) ", false},
		{READING_BEING_WRITTEN, NULL, "x.log.1(7) ", "x.log.1(7) ", true},
		{READING_LIVE, NULL, "x.log.1(2) ", "x.log.1(2) ", true},
		{READING_NO_ID, NULL, "x.log.1 ", "x.log.1(7) ", false}};
	const struct listed file = {"x.log.1", 5, 1000, 7}, grown = {"x.log.1", 6, 1001, 7};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rotation_table *table = new_table();
		list(table, (const struct listed[]){file, {NULL}});
		know(table, file, rows[i].result, rows[i].text);
		list(table, (const struct listed[]){file, {NULL}});
		bool good = yields(table, ROTATION_ALL, rows[i].want);
		good &= CHECK_INT(
			list(table, (const struct listed[]){grown, {NULL}}), rows[i].agrees);
		good &= yields(table, ROTATION_ALL, rows[i].grown);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		rotation_table_free(table);
	}
}

/* All of a family from the oldest file on; the new ones of the last listing. */
static void test_order_and_news(void)
{
	const struct listed young = {"x.log.1", 1, 3000, 1}, old = {"x.log.3", 1, 1000, 3},
			    middle = {"x.log.2", 1, 2000, 2}, of_a = {"a.log.1", 1, 9000, 4},
			    live = {"x.log", 1, 4000, 9},
			    future = {.relative = "z.log.1",
				    .size = 1,
				    .mtime_s = 1,
				    .ino = 8,
				    .is_from_future = true};
	struct rotation_table *table = new_table();
	list(table, (const struct listed[]){young, old, middle, of_a, future, {NULL}});
	yields(table, ROTATION_ALL, "a.log.1(7) x.log.3(7) x.log.2(7) x.log.1(7) z.log.1(7)@ ");
	list(table, (const struct listed[]){middle, old, {NULL}});
	yields(table, ROTATION_NEW, "");
	list(table, (const struct listed[]){middle, young, live, {NULL}});
	yields(table, ROTATION_NEW, "x.log.1(7) ");
	rotation_table_free(table);
}

/* Lists a family of dated logs, which has no file with the family's own name. `step_s` is the time
 * between two of them. */
static void list_large_family(const char *suffix, int step_s)
{
	struct rotation_table *table = new_table();
	struct scan_entry entry;
	char name[40];
	for (int i = 0; i < 12000; i++) {
		snprintf(name, sizeof name, "app-%d.log%s", 1700000000 + i, suffix);
		entry = entry_of(&(const struct listed){
			name, 1, 1000000000 + (int64_t)i * step_s, (ino_t)i + 1});
		CHECK_INT(rotation_table_add(table, &entry, &problem), 0);
	}
	CHECK_INT(rotation_table_end(table, &problem), 0);
	CHECK_INT(rotation_table_next(table, ROTATION_ALL, &entry, &problem), 1);
	rotation_table_free(table);
}

/* The time to judge a family grows with the number of its files, and not with the square of it. */
static void test_large_families(void)
{
	struct timespec used;
	list_large_family("", 1);
	list_large_family("", -1);
	list_large_family("", 0);
	list_large_family(".gz", 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	CHECK(used.tv_sec < 15); /* mostly 1 s */
}

int main(void)
{
	if (!CHECK_INT(family_rules_new(&families, &problem), 0))
		return check_result();
	options.rotated = families;
	test_agreement();
	test_later_files();
	test_known();
	test_without_id();
	test_order_and_news();
	test_large_families();
	family_rules_free(families);
	return check_result();
}
