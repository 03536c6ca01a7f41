/* A DynamoDB table as a store, and the calls about the table itself. Each function sends one
 * request, with its retries, unless it says otherwise. The source is the Amazon DynamoDB API
 * Reference. Strings are borrowed for each call. */
#pragma once
#include "store/store.h"

/* A table and its key attributes. sk_name is NULL if it has no sort key. */
struct table {
	const char *name, *pk_name, *sk_name;
	bool sk_is_number; /* otherwise it is a string */
};
/* Describes a table of this name with the keys of our own tables, pk and sk. */
struct table store_dynamodb_table(const char *name);
/* Opens a table with other keys, as store_dynamodb_open() does with ours. The strings of the table
 * are copied. */
int store_dynamodb_open_table(const struct aws_settings *settings, struct http_shared *http,
	const struct table *table, struct store **ret, struct problem *ret_problem);

/* Part of the sentence about an item that lacks the keys of the table, as its user has described
 * them. */
#define DYNAMODB_HAS_OTHER_KEYS "its items have other keys"

/* The calls below are about the table of the store that a connection belongs to. */

/* Capacity and tags of a new table. Zeroed, it is on demand (PAY_PER_REQUEST) and has no tags. */
struct table_terms {
	uint64_t read_units, write_units; /* provisioned capacity, if one of them is not 0 */
	const char *const *tags;          /* name, value, …, NULL; or NULL */
};
/* CreateTable. REFUSED if the table exists already (ResourceInUseException). */
enum outcome dynamodb_create_table(struct store_conn *conn, const struct table_terms *terms,
	const struct call_limits *limits, struct problem *ret_problem);
/* The status and the keys of a table. sk_name is "" if it has no sort key. Types are 'S', 'N' and
 * 'B'. */
struct dynamodb_shape {
	char status[32]; /* "ACTIVE", "CREATING", … */
	char pk_name[256], sk_name[256], pk_type, sk_type;
	/* The other Regions of a global table, for people; "" of any other table. */
	char replicas[200];
	/* Each Region judges conditions by its own replica, and the last writer wins
	 * (MultiRegionConsistency is not STRONG). So a condition does not exclude writers in
	 * another Region. */
	bool is_split;
};
/* DescribeTable. ABSENT if there is no such table. */
enum outcome dynamodb_describe_table(struct store_conn *conn, const struct call_limits *limits,
	struct dynamodb_shape *ret, struct problem *ret_problem);
/* Turns time to live on for an attribute. Also OK if it was on already. UNSUPPORTED from a server
 * without time to live. */
enum outcome dynamodb_enable_ttl(struct store_conn *conn, const char *attribute,
	const struct call_limits *limits, struct problem *ret_problem);
/* Whether time to live is on for that attribute. UNSUPPORTED as above. */
enum outcome dynamodb_describe_ttl(struct store_conn *conn, const char *attribute,
	const struct call_limits *limits, bool *ret_on, struct problem *ret_problem);

/* Compares the keys that a table has (`shape`) with those that it needs (`table`). OK, or SETUP
 * with a sentence about both. There, `what` names the items that the table was meant for, in the
 * plural ("marks"). */
enum outcome table_check_shape(const struct table *table, const char *what,
	const struct dynamodb_shape *shape, struct problem *ret_problem);

/* The argument of table_make(). */
struct table_making {
	struct table table;
	struct table_terms terms;
	const char *what;     /* the purpose of the table in messages ("marks") */
	const char *ttl_name; /* or NULL */
	uint64_t timeout_ms;
};
/* The table that table_make() has found or made. */
struct table_made {
	bool created; /* created by this call */
	/* time to live is on: false if none was requested, or on a server without it */
	bool has_ttl;
	struct dynamodb_shape shape;
};
/* Creates a table unless it is there, waits until it can be used (for timeout_ms at most), and
 * turns time to live on, which strongly consistent replicas do not have. It may be run again, and
 * by several at once. A table with other keys is refused. */
enum outcome table_make(const struct aws_settings *aws, struct http_shared *http,
	const struct table_making *making, struct table_made *ret, struct problem *ret_problem);
