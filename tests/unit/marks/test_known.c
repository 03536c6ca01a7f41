/* Known marks for rising keys, on a real store whose requests are counted. */
#include "../check.h"
#include "marks/known.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct counted {
	struct store store;
	struct store *inner;
	atomic_uint queries, batches, conns;
	_Atomic enum outcome fails_with;
	atomic_bool has_no_conns;
};

struct counting_conn {
	struct store_conn conn;
	struct store_conn *inner;
};

static struct counted *counted_of(struct store_conn *conn)
{
	return (struct counted *)conn->store;
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct counted *counted = (struct counted *)store;
	if (atomic_load(&counted->has_no_conns))
		return -EMFILE;
	struct counting_conn *counting = calloc(1, sizeof *counting);
	if (!counting)
		return -ENOMEM;
	counting->conn.store = store;
	atomic_fetch_add(&counted->conns, 1);
	*ret = &counting->conn;
	return store_conn_new(counted->inner, &counting->inner);
}

static void conn_free(struct store_conn *conn)
{
	store_conn_free(((struct counting_conn *)conn)->inner);
	free(conn);
}

static enum outcome count_query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	struct store_conn *inner = ((struct counting_conn *)conn)->inner;
	struct counted *counted = counted_of(conn);
	counted->queries++;
	if (counted->fails_with != OUTCOME_OK)
		return counted->fails_with;
	return inner->store->ops->query(inner, range, limits, each, arg, ret_more, ret_problem);
}

static enum outcome count_batch(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, found_visitor *each, void *arg,
	struct problem *ret_problem)
{
	struct store_conn *inner = ((struct counting_conn *)conn)->inner;
	counted_of(conn)->batches++;
	return inner->store->ops->get_many(inner, keys, n, limits, each, arg, ret_problem);
}

static const struct store_ops counting_ops = {.conn_new = conn_new,
	.conn_free = conn_free,
	.query = count_query,
	.get_many = count_batch};
static struct counted counted = {.store = {&counting_ops}};

static const struct mark_space space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 4}};

#define MARKS     5000
#define ASKED_MAX 1000

static char names[MARKS * 2][12]; /* rising; those with an even index have marks */

static void put_marks(struct store_conn *conn)
{
	for (unsigned i = 0; i < MARKS * 2; i++) {
		char partition[PARTITION_MAX];
		struct item item = {0}, present = {0};
		struct problem problem;
		snprintf(names[i], sizeof names[i], "k%05u", i);
		if (i % 2)
			continue;
		mark_partition(&space, mark_shard(names[i], space.settings.shards), partition);
		item_set_string(&item, "state", "done");
		item_set_number(&item, "size", i);
		item_set_number(&item, "mtime", 7);
		CHECK_INT(conn->store->ops->write(conn, (struct item_key){partition, names[i]},
				  &(struct item_write){.item = &item}, &no_limits, &present,
				  &problem),
			OUTCOME_OK);
		item_clear(&item);
		item_clear(&present);
	}
}

/* Asks for n keys from an index on, with so many in between left out, and checks each answer. */
static void ask(struct known *known, unsigned from, unsigned step, size_t n, bool last)
{
	const char *keys[ASKED_MAX];
	struct packed_mark *marks[ASKED_MAX];
	struct problem problem;
	unsigned wrong = 0;
	for (size_t i = 0; i < n; i++)
		keys[i] = names[from + step * i];
	CHECK_INT(known_read(known, keys, n, last, marks, &problem), OUTCOME_OK);
	for (size_t i = 0; i < n; i++) {
		const unsigned at = from + step * (unsigned)i;
		const struct file_version file = {at, 7, ""};
		const struct mark mark = mark_unpack(marks[i]);
		wrong += (mark_says(&mark, &file) == SAYS_DONE) != (at % 2 == 0);
		wrong += mark.state != (at % 2 ? MARK_ABSENT : MARK_DONE);
		wrong += (marks[i] == NULL) != (at % 2 == 1);
		free(marks[i]);
	}
	CHECK_INT(wrong, 0);
}

static struct known *begin(struct store_conn *conn)
{
	struct known *known = NULL;
	counted.queries = counted.batches = counted.conns = 0;
	CHECK_INT(known_new(conn, &space, &no_limits, 0, &known), 0);
	return known;
}

static void test_merged(struct store_conn *conn)
{
	struct known *known = begin(conn);
	for (unsigned i = 0; i < 10; i++)
		ask(known, i * ASKED_MAX, 1, ASKED_MAX, i == 9);
	CHECK(counted.queries < 100);
	CHECK_INT(counted.batches, 0);
	known_free(known);
}

static void test_few_are_one_batch(struct store_conn *conn)
{
	struct known *known = begin(conn);
	ask(known, 17, 90, 100, true);
	CHECK_INT(counted.queries, 0);
	CHECK_INT(counted.batches, 1);
	known_free(known);
}

/* One in fifty of the marks that are passed is asked for: from some point on they are read alone.
 */
static void test_sparse(struct store_conn *conn)
{
	struct known *known = begin(conn);
	ask(known, 0, 100, 50, false);
	CHECK(counted.queries && !counted.batches);
	const unsigned queries = counted.queries;
	ask(known, 5000, 100, 25, false);
	ask(known, 7500, 100, 25, true);
	CHECK_INT(counted.queries, queries);
	CHECK_INT(counted.batches, 2);
	known_free(known);
}

/* The first pages of all shards are read at the same time, as far as there are connections. */
static void test_shards_begin_together(struct store_conn *conn)
{
	struct known *known = begin(conn);
	ask(known, 0, 1, 100, false);
	CHECK_INT(counted.queries, space.settings.shards);
	CHECK(counted.conns > 0);
	known_free(known);
	counted.has_no_conns = true;
	known = begin(conn);
	ask(known, 0, 1, ASKED_MAX, false);
	CHECK_INT(counted.conns, 0);
	known_free(known);
	counted.has_no_conns = false;
}

/* An error is never taken for a mark that is absent, also when the same is asked again. */
static void test_error(struct store_conn *conn)
{
	struct known *known = begin(conn);
	struct problem problem;
	const char *keys[] = {names[0], names[2], names[4], names[6], names[8]};
	struct packed_mark *marks[5];
	counted.fails_with = OUTCOME_THROTTLED;
	CHECK_INT(known_read(known, keys, 5, false, marks, &problem), OUTCOME_THROTTLED);
	CHECK_INT(known_read(known, keys, 1, false, marks, &problem), OUTCOME_THROTTLED);
	counted.fails_with = OUTCOME_OK;
	ask(known, 0, 1, 10, false);
	known_free(known);
}

int main(void)
{
	struct store_conn *conn;
	struct problem problem = {0};
	if (!CHECK(!store_sqlite_open(":memory:", STORE_WRITTEN, &counted.inner, &problem)))
		return check_result();
	CHECK_INT(store_conn_new(&counted.store, &conn), 0);
	put_marks(((struct counting_conn *)conn)->inner);
	test_merged(conn);
	test_few_are_one_batch(conn);
	test_sparse(conn);
	test_shards_begin_together(conn);
	test_error(conn);
	store_conn_free(conn);
	store_close(counted.inner);
	return check_result();
}
