/* The writes to the marks in a test of steps: which ones come, in which order, and which of them
 * may be synced later. Another uploader may come before a write of the mark, and a write may fail.
 */
#pragma once
#include "steps.h"

struct store_spy {
	struct store_ops ops; /* of the store, with the two that are seen here */
	const struct store_ops *real;
	struct steps *steps;
	bool is_off; /* the writes are those of another uploader */
	/* A letter for each write: 'B' of the bucket's row, 'M' of the mark, and 'm' of the mark if
	 * it may be synced later. */
	char writes[64];
	size_t n;
	/* Called before each write of the mark; NULL: nothing happens. */
	void (*before)(struct steps *steps);
	/* The letter of writes that have this outcome, and change nothing unless only the reply is
	 * lost; 'S': reading the row of a session has it. */
	char fails;
	enum outcome outcome;
	bool loses_reply;
};

static inline struct store_spy *store_spy(void)
{
	static struct store_spy spy;
	return &spy;
}

static inline enum outcome store_spy_write(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct store_spy *spy = store_spy();
	const bool is_mark = key.sk && strcmp(key.sk, "k") == 0;
	const char letter = is_mark ? (write->may_sync_later ? 'm' : 'M') : 'B';
	/* The heartbeats have a thread of their own, and are not noted. */
	if ((!is_mark && strncmp(key.pk, "bucket#", 7) != 0) || spy->is_off)
		return spy->real->write(conn, key, write, limits, ret, ret_problem);
	if (spy->n + 1 < sizeof spy->writes)
		spy->writes[spy->n++] = letter;
	if (is_mark && spy->before) {
		spy->is_off = true;
		spy->before(spy->steps);
		spy->is_off = false;
	}
	if (letter == spy->fails && spy->loses_reply)
		CHECK_INT(spy->real->write(conn, key, write, limits, ret, ret_problem), OUTCOME_OK);
	if (letter == spy->fails)
		return outcome_error(ret_problem, spy->outcome, "as the test wants");
	return spy->real->write(conn, key, write, limits, ret, ret_problem);
}

static inline enum outcome store_spy_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct store_spy *spy = store_spy();
	if (spy->fails == 'S' && strncmp(key.pk, "session#", 8) == 0)
		return outcome_error(ret_problem, spy->outcome, "as the test wants");
	return spy->real->get(conn, key, consistency, limits, ret, ret_problem);
}

/* Writes are noted from now on. */
static inline struct store_spy *store_spy_begin(struct steps *steps)
{
	struct store_spy *spy = store_spy();
	struct store *store = steps->run->store;
	*spy = (struct store_spy){.ops = *store->ops, .real = store->ops, .steps = steps};
	spy->ops.write = store_spy_write;
	spy->ops.get = store_spy_get;
	store->ops = &spy->ops;
	return spy;
}

/* Each store has its own operations back before it is closed. */
static inline void store_spy_end(struct store_spy *spy)
{
	spy->steps->run->store->ops = spy->real;
}
