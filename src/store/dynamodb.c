/* The calls about one item. The conditions and changes of a write become expressions here. The
 * store of DynamoDB calls it, doctor's probes and the tests of the AWS layer, and nobody else: what
 * may be assumed of an answer is said in dynamodb.h. */
#include "store/dynamodb_request.h"
#include <string.h>

/* What a conditional write asks for. The names and values of its conditions are sent as #c0 and
 * :c0, those of its changes as #u0 and :u0. */
struct expression {
	const struct item_write *write;
	const char *pk_name; /* of the attribute by which the two below are tested */
	bool must_exist, may_be_absent;
};

/* "#c7", ":u12": what stands for a name or a value. Not printed: it is most of what is written. */
struct placeholder {
	char text[24];
};

static struct placeholder placeholder(char sigil, char kind, size_t i)
{
	struct placeholder ret;
	char *at = ret.text + sizeof ret.text - 1;
	*at = 0;
	do
		*--at = (char)('0' + i % 10);
	while (i /= 10);
	*--at = kind;
	*--at = sigil;
	memmove(ret.text, at, strlen(at) + 1);
	return ret;
}

static void add_comparison(struct text *body, char kind, size_t i, const char *operator)
{
	text_add(body, placeholder('#', kind, i).text);
	text_add(body, operator);
	text_add(body, placeholder(':', kind, i).text);
}

static bool has_value(enum condition_test test)
{
	return test == CONDITION_EQUALS || test == CONDITION_AT_MOST;
}

static void add_conditions(struct text *body, const struct expression *e)
{
	const bool first = !e->must_exist;
	if (first && e->write->n_conditions == 0 && !e->may_be_absent)
		return;
	dynamodb_member(body, "ConditionExpression");
	text_add_char(body, '"');
	if (e->may_be_absent)
		text_addf(
			body, "attribute_not_exists(#k)%s", e->write->n_conditions ? " OR (" : "");
	text_add(body, e->must_exist ? "attribute_exists(#k)" : "");
	for (size_t i = 0; i < e->write->n_conditions; i++) {
		text_add(body, i || !first ? " AND " : "");
		const enum condition_test test = e->write->conditions[i].test;
		if (has_value(test)) {
			add_comparison(body, 'c', i, test == CONDITION_EQUALS ? " = " : " <= ");
			continue;
		}
		const bool absent = test == CONDITION_ABSENT;
		text_add(body, absent ? "attribute_not_exists(" : "attribute_exists(");
		text_add(body, placeholder('#', 'c', i).text);
		text_add_char(body, ')');
	}
	text_add(body, e->may_be_absent && e->write->n_conditions ? ")\"" : "\"");
	dynamodb_member(body, "ReturnValuesOnConditionCheckFailure");
	text_add(body, "\"ALL_OLD\"");
}

static void add_clause(struct text *body, const struct expression *e, bool sets)
{
	const char *before = sets ? "SET " : " REMOVE ";
	for (size_t i = 0; i < e->write->n_changes; i++) {
		if ((e->write->changes[i].value != NULL) != sets)
			continue;
		text_add(body, before);
		before = ", ";
		if (sets)
			add_comparison(body, 'u', i, " = ");
		else
			text_add(body, placeholder('#', 'u', i).text);
	}
}

static void add_changes(struct text *body, const struct expression *e)
{
	if (e->write->n_changes == 0 && !e->write->count)
		return;
	dynamodb_member(body, "UpdateExpression");
	text_add_char(body, '"');
	add_clause(body, e, true);
	add_clause(body, e, false);
	text_add(body, e->write->count ? " ADD #n :n\"" : "\"");
}

static void add_name(struct text *body, char kind, size_t i, const char *name)
{
	dynamodb_member(body, placeholder('#', kind, i).text);
	json_add_string(body, name, strlen(name));
}

static void add_names(struct text *body, const struct expression *e)
{
	const bool names_key = e->must_exist || e->may_be_absent;
	if (!names_key && !e->write->count && e->write->n_conditions + e->write->n_changes == 0)
		return;
	dynamodb_member(body, "ExpressionAttributeNames");
	text_add_char(body, '{');
	if (names_key) {
		dynamodb_member(body, "#k");
		json_add_string(body, e->pk_name, strlen(e->pk_name));
	}
	if (e->write->count) {
		dynamodb_member(body, "#n");
		json_add_string(body, e->write->count, strlen(e->write->count));
	}
	for (size_t i = 0; i < e->write->n_conditions; i++)
		add_name(body, 'c', i, e->write->conditions[i].name);
	for (size_t i = 0; i < e->write->n_changes; i++)
		add_name(body, 'u', i, e->write->changes[i].name);
	text_add_char(body, '}');
}

/* DynamoDB refuses an empty object here. */
static void add_attribute_value(struct text *body, bool *begun, const char *name,
	enum value_type type, const char *value, size_t n)
{
	if (!*begun) {
		dynamodb_member(body, "ExpressionAttributeValues");
		text_add_char(body, '{');
	}
	*begun = true;
	dynamodb_member(body, name);
	item_add_value(body, type, value, n);
}

