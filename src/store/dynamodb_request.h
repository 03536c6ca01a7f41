/* How a DynamoDB request is written, and how its reply is read. For dynamodb*.c only. */
#pragma once
#include "http/http.h"
#include "store/dynamodb.h"
#include "store/dynamodb_batch.h"
#include "store/item_json.h"

enum dynamodb_kind {
	DYNAMODB_PUT,
	DYNAMODB_UPDATE,
	DYNAMODB_DELETE,
	DYNAMODB_GET,
	DYNAMODB_GET_MANY,
	DYNAMODB_QUERY,
	DYNAMODB_SCAN,
	DYNAMODB_CREATE_TABLE,
	DYNAMODB_DESCRIBE_TABLE,
	DYNAMODB_ENABLE_TTL,
	DYNAMODB_DESCRIBE_TTL,
	DYNAMODB_BATCH_EXECUTE,
};
extern const char *const dynamodb_kinds[]; /* their names, and NULL */

/* The store. */
struct dynamodb {
	struct store store;
	struct service *service;
	char *name, *pk_name, *sk_name;
	struct table table; /* borrows these */
	struct batches batches;
};
/* Where a thread writes its requests. While one is under way, it borrows a connection of the
 * service. */
struct dynamodb_conn {
	struct store_conn conn;
	struct dynamodb *db;
	const struct table *table;
	struct text body; /* of the request that is under way */
	struct batch_ticket ticket;
};
struct dynamodb_conn *dynamodb_conn_of(struct store_conn *conn);

/* What store_ops.write() does, without batches: PutItem, UpdateItem or DeleteItem. Attributes are
 * sent as expression attribute names, so that none is ever a reserved word. A put adds the key
 * attributes to the item, and every item that comes back has them among its attributes. An update
 * that must not create the item has one condition more: that the key is present.
 *
 * The item of a refusal comes with the reply (ReturnValuesOnConditionCheckFailure=ALL_OLD), or from
 * a server without that by a consistent GetItem. */
enum outcome dynamodb_write_alone(struct dynamodb_conn *db, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);
/* Reads the item after a refusal that did not bring it along, by a consistent GetItem. REFUSED with
 * *ret, which is empty if the item is gone by now.
 *
 * A refusal may hide an earlier try of ours that was applied. So the outcome of a read that failed
 * never says "not applied". */
enum outcome dynamodb_present(struct dynamodb_conn *db, struct item_key key,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem);

/* Operations of the store, as store.h says. A BatchGetItem has 100 keys, and unprocessed keys are
 * asked for again. Scan reads consistently. */
enum outcome dynamodb_get(struct store_conn *conn, struct item_key key, bool consistent,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem);
enum outcome dynamodb_get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem);
enum outcome dynamodb_query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, item_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem);
enum outcome dynamodb_scan(struct store_conn *conn, const struct call_limits *limits,
	item_visitor *each, void *arg, struct problem *ret_problem);

/* Begins the body with {"TableName":"…". Members are added by dynamodb_member(). */
struct text *dynamodb_begin(struct dynamodb_conn *db);
/* Begins the body with { alone, for requests that name the table elsewhere. */
struct text *dynamodb_begin_bare(struct dynamodb_conn *db);
/* Adds ,"name": or, as the first member of its object, "name": */
void dynamodb_member(struct text *body, const char *name);
bool table_has_key(const struct table *table, const char *name);
/* Adds {"pk":{"S":"…"},"sk":{"S":"…"}}. */
void dynamodb_add_key(struct text *body, const struct table *table, struct item_key key);

/* Closes the body, sends it and parses the reply. *ret_reply is set if the outcome is OK, or if it
 * is REFUSED and the reply could be read; otherwise it is NULL. The caller frees it with
 * json_decref(). A table that is not there is OUTCOME_SETUP. ret_problem is not NULL. */
enum outcome dynamodb_perform(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, json_t **ret_reply, struct problem *ret_problem);
/* The outcome of a reply that is JSON, but not the JSON that was expected. `error` is -EBADMSG or
 * -ENOMEM. */
enum outcome dynamodb_not_understood(int error, struct problem *ret_problem);
/* As dynamodb_perform(), without parsing the reply, which the caller clears in any case. */
enum outcome dynamodb_send(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply,
	struct problem *ret_problem);

/* Who is given the items of a reply, and of which table they are. */
struct item_visit {
	const struct table *table;
	item_visitor *each;
	void *arg;
};
/* Hands one item to the visitor and clears it. `error` is of reading the item: 0, -EBADMSG or
 * -ENOMEM. OUTCOME_LOCAL with a sentence if the visitor ends the visit. */
enum outcome dynamodb_visit(
	const struct item_visit *visit, int error, struct item *item, struct problem *ret_problem);
/* As dynamodb_perform(), of a request for a page of items. They are handed to the visitor one by
 * one, and *ret_reply has the reply without them. */
enum outcome dynamodb_perform_page(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, const struct item_visit *visit, json_t **ret_reply,
	struct problem *ret_problem);
