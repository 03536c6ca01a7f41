/* How a DynamoDB request is written, and how its reply is read. For dynamodb*.c only. */
#pragma once
#include "http/http.h"
#include "store/dynamodb.h"
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

struct dynamodb {
	struct service *service;
};
struct dynamodb_conn {
	struct service *service;
	struct text body;  /* of the request that is under way */
	const char *table; /* the table that it is about */
};

/* Begins the body with {"TableName":"…". The name is borrowed until the request is performed.
 * Members are added by dynamodb_member(). */
struct text *dynamodb_begin(struct dynamodb_conn *conn, const char *table);
/* Begins the body with { alone, for requests that name the table elsewhere. */
struct text *dynamodb_begin_bare(struct dynamodb_conn *conn, const char *table);
/* Adds ,"name": or, as the first member of its object, "name": */
void dynamodb_member(struct text *body, const char *name);
bool table_has_key(const struct table *table, const char *name);
/* Adds {"pk":{"S":"…"},"sk":{"S":"…"}}. */
void dynamodb_add_key(struct text *body, const struct table *table, struct item_key key);

/* Closes the body, sends it and parses the reply. *ret_reply is set if the outcome is OK, or if it
 * is REFUSED and the reply could be read; otherwise it is NULL. The caller frees it with
 * json_decref(). A table that is not there is OUTCOME_SETUP. ret_problem is not NULL. */
enum outcome dynamodb_perform(struct dynamodb_conn *conn, enum dynamodb_kind kind,
	const struct call_limits *limits, json_t **ret_reply, struct problem *ret_problem);
/* The outcome of a reply that is JSON, but not the JSON that was expected. `error` is -EBADMSG or
 * -ENOMEM. */
enum outcome dynamodb_not_understood(int error, struct problem *ret_problem);
/* The same without parsing the reply, which the caller clears in any case. */
enum outcome dynamodb_send(struct dynamodb_conn *conn, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply,
	struct problem *ret_problem);

/* Who is given the items of a reply, and of which table they are. */
struct item_visit {
	const struct table *table;
	item_visitor *each;
	void *arg;
};
/* Hands one item to the visitor and clears it. `error` is of reading the item: 0, -EBADMSG or
 * -ENOMEM. OUTCOME_LOCAL if the visitor ends the visit. */
enum outcome dynamodb_visit(
	const struct item_visit *visit, int error, struct item *item, struct problem *ret_problem);
/* As dynamodb_perform(), of a request for a page of items. They are handed to the visitor one by
 * one, and *ret_reply has the reply without them. */
enum outcome dynamodb_perform_page(struct dynamodb_conn *conn, enum dynamodb_kind kind,
	const struct call_limits *limits, const struct item_visit *visit, json_t **ret_reply,
	struct problem *ret_problem);
