/* The row of a bucket: what it says is read again, and names that only a later version of s3once
 * knows are ignored. */
#include "../check.h"
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

/* What another version, or a person, sets in the row. */
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

int main(void)
{
	struct problem problem = {.text = ""};
	CHECK_INT(store_sqlite_open(STORE_SQLITE_NOWHERE, false, &store, &problem), 0);
	CHECK_INT(store_conn_new(store, &conn), 0);
	CHECK_INT(read_again(OUTCOME_OK).version[0], 0);
	test_row_is_read_again();
	test_later_names_are_ignored();
	test_damaged_rows_are_refused();
	store_conn_free(conn);
	store_close(store);
	return check_result();
}
