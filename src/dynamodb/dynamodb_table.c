#include "base/json_text.h"
#include "dynamodb/dynamodb_request.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_attribute_of_key(
	struct text *body, const char *name, const char *member, const char *value)
{
	text_add(body, body->data[body->len - 1] == '[' ? "{" : ",{");
	dynamodb_member(body, "AttributeName");
	json_add_string(body, name, strlen(name));
	dynamodb_member(body, member);
	text_addf(body, "\"%s\"}", value);
}

static void add_terms(struct text *body, const struct table_terms *terms)
{
	const bool provisioned = terms->read_units || terms->write_units;
	text_addf(body, ",\"BillingMode\":\"%s\"", provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
	if (provisioned)
		text_addf(body,
			",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%" PRIu64
			",\"WriteCapacityUnits\":%" PRIu64 "}",
			terms->read_units ? terms->read_units : 1,
			terms->write_units ? terms->write_units : 1);
	if (!terms->tags || !*terms->tags)
		return;
	text_add(body, ",\"Tags\":[");
	for (const char *const *tag = terms->tags; tag[0] && tag[1]; tag += 2) {
		text_add(body, tag == terms->tags ? "{\"Key\":" : ",{\"Key\":");
		json_add_string(body, tag[0], strlen(tag[0]));
		text_add(body, ",\"Value\":");
		json_add_string(body, tag[1], strlen(tag[1]));
		text_add_char(body, '}');
	}
	text_add_char(body, ']');
}

static void add_table(struct text *body, const struct table *table, const struct table_terms *terms)
{
	add_terms(body, terms);
	text_add(body, ",\"AttributeDefinitions\":[");
	if (body->error)
		return;
	add_attribute_of_key(body, table->pk_name, "AttributeType", "S");
	if (table->sk_name)
		add_attribute_of_key(
			body, table->sk_name, "AttributeType", table->sk_is_number ? "N" : "S");
	text_add(body, "],\"KeySchema\":[");
	add_attribute_of_key(body, table->pk_name, "KeyType", "HASH");
	if (table->sk_name)
		add_attribute_of_key(body, table->sk_name, "KeyType", "RANGE");
	text_add_char(body, ']');
}

enum outcome dynamodb_create_table(struct dynamodb_conn *conn, const struct table *table,
	const struct table_terms *terms, const struct call_limits *limits,
	struct problem *ret_problem)
{
	static const struct table_terms on_demand;
	struct problem problem = {0};
	json_t *reply;
	add_table(dynamodb_begin(conn, table->name), table, terms ? terms : &on_demand);
	enum outcome outcome =
		dynamodb_perform(conn, DYNAMODB_CREATE_TABLE, limits, &reply, &problem);
	json_decref(reply);
	if (outcome != OUTCOME_OK && strcmp(problem.code, "ResourceInUseException") == 0)
		outcome = OUTCOME_REFUSED;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}

static char type_of(const json_t *definitions, const char *name)
{
	for (size_t i = 0; i < json_array_size(definitions); i++) {
		const json_t *definition = json_array_get(definitions, i);
		if (strcmp(json_text(definition, "AttributeName"), name) == 0)
			return json_text(definition, "AttributeType")[0];
	}
	return '\0';
}

static int read_shape(const json_t *reply, struct dynamodb_shape *ret)
{
	const json_t *table = json_object_get(reply, "Table");
	const json_t *keys = json_object_get(table, "KeySchema");
	const json_t *definitions = json_object_get(table, "AttributeDefinitions");
	struct dynamodb_shape shape = {0};
	snprintf(shape.status, sizeof shape.status, "%s", json_text(table, "TableStatus"));
	for (size_t i = 0; i < json_array_size(keys); i++) {
		const json_t *key = json_array_get(keys, i);
		bool is_hash = strcmp(json_text(key, "KeyType"), "HASH") == 0;
		const char *name = json_text(key, "AttributeName");
		snprintf(is_hash ? shape.pk_name : shape.sk_name, sizeof shape.pk_name, "%s", name);
		*(is_hash ? &shape.pk_type : &shape.sk_type) = type_of(definitions, name);
	}
	if (!shape.status[0] || !shape.pk_name[0])
		return -EBADMSG;
	*ret = shape;
	return 0;
}

enum outcome dynamodb_describe_table(struct dynamodb_conn *conn, const char *table,
	const struct call_limits *limits, struct dynamodb_shape *ret, struct problem *ret_problem)
{
	struct problem problem = {0};
	json_t *reply;
	dynamodb_begin(conn, table);
	enum outcome outcome =
		dynamodb_perform(conn, DYNAMODB_DESCRIBE_TABLE, limits, &reply, &problem);
	if (outcome == OUTCOME_OK && read_shape(reply, ret) < 0)
		outcome = dynamodb_not_understood(-EBADMSG, &problem);
	json_decref(reply);
	if (outcome != OUTCOME_OK && strcmp(problem.code, "ResourceNotFoundException") == 0)
		outcome = OUTCOME_ABSENT;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}

enum outcome dynamodb_enable_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, struct problem *ret_problem)
{
	struct problem problem = {0};
	json_t *reply;
	struct text *body = dynamodb_begin(conn, table);
	dynamodb_member(body, "TimeToLiveSpecification");
	text_add(body, "{\"Enabled\":true,\"AttributeName\":");
	json_add_string(body, attribute, strlen(attribute));
	text_add_char(body, '}');
	enum outcome outcome =
		dynamodb_perform(conn, DYNAMODB_ENABLE_TTL, limits, &reply, &problem);
	json_decref(reply);
	/* DynamoDB says this only in words, not by a code. */
	if (outcome != OUTCOME_OK && strcmp(problem.code, "ValidationException") == 0 &&
		strstr(problem.text, "already enabled"))
		outcome = OUTCOME_OK;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}

enum outcome dynamodb_describe_ttl(struct dynamodb_conn *conn, const char *table,
	const char *attribute, const struct call_limits *limits, bool *ret_on,
	struct problem *ret_problem)
{
	struct problem problem = {0};
	json_t *reply;
	dynamodb_begin(conn, table);
	enum outcome outcome =
		dynamodb_perform(conn, DYNAMODB_DESCRIBE_TTL, limits, &reply, &problem);
	if (outcome == OUTCOME_OK) {
		const json_t *ttl = json_object_get(reply, "TimeToLiveDescription");
		const char *status = json_text(ttl, "TimeToLiveStatus");
		bool is_on = strcmp(status, "ENABLED") == 0 || strcmp(status, "ENABLING") == 0;
		*ret_on = is_on && strcmp(json_text(ttl, "AttributeName"), attribute) == 0;
	}
	json_decref(reply);
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}
