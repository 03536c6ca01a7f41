/* The DynamoDB calls that marks and locks need. Each function sends one request, with its retries,
 * unless it says otherwise. The source is the Amazon DynamoDB API Reference.
 *
 * Attributes are sent as expression attribute names, so that none is ever a reserved word. Strings
 * are borrowed for each call. One connection is used by one thread at a time; the rest may be
 * shared. */
#pragma once
#include "store/store.h"

struct dynamodb;
int dynamodb_open(
	const struct aws_settings *settings, struct http_shared *http, struct dynamodb **ret);
void dynamodb_close(struct dynamodb *db);
/* Borrowed: it has the counters and the service's clock. */
struct service *dynamodb_service(struct dynamodb *db);

/* Where a thread writes its requests. While one is under way, it borrows a connection of the
 * service. */
struct dynamodb_conn;
int dynamodb_conn_new(struct dynamodb *db, struct dynamodb_conn **ret);
void dynamodb_conn_free(struct dynamodb_conn *conn);

/* A table and its key attributes. sk_name is NULL if it has no sort key. */
struct table {
	const char *name, *pk_name, *sk_name;
	bool sk_is_number; /* else a string */
};
/* PutItem, UpdateItem or DeleteItem, as store.h says of a write. A put adds the key attributes to
 * the item, and every item that comes back has them among its attributes. An update that must not
 * create the item has one condition more: that the key is present.
 *
 * REFUSED fills *ret, which the caller has zeroed, with the item as it is. It comes with the reply
 * (ReturnValuesOnConditionCheckFailure=ALL_OLD), or from a server without that by a consistent
 * GetItem. An empty item then means that it is gone by now. ret may be NULL. */
enum outcome dynamodb_write(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret, struct problem *ret_problem);
/* GetItem. ABSENT if there is no such item. */
enum outcome dynamodb_get(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, bool consistent, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* Reads the item after a refusal that did not bring it along, by a consistent GetItem. REFUSED with
 * *ret, which is empty if the item is gone by now.
 *
 * A refusal may hide an earlier try of ours that was applied. So the outcome of a read that failed
 * never says "not applied". */
enum outcome dynamodb_present(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* BatchGetItem, eventually consistent, with 100 keys in each request. Unprocessed keys are asked
 * for again. Items are visited in no order, and missing ones are not visited. */
enum outcome dynamodb_get_many(struct dynamodb_conn *conn, const struct table *table,
	const struct item_key *keys, size_t n, const struct call_limits *limits, item_visitor *each,
	void *arg, struct problem *ret_problem);

/* One page of a Query, in the order of sort keys. *ret_more says whether there may be items after
 * the last one that was visited. */
enum outcome dynamodb_query(struct dynamodb_conn *conn, const struct table *table,
	const struct store_range *range, const struct call_limits *limits, item_visitor *each,
	void *arg, bool *ret_more, struct problem *ret_problem);

/* Scan. It visits every item of the table in no order, page by page, with consistent reads. */
enum outcome dynamodb_scan(struct dynamodb_conn *conn, const struct table *table,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem);

/* How a new table is paid for and tagged. Zeroed, it is on demand (PAY_PER_REQUEST) and has no
 * tags. */
struct table_terms {
	uint64_t read_units, write_units; /* provisioned, if one of them is not 0 */
	const char *const *tags;          /* name, value, …, NULL; or NULL */
};
/* CreateTable. REFUSED if the table exists already (ResourceInUseException). terms may be NULL. */
enum outcome dynamodb_create_table(struct dynamodb_conn *conn, const struct table *table,
	const struct table_terms *terms, const struct call_limits *limits,
	struct problem *ret_problem);
/* What a table is. sk_name is "" if it has no sort key. Types are 'S', 'N' and 'B'. */
struct dynamodb_shape {
	char status[32]; /* "ACTIVE", "CREATING", … */
	char pk_name[256], sk_name[256], pk_type, sk_type;
};
/* DescribeTable. ABSENT if there is no such table. */
enum outcome dynamodb_describe_table(struct dynamodb_conn *conn, const char *table,
	const struct call_limits *limits, struct dynamodb_shape *ret, struct problem *ret_problem);
/* Turns time to live on for an attribute. OK also if it was on. UNSUPPORTED from a server without
 * time to live. */
enum outcome dynamodb_enable_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, struct problem *ret_problem);
/* Whether time to live is on for that attribute. UNSUPPORTED as above. */
enum outcome dynamodb_describe_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, bool *ret_on,
	struct problem *ret_problem);

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

/* As store_dynamodb_open(), of a table with other keys. The strings of the table are copied. */
int store_dynamodb_open_table(const struct aws_settings *settings, struct http_shared *http,
	const struct table *table, struct store **ret, struct problem *ret_problem);
/* The names of our own table's keys, for a call below the store. */
struct table store_dynamodb_table(const char *name);
