/* How a request to DynamoDB is begun, sent and read, for the calls in dynamodb*.c, and the calls
 * about one item: the conditions and changes of a write become expressions here. What an answer
 * means is decided by classify() of aws/retry.h, as for all services. */
#include "store/dynamodb_request.h"
#include "base/json_text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const char *const dynamodb_kinds[] = {
	[DYNAMODB_PUT] = "PutItem",
	[DYNAMODB_UPDATE] = "UpdateItem",
	[DYNAMODB_DELETE] = "DeleteItem",
	[DYNAMODB_GET] = "GetItem",
	[DYNAMODB_GET_MANY] = "BatchGetItem",
	[DYNAMODB_QUERY] = "Query",
	[DYNAMODB_SCAN] = "Scan",
	[DYNAMODB_CREATE_TABLE] = "CreateTable",
	[DYNAMODB_DESCRIBE_TABLE] = "DescribeTable",
	[DYNAMODB_ENABLE_TTL] = "UpdateTimeToLive",
	[DYNAMODB_DESCRIBE_TTL] = "DescribeTimeToLive",
	[DYNAMODB_BATCH_EXECUTE] = "BatchExecuteStatement",
	NULL,
};

/* The most of any reply: an item of 400 KB, a page of 1 MB or a batch of 16 MB, likewise escaped.
 */
#define ITEM_REPLY_MAX_BYTES  (4 << 20)
#define PAGE_REPLY_MAX_BYTES  (12 << 20)
#define BATCH_REPLY_MAX_BYTES (96 << 20)

struct dynamodb_conn *dynamodb_conn_of(struct store_conn *conn)
{
	return (struct dynamodb_conn *)conn;
}

void dynamodb_member(struct text *body, const char *name)
{
	if (body->len && body->data[body->len - 1] != '{')
		text_add_char(body, ',');
	json_add_string(body, name, strlen(name));
	text_add_char(body, ':');
}

void dynamodb_string(struct text *body, const char *name, const char *value)
{
	dynamodb_member(body, name);
	json_add_string(body, value, strlen(value));
}

void dynamodb_value(
	struct text *body, const char *name, enum value_type type, const char *value, size_t n)
{
	dynamodb_member(body, name);
	item_add_value(body, type, value, n);
}

struct text *dynamodb_begin_bare(struct dynamodb_conn *db)
{
	text_reset(&db->body);
	text_add_char(&db->body, '{');
	return &db->body;
}

struct text *dynamodb_begin(struct dynamodb_conn *db)
{
	struct text *body = dynamodb_begin_bare(db);
	dynamodb_string(body, "TableName", db->table->name);
	return body;
}

bool table_has_key(const struct table *table, const char *name)
{
	return strcmp(name, table->pk_name) == 0 ||
	       (table->sk_name && strcmp(name, table->sk_name) == 0);
}

void dynamodb_add_key(
	struct text *body, const struct table *table, struct item_key key, const struct item *item)
{
	const enum value_type type = table->sk_is_number ? VALUE_NUMBER : VALUE_STRING;

	text_add_char(body, '{');
	dynamodb_value(body, table->pk_name, VALUE_STRING, key.pk, strlen(key.pk));
	if (table->sk_name)
		dynamodb_value(body, table->sk_name, type, key.sk, strlen(key.sk));
	for (size_t i = 0; item && i < item->count; i++) {
		if (table_has_key(table, item->attributes[i].name))
			continue;
		text_add_char(body, ',');
		item_add_attribute(body, &item->attributes[i]);
	}
	text_add_char(body, '}');
}

/* The code is in a header, as "__type" or as "code". There may be a namespace and a # before it,
 * and after it a colon and an address. Source: "AWS JSON 1.0 protocol" (Smithy). */
