#include "dynamodb/dynamodb.h"
#include "dynamodb/dynamodb_expression.h"
#include "dynamodb/dynamodb_request.h"
#include <string.h>

enum outcome dynamodb_present(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct problem problem = {0};
	enum outcome outcome = dynamodb_get(conn, table, key, true, limits, ret, &problem);
	if (outcome == OUTCOME_OK || outcome == OUTCOME_ABSENT)
		return OUTCOME_REFUSED;
	if (ret_problem)
		*ret_problem = problem;
	return outcome == OUTCOME_THROTTLED ? OUTCOME_TRANSIENT : outcome;
}

/* The item that came with a refusal. A refusal without one may be from a server without ALL_OLD, so
 * that the item is read. */
static enum outcome find_present(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const json_t *reply, const struct call_limits *limits,
	struct item *ret, struct problem *ret_problem)
{
	const json_t *item = json_object_get(reply, "Item");
	if (!item)
		return dynamodb_present(conn, table, key, limits, ret, ret_problem);
	int error = item_from_json(item, ret);
	return error < 0 ? dynamodb_not_understood(error, ret_problem) : OUTCOME_REFUSED;
}

struct sent_write {
	enum dynamodb_kind kind;
	const struct table *table;
	struct item_key key;
	const struct call_limits *limits;
};

/* Sends the conditional write whose body was begun. If ret_new is not NULL, it gets the Attributes
 * of a reply that is OK. */
static enum outcome perform_write(struct dynamodb_conn *conn, const struct sent_write *sent,
	const struct dynamodb_expression *expression, struct item *ret_present,
	struct item *ret_new, struct problem *ret_problem)
{
	struct problem problem = {0};
	json_t *reply;
	dynamodb_add_expression(&conn->body, expression);
	enum outcome outcome = dynamodb_perform(conn, sent->kind, sent->limits, &reply, &problem);
	if (outcome == OUTCOME_OK && ret_new) {
		int error = item_from_json(json_object_get(reply, "Attributes"), ret_new);
		if (error < 0)
			outcome = dynamodb_not_understood(error, &problem);
	}
	if (outcome == OUTCOME_REFUSED && ret_present)
		outcome = find_present(
			conn, sent->table, sent->key, reply, sent->limits, ret_present, &problem);
	json_decref(reply);
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}

enum outcome dynamodb_put(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem)
{
	const struct item *item = write->item;
	struct text *body = dynamodb_begin(conn, table->name);
	dynamodb_member(body, "Item");
	dynamodb_add_key(body, table, key);
	if (!body->error)
		body->data[--body->len] = '\0'; /* the brace: more members follow */
	for (size_t i = 0; i < item->count; i++) {
		const char *name = item->attributes[i].name;
		if (strcmp(name, table->pk_name) == 0 ||
			(table->sk_name && strcmp(name, table->sk_name) == 0))
			continue;
		text_add_char(body, ',');
		item_add_attribute(body, &item->attributes[i]);
	}
	text_add_char(body, '}');
	const struct dynamodb_expression expression = {
		.conditions = write->conditions, .n_conditions = write->n_conditions};
	const struct sent_write sent = {DYNAMODB_PUT, table, key, limits};
	return perform_write(conn, &sent, &expression, ret_present, NULL, ret_problem);
}

enum outcome dynamodb_update(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem)
{
	struct text *body = dynamodb_begin(conn, table->name);
	dynamodb_member(body, "Key");
	dynamodb_add_key(body, table, key);
	const struct dynamodb_expression expression = {.pk_name = table->pk_name,
		.must_exist = true,
		.changes = write->changes,
		.n_changes = write->n_changes,
		.conditions = write->conditions,
		.n_conditions = write->n_conditions};
	const struct sent_write sent = {DYNAMODB_UPDATE, table, key, limits};
	return perform_write(conn, &sent, &expression, ret_present, NULL, ret_problem);
}

bool taking_only_creates(const struct taking *taking)
{
	return taking->or_absent && !taking->n_conditions && (taking->n_changes || !taking->count);
}

enum outcome dynamodb_take(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct taking *taking, const struct call_limits *limits,
	struct item *ret, struct problem *ret_problem)
{
	struct text *body = dynamodb_begin(conn, table->name);
	dynamodb_member(body, "Key");
	dynamodb_add_key(body, table, key);
	dynamodb_member(body, "ReturnValues");
	text_add(body, "\"ALL_NEW\"");
	const struct dynamodb_expression expression = {.pk_name = table->pk_name,
		.must_exist = !taking->or_absent,
		/* else anything may be there: no need to ask */
		.may_be_absent =
			taking_only_creates(taking) || (taking->or_absent && taking->n_conditions),
		.count = taking->count,
		.changes = taking->changes,
		.n_changes = taking->n_changes,
		.conditions = taking->conditions,
		.n_conditions = taking->n_conditions};
	const struct sent_write sent = {DYNAMODB_UPDATE, table, key, limits};
	return perform_write(conn, &sent, &expression, ret, ret, ret_problem);
}

enum outcome dynamodb_delete(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, const struct item_write *write, const struct call_limits *limits,
	struct item *ret_present, struct problem *ret_problem)
{
	struct text *body = dynamodb_begin(conn, table->name);
	dynamodb_member(body, "Key");
	dynamodb_add_key(body, table, key);
	const struct dynamodb_expression expression = {
		.conditions = write->conditions, .n_conditions = write->n_conditions};
	const struct sent_write sent = {DYNAMODB_DELETE, table, key, limits};
	return perform_write(conn, &sent, &expression, ret_present, NULL, ret_problem);
}

enum outcome dynamodb_get(struct dynamodb_conn *conn, const struct table *table,
	struct item_key key, bool consistent, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct problem problem = {0};
	json_t *reply;
	struct text *body = dynamodb_begin(conn, table->name);
	dynamodb_member(body, "Key");
	dynamodb_add_key(body, table, key);
	dynamodb_member(body, "ConsistentRead");
	text_add(body, consistent ? "true" : "false");
	enum outcome outcome = dynamodb_perform(conn, DYNAMODB_GET, limits, &reply, &problem);
	if (outcome == OUTCOME_OK) {
		const json_t *item = json_object_get(reply, "Item");
		int error = item ? item_from_json(item, ret) : 0;
		if (!item)
			outcome = OUTCOME_ABSENT;
		else if (error < 0)
			outcome = dynamodb_not_understood(error, &problem);
	}
	json_decref(reply);
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}
