/* The lease of a session over a store whose answers take a while. */
#include "../check.h"
#include "base/clock.h"
#include "marks/session.h"
#include <stdlib.h>

#define LEASE_NS  (60 * NS_PER_S)
#define ANSWER_NS (2 * NS_PER_MS)

/* A store that passes each write on to another, and then takes its time. */
static uint64_t arrived_ns; /* when the last write did */
static struct store *inner;

static enum outcome write_slowly(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	struct store_conn *there;
	arrived_ns = clock_boot_ns();
	if (store_conn_new(inner, &there))
		abort();
	const enum outcome o =
		inner->ops->write(there, key, write, limits, ret_present, ret_problem);
	store_conn_free(there);
	while (clock_boot_ns() < arrived_ns + ANSWER_NS)
		;
	return o;
}

static int64_t time_s(const struct store *store)
{
	return 1000;
}

static int slow_conn_new(struct store *store, struct store_conn **ret)
{
	static struct store_conn conn;
	conn.store = store;
	*ret = &conn;
	return 0;
}

static void slow_conn_free(struct store_conn *conn)
{
}

static const struct store_ops slow_ops = {.conn_new = slow_conn_new,
	.conn_free = slow_conn_free,
	.write = write_slowly,
	.time_s = time_s};
static struct store slow = {&slow_ops};

/* Others count from when they see the row, which may be long before the reply is here. */
static void test_counted_from_before_it_is_sent(void)
{
	const struct session_options options = {.store = &slow, .lease_ns = LEASE_NS};
	struct store_conn *conn;
	struct session *session;
	struct problem problem = {0};
	if (store_conn_new(&slow, &conn) || session_new(&options, &session))
		abort();
	CHECK_INT(session_begin(session, conn, &problem), OUTCOME_OK);
	CHECK(session_lease_ends_ns(session) > arrived_ns);
	CHECK(session_lease_ends_ns(session) <= arrived_ns + LEASE_NS);
	session_close(session, NULL);
	store_conn_free(conn);
}

int main(void)
{
	struct problem problem = {0};
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, false, &inner, &problem) < 0)
		return 1;
	test_counted_from_before_it_is_sent();
	store_close(inner);
	return check_result();
}
