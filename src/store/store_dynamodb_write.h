/* One caller's write of an item, which may be a statement of a batch or a request of its own. */
#pragma once
#include "dynamodb/dynamodb_statement.h"

/* All of it is borrowed until the write has ended. */
struct batch_write {
	struct dynamodb_conn *db; /* the caller's own */
	const struct table *table;
	struct item_key key;
	struct item_write what;           /* a put, or an update if it has no item */
	const struct call_limits *limits; /* NULL: none */
	struct item *ret_present;         /* of a refusal; zeroed by the caller */
	struct problem *ret_problem;
};

const struct call_limits *batch_write_limits(const struct batch_write *write); /* never NULL */
/* Whether it may wait for a batch: a statement can say it, and it has no deadline. */
bool batch_write_may_wait(const struct batch_write *write);
/* Sets the statement. False: it does not fit. */
bool batch_write_statement(
	const struct batch_write *write, enum dynamodb_dialect dialect, struct text *statement);
bool batch_write_is_of(const struct batch_write *write, const struct item_key *key);

/* Performs it as a request of its own. */
enum outcome batch_write_alone(const struct batch_write *write);
/* ABANDONED, and says so. */
enum outcome batch_write_give_up(const struct batch_write *write);
