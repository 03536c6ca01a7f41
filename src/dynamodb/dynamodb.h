/* The DynamoDB calls a mark store needs, each one request (with its retries). Source: Amazon
 * DynamoDB API Reference. Every attribute goes by an expression attribute name, so reserved words
 * are never met. */
#pragma once
#include "aws/call.h"
#include "dynamodb/item.h"

struct dynamodb;
int dynamodb_open(
	const struct aws_settings *settings, struct http_shared *http, struct dynamodb **ret);
void dynamodb_close(struct dynamodb *db);
struct service *dynamodb_service(struct dynamodb *db); /* borrowed: counters, clock */

/* Where a thread writes its requests. Each borrows a connection of the service while it is under
 * way. */
struct dynamodb_conn;
int dynamodb_conn_new(struct dynamodb *db, struct dynamodb_conn **ret);
void dynamodb_conn_free(struct dynamodb_conn *conn);

/* A table and its key attributes; sk_name NULL if it has no sort key. All strings borrowed for each
 * call. */
struct table {
	const char *name, *pk_name, *sk_name;
	bool sk_is_number; /* else a string */
};
struct item_key {
	const char *pk, *sk;
}; /* sk NULL if the table has none; a number is decimal text */

/* PutItem. Key attributes are added to the item by this call, and every item that comes back has
 * them among its attributes. REFUSED fills *ret_present (zeroed by
 * the caller) with the item as it is, by ReturnValuesOnConditionCheckFailure=ALL_OLD or, from a
 * server without it, by a consistent GetItem: an empty item then says that it is gone by now. */
enum outcome dynamodb_put(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item *item, const struct condition *conditions,
	size_t n_conditions, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem);
/* UpdateItem; never creates the item: pk must be present is always among the conditions. REFUSED as
 * above. */
enum outcome dynamodb_update(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct change *changes, size_t n_changes,
	const struct condition *conditions, size_t n_conditions, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem);
/* An update that may create the item, and count. */
struct taking {
	const struct change *changes;
	size_t n_changes;
	const struct condition *conditions; /* on an item that is there */
	size_t n_conditions;
	bool or_absent;    /* an item that is not there is created */
	const char *count; /* a number attribute that grows by one (absent: from 0), or NULL */
};
/* Whether an item that is there is refused: nothing says which one may be changed. */
bool taking_only_creates(const struct taking *taking);
/* Applies it in one step. OK: *ret (zeroed by the caller) is the item as it is now; REFUSED: as it
 * is, as above. */
enum outcome dynamodb_take(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct taking *taking, const struct call_limits *limits,
	struct item *ret, struct problem *ret_problem);
enum outcome dynamodb_delete(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct condition *conditions, size_t n_conditions,
	const struct call_limits *limits, struct item *ret_present, struct problem *ret_problem);
/* GetItem; ABSENT if there is none. */
enum outcome dynamodb_get(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, bool consistent, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* The item that stands behind a refusal which did not bring it along, by a consistent GetItem.
 * REFUSED with *ret (empty: it is gone by now). Since a refusal may hide an earlier try of ours
 * that was applied, the outcome of a failed read is never one that says "not applied". */
enum outcome dynamodb_present(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* What a reading call hands out, one item at a time; sk is the item's sort key; the item is
 * borrowed. Nonzero ends it: OUTCOME_LOCAL. */
typedef int item_visitor(void *arg, const char *pk, const char *sk, const struct item *item);

/* BatchGetItem, eventually consistent, 100 keys a request, unprocessed keys asked for again.
 * Missing items are not visited; no order. */
enum outcome dynamodb_get_many(struct dynamodb_conn *conn, const struct table *table,
	const struct item_key *keys, size_t n, const struct call_limits *limits, item_visitor *each,
	void *arg, struct problem *ret_problem);

/* One page of a Query in sort key order: sk >= from (NULL: from the first; exclusive if after), sk
 * <= to (NULL: to the last), at most `most` items (0: as many as a page holds). *ret_more says
 * whether there may be items after the last one visited. */
struct dynamodb_range {
	const char *pk, *from;
	bool after;
	const char *to;
	unsigned most;
	bool consistent;
};
enum outcome dynamodb_query(struct dynamodb_conn *conn, const struct table *table,
	const struct dynamodb_range *range, const struct call_limits *limits, item_visitor *each,
	void *arg, bool *ret_more, struct problem *ret_problem);

/* Every item of the table, page by page, consistently; no order. */
enum outcome dynamodb_scan(struct dynamodb_conn *conn, const struct table *table,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem);

/* How a new table is paid for and labelled; zeroed: on demand (PAY_PER_REQUEST), no tags. */
struct table_terms {
	uint64_t read_units, write_units; /* provisioned, if either is not 0 */
	const char *const *tags;          /* name, value, …, NULL; or NULL */
};
/* REFUSED if the table exists already (ResourceInUseException). terms may be NULL. */
enum outcome dynamodb_create_table(struct dynamodb_conn *conn, const struct table *table,
	const struct table_terms *terms, const struct call_limits *limits,
	struct problem *ret_problem);
struct dynamodb_shape {
	char status[32]; /* "ACTIVE", "CREATING", … */
	char pk_name[256], sk_name[256], pk_type,
		sk_type; /* sk_name "" if there is none; types 'S', 'N', 'B' */
};
/* ABSENT if there is no such table. */
enum outcome dynamodb_describe_table(struct dynamodb_conn *conn, const char *table,
	const struct call_limits *limits, struct dynamodb_shape *ret, struct problem *ret_problem);
/* Turns TTL on for an attribute; OK if it was on; UNSUPPORTED from a server without TTL. */
enum outcome dynamodb_enable_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, struct problem *ret_problem);
/* Whether TTL is on for that attribute; UNSUPPORTED as above. */
enum outcome dynamodb_describe_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, bool *ret_on,
	struct problem *ret_problem);