static void add_values(struct text *body, const struct expression *e)
{
	bool begun = false;
	for (size_t i = 0; i < e->write->n_conditions; i++) {
		const struct condition *c = &e->write->conditions[i];
		if (has_value(c->test))
			add_attribute_value(body, &begun, placeholder(':', 'c', i).text, c->type,
				c->value, strlen(c->value));
	}
	for (size_t i = 0; i < e->write->n_changes; i++) {
		const struct change *change = &e->write->changes[i];
		if (change->value)
			add_attribute_value(body, &begun, placeholder(':', 'u', i).text,
				change->type, change->value, change_bytes(change));
	}
	if (e->write->count)
		add_attribute_value(body, &begun, ":n", VALUE_NUMBER, "1", 1);
	text_add(body, begun ? "}" : "");
}

/* Adds the members UpdateExpression, ConditionExpression, ExpressionAttributeNames and
 * ExpressionAttributeValues, each only if there is something in it. */
static void add_expression(struct text *body, const struct expression *e)
{
	add_changes(body, e);
	add_conditions(body, e);
	add_names(body, e);
	add_values(body, e);
}

enum outcome dynamodb_present(struct dynamodb_conn *db, struct item_key key,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	struct problem problem = {0};
	enum outcome outcome = dynamodb_get(&db->conn, key, true, limits, ret, &problem);
	if (outcome == OUTCOME_OK || outcome == OUTCOME_ABSENT)
		return OUTCOME_REFUSED;
	*ret_problem = problem;
	return outcome == OUTCOME_THROTTLED ? OUTCOME_TRANSIENT : outcome;
}

/* The item that came with a refusal. A refusal without one may be from a server without ALL_OLD, so
 * that the item is read. */
static enum outcome find_present(struct dynamodb_conn *db, struct item_key key, const json_t *reply,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	const json_t *item = json_object_get(reply, "Item");
	if (!item)
		return dynamodb_present(db, key, limits, ret, ret_problem);
	int error = item_from_json(item, ret);
	return error < 0 ? dynamodb_not_understood(error, ret_problem) : OUTCOME_REFUSED;
}

/* Adds them to the key, which was just closed. */
static void add_attributes(struct text *body, const struct table *table, const struct item *item)
{
	if (!body->error)
		body->data[--body->len] = '\0';
	for (size_t i = 0; i < item->count; i++) {
		if (table_has_key(table, item->attributes[i].name))
			continue;
		text_add_char(body, ',');
		item_add_attribute(body, &item->attributes[i]);
	}
	text_add_char(body, '}');
}

enum outcome dynamodb_write_alone(struct dynamodb_conn *db, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	const bool is_update = !write->item && !write->removes;
	const struct expression expression = {.write = write,
		.pk_name = db->table->pk_name,
		.must_exist = is_update && !write->or_absent,
		/* else anything may be there: no need to ask */
		.may_be_absent = is_update && write->or_absent &&
				 (write->n_conditions || write_only_creates(write))};
	json_t *reply;
	struct text *body = dynamodb_begin(db);
	dynamodb_member(body, write->item ? "Item" : "Key");
	dynamodb_add_key(body, db->table, key);
	if (write->item)
		add_attributes(body, db->table, write->item);
	if (write->shows) {
		dynamodb_member(body, "ReturnValues");
		text_add(body, "\"ALL_NEW\"");
	}
	add_expression(body, &expression);
	const enum dynamodb_kind kind = write->item      ? DYNAMODB_PUT
					: write->removes ? DYNAMODB_DELETE
							 : DYNAMODB_UPDATE;
	enum outcome outcome = dynamodb_perform(db, kind, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK && write->shows) {
		int error = item_from_json(json_object_get(reply, "Attributes"), ret);
		if (error < 0)
			outcome = dynamodb_not_understood(error, ret_problem);
	}
	if (outcome == OUTCOME_REFUSED && ret)
		outcome = find_present(db, key, reply, limits, ret, ret_problem);
	json_decref(reply);
	return outcome;
}

enum outcome dynamodb_get(struct store_conn *conn, struct item_key key, bool consistent,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	json_t *reply;
	struct text *body = dynamodb_begin(db);
	dynamodb_member(body, "Key");
	dynamodb_add_key(body, db->table, key);
	dynamodb_member(body, "ConsistentRead");
	text_add(body, consistent ? "true" : "false");
	enum outcome outcome = dynamodb_perform(db, DYNAMODB_GET, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		const json_t *item = json_object_get(reply, "Item");
		int error = item ? item_from_json(item, ret) : 0;
		if (!item)
			outcome = OUTCOME_ABSENT;
		else if (error < 0)
			outcome = dynamodb_not_understood(error, ret_problem);
	}
	json_decref(reply);
	return outcome;
}
