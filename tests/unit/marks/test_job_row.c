/* The rows of jobs on a real store: their names, what each write changes, and how they are read. */
#include "../check.h"
#include "base/text.h"
#include "marks/job_row.h"
#include <stdlib.h>

static const char first[] = "11111111111111111111111111111111",
		  second[] = "22222222222222222222222222222222";

static void make_key(const char *host, const char *job, struct job_key *ret)
{
	job_key_make(&(struct job_name){.host = host, .job = job, .machine = "abc"}, ret);
}

static void check_key(const char *host, const char *job, const char *want)
{
	struct job_key key;
	make_key(host, job, &key);
	CHECK_STRING(key.text, want);
}

/* Names that are too long are cut between characters, and keep both of their ends. */
static void test_long_names(void)
{
	struct job_key key;
	char job[4000] = "begin";
	for (int i = 0; i < 1000; i++)
		strcat(job, "\xc3\xbc");
	strcat(job, "end");
	make_key(job, job, &key);
	const size_t host = strcspn(key.text, "/"), n = strlen(strrchr(key.text, '/') + 1);
	CHECK(host <= JOB_HOST_MAX && host > JOB_HOST_MAX - 4);
	CHECK(n <= JOB_NAME_MAX && n > JOB_NAME_MAX - 4);
	CHECK(utf8_valid(key.text, strlen(key.text)));
	CHECK(strncmp(key.text, "begin", 5) == 0 && strstr(key.text, "...") != NULL);
	CHECK(strncmp(key.text + strlen(key.text) - 20, "end~", 4) == 0);
	struct job_key other;
	job[1000]++; /* in what was cut out */
	make_key("h", job, &other);
	job[1000]--;
	make_key("h", job, &key);
	CHECK(strlen(other.text) == strlen(key.text) && strcmp(other.text, key.text) != 0);
}

static struct job_row only_row(struct store_conn *conn)
{
	struct job_row rows[2];
	struct problem problem;
	size_t n;
	CHECK_INT(job_rows_read(conn, NULL, 2, &no_limits, rows, &n, &problem), OUTCOME_OK);
	CHECK_INT(n, 1);
	return rows[0];
}

static struct job_end end_of(int exit, const char *session)
{
	return (struct job_end){.target = "s3://b/p",
		.session = session,
		.error = exit ? "a: it failed" : "",
		.failures = exit ? "a: it failed\nb: so did it" : "",
		.exit = exit,
		.found = 4,
		.uploaded = 2,
		.failed = exit ? 1 : 0,
		.bytes = 3};
}

static void check_failures(struct store_conn *conn, const struct job_key *key, const char *expected)
{
	struct text failures = TEXT(1000);
	struct problem problem;
	CHECK_INT(job_row_failures(conn, key, &no_limits, &failures, &problem), OUTCOME_OK);
	CHECK_STRING(text_string(&failures), expected);
	text_clear(&failures);
}

