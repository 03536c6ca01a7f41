/* How a request to DynamoDB is begun, sent and read, for the calls in dynamodb*.c. What an answer
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
