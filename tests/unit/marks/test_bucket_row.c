/* The row of a bucket: what it says is read again, and names that only a later version of s3once
 * knows are ignored. */
#include "../script_aws.h"
#include "marks/bucket_row.h"
#include <stdio.h>
#include <string.h>

static const struct mark_space space = {
	.service = "service", .bucket = "bucket", .settings = {.shards = 1}};
static struct store *store;
static struct store_conn *conn;

static struct bucket_row read_again(enum outcome wanted)
{
	struct bucket_row row;
	struct problem problem = {.text = ""};
	CHECK_INT(bucket_row_read(conn, &space, NULL, &row, &problem), wanted);
	return row;
}

/* Values that another version, or a person, sets in the row. */
static enum outcome change_row(const char *name, enum value_type type, const char *value)
{
	const struct change change = {.name = name, .type = type, .value = value};
	const struct item_write write = {.changes = &change, .n_changes = 1};
	const struct item_key key = {"bucket#service/bucket", "-"};
	return store->ops->write(conn, key, &write, NULL, NULL, NULL);
}

static void test_row_is_read_again(void)
{
	struct bucket_row row = {.generation = 2,
		.last_key = "k",
		.last_etag = "e",
		.honours = "put if-match",
		.honours_server = "s",
		.honours_at_s = 5};
	struct bucket_row seen;
	struct problem problem = {.text = ""};
	CHECK_INT(bucket_row_write(conn, &space, &row, NULL, &seen, &problem), OUTCOME_OK);
	seen = read_again(OUTCOME_OK);
	CHECK_STRING(seen.version, row.version);
	CHECK_STRING(seen.last_key, "k");
	CHECK_STRING(seen.honours_server, "s");
	CHECK_STRING(seen.honours, "put if-match");
	CHECK(seen.generation == 2 && seen.honours_at_s == 5);
}

static void test_later_names_are_ignored(void)
{
	char names[400] = "put";
	for (size_t n = strlen(names); n + 20 < sizeof names; n = strlen(names))
		snprintf(names + n, sizeof names - n, " later-condition");
	CHECK_INT(change_row("honours", VALUE_STRING, names), OUTCOME_OK);
	CHECK_INT(change_row("later", VALUE_STRING, "attribute"), OUTCOME_OK);
	CHECK_STRING(read_again(OUTCOME_OK).honours, names);
}

static void test_damaged_rows_are_refused(void)
{
	CHECK_INT(change_row("generation", VALUE_NUMBER, "-1"), OUTCOME_OK);
	read_again(OUTCOME_SETUP);
	CHECK_INT(change_row("generation", VALUE_NUMBER, "0"), OUTCOME_OK);
	read_again(OUTCOME_OK);
	CHECK_INT(change_row("version", VALUE_STRING, ""), OUTCOME_OK);
	read_again(OUTCOME_SETUP);
}

/* Of two clients that have read one row, the second to write gets the row that the first has
 * written. */
static void test_one_write_of_a_version(void)
{
	struct bucket_row first = read_again(OUTCOME_OK), second = first, seen;
	struct problem problem = {.text = ""};
	first.generation = 5;
	CHECK_INT(bucket_row_write(conn, &space, &first, NULL, &seen, &problem), OUTCOME_OK);
	CHECK_INT(bucket_row_write(conn, &space, &second, NULL, &seen, &problem), OUTCOME_REFUSED);
	CHECK_STRING(seen.version, first.version);
	CHECK_INT(seen.generation, 5);
	CHECK(first.at_s > 0 && seen.at_s == first.at_s);
	/* Nor is a row written as the first one if there is one. */
	struct bucket_row none = {.generation = 0};
	CHECK_INT(bucket_row_write(conn, &space, &none, NULL, &seen, &problem), OUTCOME_REFUSED);
	CHECK_INT(read_again(OUTCOME_OK).generation, 5);
}