static void test_life(struct store_conn *conn)
{
	struct job_key key;
	struct problem problem;
	struct job_end good = end_of(0, first), bad = end_of(1, NULL);
	make_key("web1", "nginx", &key);
	CHECK_INT(job_row_begin(
			  conn, &key, &(struct job_begin){first, "s3://b/p"}, &no_limits, &problem),
		OUTCOME_OK);
	struct job_row row = only_row(conn);
	CHECK_STRING(row.host, "web1");
	CHECK_STRING(row.machine, "abc");
	CHECK_STRING(row.job, "nginx");
	CHECK_STRING(row.session, first);
	CHECK_STRING(row.ended_session, "");
	CHECK(row.began_s > 0 && row.exit == -1 && !row.ended_s && !row.succeeded_s);

	CHECK_INT(job_row_end(conn, &key, &good, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK_STRING(row.ended_session, first);
	CHECK_STRING(row.target, "s3://b/p");
	CHECK(row.exit == 0 && row.succeeded_s == row.ended_s && row.began_s > 0);
	CHECK(row.found == 4 && row.uploaded == 2 && row.failed == 0 && row.bytes == 3);
	const struct job_row before = row;

	/* A run without a session leaves those of others alone. */
	CHECK_INT(job_row_end(conn, &key, &bad, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK_STRING(row.session, first);
	CHECK_STRING(row.ended_session, first);
	CHECK_STRING(row.error, "a: it failed");
	CHECK(row.exit == 1 && row.succeeded_s == before.succeeded_s && row.failed == 1);
	check_failures(conn, &key, "a: it failed\nb: so did it");

	/* The next success takes the error away, and what was read before is not removed. */
	CHECK_INT(job_row_end(conn, &key, &good, &no_limits, &problem), OUTCOME_OK);
	CHECK_STRING(only_row(conn).error, "");
	check_failures(conn, &key, "");
	CHECK_INT(job_row_remove(conn, &row, &no_limits, &problem), OUTCOME_REFUSED);
	row = only_row(conn);
	CHECK_INT(job_row_remove(conn, &row, &no_limits, &problem), OUTCOME_OK);
	CHECK_INT(job_row_remove(conn, &row, &no_limits, &problem), OUTCOME_OK);
}

/* A run that ends before it has seen all files does not know how many wait. */
static void test_waiting(struct store_conn *conn)
{
	struct job_key key;
	struct problem problem;
	struct job_end whole = end_of(0, first), partial = end_of(3, second);
	make_key("web1", "nginx", &key);
	whole.has_seen_all = true;
	whole.waiting = 5;
	whole.waiting_since_s = 1000;
	partial.waiting = 1;
	CHECK_INT(job_row_end(conn, &key, &whole, &no_limits, &problem), OUTCOME_OK);
	CHECK_INT(job_row_end(conn, &key, &partial, &no_limits, &problem), OUTCOME_OK);
	struct job_row row = only_row(conn);
	CHECK(row.exit == 3 && row.waiting == 5 && row.waiting_since_s == 1000);
	whole.waiting = 0;
	whole.waiting_since_s = 0;
	CHECK_INT(job_row_end(conn, &key, &whole, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK(row.exit == 0 && row.waiting == 0 && row.waiting_since_s == 0);
}

/* In the order of hosts and jobs, a few at a time. */
static void test_pages(struct store_conn *conn)
{
	static const char *const hosts[] = {"web1", "web2", "web10"};
	static const char *const in_order[] = {"web1/abc/a", "web1/abc/b", "web10/abc/a",
		"web10/abc/b", "web2/abc/a", "web2/abc/b"};
	struct job_row rows[4];
	struct job_key key, last;
	struct problem problem;
	size_t n, seen = 0;
	for (size_t i = 0; i < 6; i++) {
		make_key(hosts[i % 3], i < 3 ? "b" : "a", &key);
		CHECK_INT(job_row_begin(conn, &key, &(struct job_begin){second, "s3://b/p"},
				  &no_limits, &problem),
			OUTCOME_OK);
	}
	do {
		CHECK_INT(
			job_rows_read(conn, seen ? &last : NULL, 4, &no_limits, rows, &n, &problem),
			OUTCOME_OK);
		for (size_t i = 0; i < n && seen < 6; i++)
			CHECK_STRING(rows[i].key.text, in_order[seen++]);
		if (n)
			last = rows[n - 1].key;
	} while (n == 4);
	CHECK_INT(seen, 6);
}

static struct {
	const struct store_ops *real;
	unsigned max_items[4]; /* of each query */
	size_t n;
} queries;

static enum outcome note_query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	if (queries.n < 4)
		queries.max_items[queries.n++] = range->max_items;
	return queries.real->query(conn, range, limits, each, arg, ret_more, ret_problem);
}

/* After a row that is skipped, the store is asked for no more rows than have room. */
static void test_room_after_a_skipped_row(struct store_conn *conn)
{
	struct store_ops ops = *conn->store->ops;
	struct item item = {0};
	struct job_row rows[2];
	struct job_key key;
	struct problem problem;
	char strange[JOB_HOST_MAX + 10];
	size_t n = 0;
	memset(strange, 'a', sizeof strange);
	strange[sizeof strange - 1] = '\0';
	item_set_number(&item, "exit", 0);
	CHECK_INT(conn->store->ops->write(conn, (struct item_key){"jobs", strange},
			  &(struct item_write){.item = &item}, &no_limits, NULL, &problem),
		OUTCOME_OK);
	item_clear(&item);
	for (int i = 0; i < 3; i++) {
		make_key("web", (const char[]){(char)('a' + i), '\0'}, &key);
		CHECK_INT(job_row_begin(conn, &key, &(struct job_begin){second, "s3://b/p"},
				  &no_limits, &problem),
			OUTCOME_OK);
	}
	queries.real = conn->store->ops;
	ops.query = note_query;
	conn->store->ops = &ops;
	CHECK_INT(job_rows_read(conn, NULL, 2, &no_limits, rows, &n, &problem), OUTCOME_OK);
	conn->store->ops = queries.real;
	CHECK_INT(n, 2);
	CHECK_STRING(rows[1].key.text, "web/abc/b");
	CHECK_INT(queries.n, 2);
	CHECK_INT(queries.max_items[1], 1);
}

/* Rows written by a later version or another program. */
static void test_strange_row(struct store_conn *conn)
{
	struct item item = {0}, present = {0};
	struct problem problem;
	item_set_string(
		&item, "session", "much too long for an id of a session, which has 32 digits");
	item_set_string(&item, "ended", "yesterday");
	item_set_number(&item, "exit", 70000);
	CHECK_INT(conn->store->ops->write(conn, (struct item_key){"jobs", "no-slash"},
			  &(struct item_write){.item = &item}, &no_limits, &present, &problem),
		OUTCOME_OK);
	const struct job_row row = only_row(conn);
	CHECK_STRING(row.host, "no-slash");
	CHECK_STRING(row.job, "");
	CHECK_STRING(row.session, "");
	CHECK(row.exit == -1 && row.ended_s == 0);
	item_clear(&item);
	item_clear(&present);
}

/* Which times the end of a run changes. */
static int64_t clock_s;

static int64_t clock_of_the_test(const struct store *store)
{
	return clock_s;
}

static void test_times(struct store_conn *conn)
{
	struct store_ops ops = *conn->store->ops;
	const struct store_ops *const real = conn->store->ops;
	struct job_key key;
	struct problem problem;
	ops.time_s = clock_of_the_test;
	conn->store->ops = &ops;
	make_key("h", "j", &key);
	clock_s = 100;
	struct job_end end = end_of(0, first);
	CHECK_INT(job_row_end(conn, &key, &end, &no_limits, &problem), OUTCOME_OK);
	struct job_row row = only_row(conn);
	CHECK(row.ended_s == 100 && row.succeeded_s == 100 && row.shipped_s == 100);
	/* Nothing was uploaded. */
	clock_s = 200;
	end.uploaded = 0;
	CHECK_INT(job_row_end(conn, &key, &end, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK(row.ended_s == 200 && row.succeeded_s == 200 && row.shipped_s == 100);
	/* It found what an earlier run has uploaded. */
	clock_s = 300;
	end.repeats = true;
	CHECK_INT(job_row_end(conn, &key, &end, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK(row.ended_s == 300 && row.succeeded_s == 200 && row.shipped_s == 100);
	clock_s = 400;
	end = end_of(3, second);
	CHECK_INT(job_row_end(conn, &key, &end, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK(row.ended_s == 400 && row.succeeded_s == 200 && row.shipped_s == 400);
	CHECK_STRING(row.ended_session, second);
	clock_s = 500;
	const struct job_begin begin = {first, "s3://other/q"};
	CHECK_INT(job_row_begin(conn, &key, &begin, &no_limits, &problem), OUTCOME_OK);
	row = only_row(conn);
	CHECK(row.began_s == 500 && row.ended_s == 400 && row.first_s == 100);
	CHECK_STRING(row.target, "s3://other/q");
	conn->store->ops = real;
}

/* The first run of a job makes its row, whether it begins, fails or succeeds. */
static void test_first(struct store_conn *conn)
{
	struct store_ops ops = *conn->store->ops;
	const struct store_ops *const real = conn->store->ops;
	struct problem problem;
	ops.time_s = clock_of_the_test;
	conn->store->ops = &ops;
	for (int how = 0; how < 3; how++) {
		const struct job_begin begin = {first, "s3://b/p"};
		const struct job_end end = end_of(how == 2 ? 3 : 0, NULL);
		struct job_key key;
		make_key("h", (const char[]){(char)('a' + how), '\0'}, &key);
		key.only_updates = true;
		CHECK_INT(job_row_end(conn, &key, &end, &no_limits, &problem), OUTCOME_REFUSED);
		key.only_updates = false;
		for (clock_s = 100; clock_s < 102; clock_s++)
			CHECK_INT(how == 0 ? job_row_begin(conn, &key, &begin, &no_limits, &problem)
					   : job_row_end(conn, &key, &end, &no_limits, &problem),
				OUTCOME_OK);
		struct job_row row;
		CHECK_INT(job_row_read(conn, &key, &no_limits, &row, &problem), OUTCOME_OK);
		CHECK(row.first_s == 100 && (how == 0 ? row.began_s : row.ended_s) == 101);
		CHECK_INT(row.failed_since_s, how == 2 ? 100 : 0);
	}
	conn->store->ops = real;
}

/* Values that no run has written are as if there were none. */
static void test_impossible_values(struct store_conn *conn)
{
	static const struct {
		int64_t ended_s, exit;
		int got;
	} cases[] = {{5, 0, 0}, {5, 255, 255}, {5, 256, -1}, {5, -2, -1}, {0, 0, -1}, {-5, 0, -1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct item item = {0};
		struct problem problem;
		item_set_number(&item, "ended", cases[i].ended_s);
		item_set_number(&item, "exit", cases[i].exit);
		item_set_number(&item, "began", -7);
		CHECK_INT(conn->store->ops->write(conn, (struct item_key){"jobs", "h/abc/j"},
				  &(struct item_write){.item = &item}, &no_limits, NULL, &problem),
			OUTCOME_OK);
		const struct job_row row = only_row(conn);
		if (!CHECK_INT(row.exit, cases[i].got) || !CHECK_INT(row.began_s, 0) ||
			!CHECK(row.ended_s >= 0))
			fprintf(stderr, "\tvalues %zu\n", i);
		item_clear(&item);
	}
}

/* Rows with names that no run makes are passed over, and what follows them is not. */
static void test_names_that_are_too_long(struct store_conn *conn)
{
	static const char *const shorts[] = {"a//1", "c//1", "g//1"};
	char host[400] = "b", job[900] = "d//", machine[100] = "f/";
	struct job_row rows[3];
	struct problem problem;
	size_t n;
	memset(host + 1, 'x', JOB_HOST_MAX);
	memset(job + 3, 'x', JOB_NAME_MAX + 1);
	memset(machine + 2, 'x', JOB_MACHINE_CHARS + 1);
	const char *const sks[] = {shorts[0], host, shorts[1], job, machine, shorts[2]};
	for (size_t i = 0; i < 6; i++) {
		struct item item = {0};
		item_set_number(&item, "ended", 1);
		CHECK_INT(conn->store->ops->write(conn, (struct item_key){"jobs", sks[i]},
				  &(struct item_write){.item = &item}, &no_limits, NULL, &problem),
			OUTCOME_OK);
		item_clear(&item);
	}
	CHECK_INT(job_rows_read(conn, NULL, 3, &no_limits, rows, &n, &problem), OUTCOME_OK);
	CHECK_INT(n, 3);
	for (size_t i = 0; i < n; i++)
		CHECK_STRING(rows[i].key.text, shorts[i]);
}

static void on_fresh_store(void (*test)(struct store_conn *conn))
{
	struct store *store;
	struct store_conn *conn;
	struct problem problem;
	if (!CHECK(store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) == 0))
		return;
	if (CHECK(store_conn_new(store, &conn) == 0))
		test(conn);
	store_conn_free(conn);
	store_close(store);
}

int main(void)
{
	check_key("web1", "nginx", "web1/abc/nginx");
	check_key("a/b", "x/y z", "a_b/abc/x/y z");
	check_key("h\n", "\xff", "h\\n/abc/\\xff");
	check_key("", "", "/abc/");
	test_long_names();
	on_fresh_store(test_life);
	on_fresh_store(test_waiting);
	on_fresh_store(test_pages);
	on_fresh_store(test_room_after_a_skipped_row);
	on_fresh_store(test_strange_row);
	on_fresh_store(test_times);
	on_fresh_store(test_first);
	on_fresh_store(test_impossible_values);
	on_fresh_store(test_names_that_are_too_long);
	return check_result();
}
