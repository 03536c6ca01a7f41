/* The DynamoDB calls that marks and locks need. Each function sends one request, with its retries,
 * unless it says otherwise. The source is the Amazon DynamoDB API Reference.
 *
 * Attributes are sent as expression attribute names, so that none is ever a reserved word. Strings
 * are borrowed for each call. One connection is used by one thread at a
 * time; the rest may be shared. */
#pragma once
#include "aws/call.h"
#include "dynamodb/item.h"

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
/* The key of an item. sk is NULL if the table has no sort key. A number is decimal text. */
struct item_key {
	const char *pk, *sk;
};

/* What a conditional write does to an item. Borrowed during the call. */
struct item_write {
	/* Of a put: the whole item. NULL: an update by `changes`, or a removal. */
	const struct item *item;
	const struct change *changes;
	size_t n_changes;
	/* All of them have to be met. */
	const struct condition *conditions;
	size_t n_conditions;
	/* A failure of power may undo it for a while, as store.h says of SQLite. DynamoDB keeps
	 * whatever it has answered. */
	bool may_sync_later;
};

/* PutItem. The call adds the key attributes to the item. Every item that comes back has them among
 * its attributes.
 *
 * REFUSED fills *ret_present, which the caller has zeroed, with the item as it is. It comes with
 * the reply (ReturnValuesOnConditionCheckFailure=ALL_OLD), or from a server without that by a
 * consistent GetItem. An empty item then means that it is gone by now. */
enum outcome dynamodb_put(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem);
/* UpdateItem. It never creates the item, since one of its conditions is always that the key is
 * present. REFUSED as above. */
enum outcome dynamodb_update(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem);
/* An update that may create the item, and count. */
struct taking {
	const struct change *changes;
	size_t n_changes;
	/* On an item that is there. */
	const struct condition *conditions;
	size_t n_conditions;
	/* An item that is not there is created. */
	bool or_absent;
	/* An attribute to which 1 is added. It counts from 0 if it is absent. NULL: none. */
	const char *count;
};
/* Whether every item that is there is refused, since no condition names one that may be changed. */
bool taking_only_creates(const struct taking *taking);
/* Applies it in one step. OK fills *ret, which the caller has zeroed, with the item as it is now.
 * REFUSED as above. */
enum outcome dynamodb_take(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct taking *taking, const struct call_limits *limits,
	struct item *ret, struct problem *ret_problem);
/* DeleteItem, by the conditions of `write`. OK also if the item is not there and no condition says
 * that it has to be. REFUSED as above. */
enum outcome dynamodb_delete(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem);
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

/* Is given one item at a time, which is borrowed during the call. Any value but 0 ends the reading
 * call, which then returns OUTCOME_LOCAL. */
typedef int item_visitor(void *arg, const char *pk, const char *sk, const struct item *item);

/* BatchGetItem, eventually consistent, with 100 keys in each request. Unprocessed keys are asked
 * for again. Items are visited in no order, and missing ones are not visited. */
enum outcome dynamodb_get_many(struct dynamodb_conn *conn, const struct table *table,
	const struct item_key *keys, size_t n, const struct call_limits *limits, item_visitor *each,
	void *arg, struct problem *ret_problem);

/* A range of the items of one partition. */
struct dynamodb_range {
	const char *pk;
	/* The first sort key, or with `after` the one before it. NULL: the first of all. */
	const char *from;
	bool after;
	/* The last sort key. NULL: the last of all. */
	const char *to;
	/* The most items. 0: as many as a page holds. */
	unsigned most;
	bool consistent;
};
/* One page of a Query, in the order of sort keys. *ret_more says whether there may be items after
 * the last one that was visited. */
enum outcome dynamodb_query(struct dynamodb_conn *conn, const struct table *table,
	const struct dynamodb_range *range, const struct call_limits *limits, item_visitor *each,
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