/* The id of a bucket counts only together with the flag that the writer sets. */
static void test_ids(void)
{
	struct bucket_row row = read_again(OUTCOME_OK), seen;
	struct problem problem = {.text = ""};
	snprintf(row.id, sizeof row.id, "an id");
	snprintf(row.id_key, sizeof row.id_key, "a key");
	CHECK_INT(bucket_row_write(conn, &space, &row, NULL, &seen, &problem), OUTCOME_OK);
	CHECK_STRING(read_again(OUTCOME_OK).id, "an id");
	CHECK_INT(change_row("object_made", VALUE_STRING, NULL), OUTCOME_OK);
	CHECK_STRING(read_again(OUTCOME_OK).id, "");
	CHECK_STRING(read_again(OUTCOME_OK).id_key, "a key");
}

static const struct store_ops *real;

static enum outcome write_twice(struct store_conn *of, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	CHECK_INT(real->write(of, key, write, limits, NULL, ret_problem), OUTCOME_OK);
	return real->write(of, key, write, limits, ret, ret_problem);
}

/* The second try of a request whose reply was lost is refused by what the first one has written. */
static void test_written_by_an_earlier_try(void)
{
	struct bucket_row row = read_again(OUTCOME_OK), seen;
	struct problem problem = {.text = ""};
	struct store_ops twice = *store->ops;
	real = store->ops;
	twice.write = write_twice;
	store->ops = &twice;
	row.generation = 6;
	CHECK_INT(bucket_row_write(conn, &space, &row, NULL, &seen, &problem), OUTCOME_OK);
	store->ops = real;
	CHECK_INT(read_again(OUTCOME_OK).generation, 6);
	CHECK_STRING(read_again(OUTCOME_OK).version, row.version);
}

#define DAYS (24 * 3600)

/* doctor's findings from a while ago, about a server that may have been replaced. */
static const struct {
	const char *honours, *server;
	int64_t age_s;
	bool puts, matches;
} recalled[] = {
	{"put if-match", "", 0, true, true},
	{"if-match", "", 0, false, true},
	{"complete put", "", 30 * DAYS - 1, true, false},
	{"put", "", 30 * DAYS, false, false},
	{"put", "", -1, false, false},
	{"put if-match", "another", 0, false, false},
	{"input puts put-if if-matches", "", 0, false, false},
	{"puts put", "", 0, true, false},
	{"", "", 0, false, false},
};

static void test_conditions(void)
{
	for (size_t i = 0; i < sizeof recalled / sizeof *recalled; i++) {
		struct script_aws aws;
		struct s3 *s3;
		struct bucket_row row = {.honours_at_s = 100 * DAYS - recalled[i].age_s}, noted;
		if (!script_aws_start(&aws, NULL, 0) ||
			!CHECK_INT(s3_open(&aws.settings, aws.http, "b", &s3, NULL), 0))
			return;
		snprintf(row.honours, sizeof row.honours, "%s", recalled[i].honours);
		snprintf(row.honours_server, sizeof row.honours_server, "%s", recalled[i].server);
		conditions_recall(&row, s3, 100 * DAYS);
		bool ok = CHECK((s3_supports(s3, S3_PUT_CONDITION) == S3_YES) == recalled[i].puts);
		ok = CHECK((s3_supports(s3, S3_IF_MATCH) == S3_YES) == recalled[i].matches) && ok;
		conditions_note(&noted, s3);
		ok = CHECK((strstr(noted.honours, "put") != NULL) == recalled[i].puts) && ok;
		ok = CHECK((strstr(noted.honours, "if-match") != NULL) == recalled[i].matches) &&
		     ok;
		CHECK_STRING(noted.honours_server, "");
		if (!ok)
			fprintf(stderr, "\tconditions %zu: %s\n", i, noted.honours);
		script_stop(&aws.server);
		s3_close(s3);
		script_aws_end(&aws);
	}
}

int main(void)
{
	struct problem problem = {.text = ""};
	CHECK_INT(store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem), 0);
	CHECK_INT(store_conn_new(store, &conn), 0);
	CHECK_INT(read_again(OUTCOME_OK).version[0], 0);
	test_row_is_read_again();
	test_later_names_are_ignored();
	test_one_write_of_a_version();
	test_ids();
	test_written_by_an_earlier_try();
	test_conditions();
	test_damaged_rows_are_refused();
	store_conn_free(conn);
	store_close(store);
	return check_result();
}
