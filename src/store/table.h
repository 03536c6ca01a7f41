/* Making and judging DynamoDB tables, of marks and of locks alike. */
#pragma once
#include "dynamodb/dynamodb.h"

/* OK, or SETUP with a sentence: this is not the shape of a table for `what`. */
enum outcome table_check_shape(const struct table *table, const char *what,
	const struct dynamodb_shape *shape, struct problem *ret_problem);

/* Creates a table unless it is there, waits until it is ACTIVE (at most timeout_ms), turns TTL on;
 * safe to run again and by several at once. Refuses a table with other keys. *ret_ttl is false,
 * with OK, if none was asked for or on a server without TTL. */
struct table_making {
	struct table table;
	struct table_terms terms;
	const char *what;     /* the table is for ("marks"), for sentences */
	const char *ttl_name; /* or NULL */
	uint64_t timeout_ms;
};
enum outcome table_make(const struct aws_settings *aws, struct http_shared *http,
	const struct table_making *making, bool *ret_created, bool *ret_ttl,
	struct problem *ret_problem);
