/* Marks of several shards come as one sorted stream, page by page, in the order of their keys or of
 * their objects'. */
#include "../check.h"
#include "marks/mark_stream.h"
#include <stdlib.h>
#include <string.h>

static const struct mark_space space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 100}};

/* Only the first shards have marks, so that few make more than one page of each. */
#define FULL_SHARDS 7
#define MARKS       (FULL_SHARDS * MARK_STREAM_ROWS / 100 * 3 / 2)

static void put_mark_of(struct store_conn *conn, const char *key, const char *suffix, int64_t size)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	struct problem problem;
	mark_partition(&space, mark_shard(key, space.settings.shards), partition);
	item_set_string(&item, "state", "done");
	item_set_string(&item, "etag", "e");
	item_set_number(&item, "size", size);
	item_set_number(&item, "mtime", 7);
	if (*suffix)
		item_set_string(&item, "suffix", suffix);
	CHECK_INT(conn->store->ops->write(conn, (struct item_key){partition, key},
			  &(struct item_write){.item = &item}, &no_limits, &present, &problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

static void put_mark(struct store_conn *conn, const char *key, int64_t size)
{
	put_mark_of(conn, key, "", size);
}

/* The objects of the marks after this key of an object, in their order, each with a space behind.
 */
static void check_objects(struct store_conn *conn, const char *after, const char *expected)
{
	const struct mark_range range = {.prefix = "o", .after = after, .by_object = true};
	struct mark_stream *stream = NULL;
	struct packed_mark *row = NULL;
	struct problem problem;
	char seen[200] = "";
	CHECK_INT(mark_stream_new(conn, &space, &range, &no_limits, &stream), 0);
	while (mark_stream_next(stream, &row, &problem) == OUTCOME_OK && row) {
		const size_t n = strlen(seen);
		snprintf(seen + n, sizeof seen - n, "%s ", row->object_key);
		free(row);
	}
	CHECK_STRING(seen, expected);
	mark_stream_free(stream);
}

/* The mark o, whose object is o.zst, waits for o-b and o.gz, and comes before op. */
static void test_order_of_objects(struct store_conn *conn)
{
	put_mark_of(conn, "o", ".zst", 1);
	put_mark_of(conn, "o-b", ".gz", 1);
	put_mark_of(conn, "o-bc", "", 1);
	put_mark_of(conn, "o.gz", "", 1);
	put_mark_of(conn, "op", ".gz", 1);
	check_objects(conn, NULL, "o-b.gz o-bc o.gz o.zst op.gz ");
	check_objects(conn, "o-b", "o-b.gz o-bc o.gz o.zst op.gz ");
	check_objects(conn, "o-b.gz", "o-bc o.gz o.zst op.gz ");
	check_objects(conn, "o.gz", "o.zst op.gz ");
	check_objects(conn, "o.zst", "op.gz ");
	check_objects(conn, "op.gz", "");
}

/* Reads the range, and checks that it rises from the first key to the last; returns how many. */
static unsigned read_range(struct store_conn *conn, const char *prefix, const char *after,
	const char *first, const char *last)
{
	const struct mark_range range = {prefix, after};
	struct mark_stream *stream = NULL;
	struct packed_mark *row = NULL;
	struct problem problem;
	char previous[KEY_BYTES_MAX + 1] = "";
	unsigned n = 0;
	CHECK_INT(mark_stream_new(conn, &space, &range, &no_limits, &stream), 0);
	while (mark_stream_next(stream, &row, &problem) == OUTCOME_OK && row) {
		CHECK(strcmp(previous, row->key) < 0);
		if (n == 0)
			CHECK_STRING(row->key, first);
		const struct mark mark = mark_unpack(row);
		CHECK(mark.state == MARK_DONE && strcmp(mark.done.etag, "e") == 0 &&
			!*mark.done.suffix);
		snprintf(previous, sizeof previous, "%s", row->key);
		free(row);
		n++;
	}
	CHECK(!row);
	CHECK_STRING(previous, last);
	mark_stream_free(stream);
	return n;
}

int main(void)
{
	struct store *store = NULL;
	struct store_conn *conn = NULL;
	struct problem problem;
	char key[32], first[32] = "", last[32] = "", hundredth[32] = "", next[32] = "";
	CHECK_INT(store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem), 0);
	CHECK_INT(store_conn_new(store, &conn), 0);
	for (unsigned i = 0, n = 0; n < MARKS; i++) {
		snprintf(key, sizeof key, "k/%06u", i);
		if (mark_shard(key, space.settings.shards) >= FULL_SHARDS)
			continue;
		put_mark(conn, key, i);
		strcpy(n == 0 ? first : n == 99 ? hundredth : n == 100 ? next : last, key);
		n++;
	}
	put_mark(conn, "a", 1);
	put_mark(conn, "k", 1);
	put_mark(conn, "k0", 1);
	CHECK_INT(read_range(conn, "", NULL, "a", "k0"), MARKS + 3);
	CHECK_INT(read_range(conn, "k/", NULL, first, last), MARKS);
	CHECK_INT(read_range(conn, "k/", hundredth, next, last), MARKS - 100);
	CHECK_INT(read_range(conn, "k/", "b", first, last), MARKS);
	CHECK_INT(read_range(conn, "", "k", first, "k0"), MARKS + 1);
	CHECK_INT(read_range(conn, "k/", "l", "", ""), 0);
	CHECK_INT(read_range(conn, "none/", NULL, "", ""), 0);
	test_order_of_objects(conn);
	store_conn_free(conn);
	store_close(store);
	return check_result();
}