static int read_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	ret_code[0] = ret_message[0] = ret_region[0] = '\0';
	const char *crc = http_reply_header(reply, "x-amz-crc32");
	const char *body = text_string(&reply->body);
	if (crc && strtoul(crc, NULL, 10) !=
			   crc32(0, (const unsigned char *)body, (uInt)reply->body.len))
		return -EBADMSG;
	if (reply->status == 200)
		return *body == '{' ? 0 : -EBADMSG;
	json_t *json = json_read(&reply->body, NULL);
	const char *message = json_text(json, "message");
	const char *header = http_reply_header(reply, "x-amzn-errortype");
	const char *type = header ? header : json_text(json, "__type");
	type = *type ? type : json_text(json, "code");
	const size_t n = strcspn(type, ":");
	const char *hash = memrchr(type, '#', n);
	const char *code = hash ? hash + 1 : type;
	snprintf(ret_code, 64, "%.*s", (int)(n - (size_t)(code - type)), code);
	snprintf(ret_message, 256, "%s", *message ? message : json_text(json, "Message"));
	json_decref(json);
	return ret_code[0] != '\0';
}

enum outcome dynamodb_not_understood(int error, struct problem *ret_problem)
{
	if (error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	problem_set(ret_problem, "the server's reply is not what DynamoDB answers to this request");
	return OUTCOME_LOST;
}

enum outcome dynamodb_send(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply, struct problem *ret_problem)
{
	const bool is_page = kind == DYNAMODB_QUERY || kind == DYNAMODB_SCAN;
	const bool only_reads = is_page || kind == DYNAMODB_GET || kind == DYNAMODB_GET_MANY ||
				kind == DYNAMODB_DESCRIBE_TABLE || kind == DYNAMODB_DESCRIBE_TTL;
	struct service_conn *service_conn;
	char target[64];
	snprintf(target, sizeof target, "DynamoDB_20120810.%s", dynamodb_kinds[kind]);
	const struct call_header headers[] = {
		{"content-type", "application/x-amz-json-1.0"}, {"x-amz-target", target}};
	text_add_char(&db->body, '}');
	if (db->body.error) {
		problem_set(ret_problem, "the request would be too long, or memory ran out");
		return OUTCOME_LOCAL;
	}
	const struct call call = {
		.kind = kind,
		.subject = db->table->name,
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = headers,
		.n_headers = 2,
		.body = {.memory = db->body.data, .bytes = db->body.len},
		.is_write = !only_reads,
		.reply_max_bytes = is_page                     ? PAGE_REPLY_MAX_BYTES
				   : kind == DYNAMODB_GET_MANY ? BATCH_REPLY_MAX_BYTES
							       : ITEM_REPLY_MAX_BYTES,
		.read_error = read_error,
		.limits = limits ? *limits : (struct call_limits){0},
	};
	if (service_conn_borrow(db->db->service, &service_conn))
		return outcome_no_memory(ret_problem);
	enum outcome outcome = call_perform(service_conn, &call, ret_reply, ret_problem);
	service_conn_give_back(service_conn);
	return outcome == OUTCOME_ABSENT ? OUTCOME_SETUP : outcome;
}

enum outcome dynamodb_perform(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, json_t **ret_reply, struct problem *ret_problem)
{
	struct http_reply reply = {0};
	enum outcome outcome = dynamodb_send(db, kind, limits, &reply, ret_problem);
	*ret_reply = NULL;
	if (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED)
		*ret_reply = json_read(&reply.body, limits);
	http_reply_clear(&reply);
	if (outcome == OUTCOME_OK && !json_is_object(*ret_reply)) {
		json_decref(*ret_reply);
		*ret_reply = NULL;
		return dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	return outcome;
}

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

static void add_changes(struct text *body, const struct item_write *write)
{
	if (write->n_changes == 0 && !write->count)
		return;
	dynamodb_member(body, "UpdateExpression");
	text_add_char(body, '"');
	const char *before = "SET ";
	for (size_t i = 0; i < write->n_changes; i++) {
		if (!write->changes[i].value)
			continue;
		text_add(body, before);
		before = ", ";
		add_comparison(body, 'u', i, " = ");
	}
	before = " REMOVE ";
	for (size_t i = 0; i < write->n_changes; i++) {
		if (write->changes[i].value)
			continue;
		text_add(body, before);
		before = ", ";
		text_add(body, placeholder('#', 'u', i).text);
	}
	text_add(body, write->count ? " ADD #n :n\"" : "\"");
}

static void add_names(struct text *body, const struct expression *e)
{
	const struct item_write *write = e->write;
	const bool names_key = e->must_exist || e->may_be_absent;
	if (!names_key && !write->count && write->n_conditions + write->n_changes == 0)
		return;
	dynamodb_member(body, "ExpressionAttributeNames");
	text_add_char(body, '{');
	if (names_key)
		dynamodb_string(body, "#k", e->pk_name);
	if (write->count)
		dynamodb_string(body, "#n", write->count);
	for (size_t i = 0; i < write->n_conditions; i++)
		dynamodb_string(body, placeholder('#', 'c', i).text, write->conditions[i].name);
	for (size_t i = 0; i < write->n_changes; i++)
		dynamodb_string(body, placeholder('#', 'u', i).text, write->changes[i].name);
	text_add_char(body, '}');
}

/* DynamoDB refuses an empty object here. */
static void begin_value(struct text *body, bool *begun)
{
	if (*begun)
		return;
	dynamodb_member(body, "ExpressionAttributeValues");
	text_add_char(body, '{');
	*begun = true;
}

static void add_values(struct text *body, const struct item_write *write)
{
	bool begun = false;
	for (size_t i = 0; i < write->n_conditions; i++) {
		const struct condition *c = &write->conditions[i];
		if (!has_value(c->test))
			continue;
		begin_value(body, &begun);
		dynamodb_value(
			body, placeholder(':', 'c', i).text, c->type, c->value, strlen(c->value));
	}
	for (size_t i = 0; i < write->n_changes; i++) {
		const struct change *c = &write->changes[i];
		if (!c->value)
			continue;
		begin_value(body, &begun);
		dynamodb_value(
			body, placeholder(':', 'u', i).text, c->type, c->value, change_bytes(c));
	}
	if (write->count) {
		begin_value(body, &begun);
		dynamodb_value(body, ":n", VALUE_NUMBER, "1", 1);
	}
	text_add(body, begun ? "}" : "");
}

static enum outcome take_item(const json_t *json, struct item *ret, struct problem *ret_problem)
{
	const int error = item_from_json(json, ret);
	return error < 0 ? dynamodb_not_understood(error, ret_problem) : OUTCOME_OK;
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
	const enum dynamodb_kind kind = write->item      ? DYNAMODB_PUT
					: write->removes ? DYNAMODB_DELETE
							 : DYNAMODB_UPDATE;
	json_t *reply;
	struct text *body = dynamodb_begin(db);
	dynamodb_member(body, write->item ? "Item" : "Key");
	dynamodb_add_key(body, db->table, key, write->item);
	if (write->shows)
		dynamodb_string(body, "ReturnValues", "ALL_NEW");
	add_changes(body, write);
	add_conditions(body, &expression);
	add_names(body, &expression);
	add_values(body, write);
	enum outcome outcome = dynamodb_perform(db, kind, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK && write->shows)
		outcome = take_item(json_object_get(reply, "Attributes"), ret, ret_problem);
	if (outcome == OUTCOME_REFUSED && ret) {
		/* The item came with the refusal. One that has none may be from a server without
		 * ALL_OLD, so that the item is read. */
		const json_t *item = json_object_get(reply, "Item");
		const enum outcome taken = item ? take_item(item, ret, ret_problem) : OUTCOME_OK;
		if (!item)
			outcome = dynamodb_present(db, key, limits, ret, ret_problem);
		else if (taken != OUTCOME_OK)
			outcome = taken;
	}
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
	dynamodb_add_key(body, db->table, key, NULL);
	dynamodb_member(body, "ConsistentRead");
	text_add(body, consistent ? "true" : "false");
	enum outcome outcome = dynamodb_perform(db, DYNAMODB_GET, limits, &reply, ret_problem);
	const json_t *item = json_object_get(reply, "Item");
	if (outcome == OUTCOME_OK)
		outcome = item ? take_item(item, ret, ret_problem) : OUTCOME_ABSENT;
	json_decref(reply);
	return outcome;
}
