/* How a request to DynamoDB is begun, sent and read, for the calls in dynamodb*.c. Pages of items
 * are cut out of the reply while they are handed out, so that no tree of them is built. */
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

struct text *dynamodb_begin_bare(struct dynamodb_conn *db)
{
	text_reset(&db->body);
	text_add_char(&db->body, '{');
	return &db->body;
}

struct text *dynamodb_begin(struct dynamodb_conn *db)
{
	struct text *body = dynamodb_begin_bare(db);
	dynamodb_member(body, "TableName");
	json_add_string(body, db->table->name, strlen(db->table->name));
	return body;
}

bool table_has_key(const struct table *table, const char *name)
{
	return strcmp(name, table->pk_name) == 0 ||
	       (table->sk_name && strcmp(name, table->sk_name) == 0);
}

void dynamodb_add_key(struct text *body, const struct table *table, struct item_key key)
{
	text_add_char(body, '{');
	dynamodb_member(body, table->pk_name);
	item_add_value(body, VALUE_STRING, key.pk, strlen(key.pk));
	if (table->sk_name) {
		dynamodb_member(body, table->sk_name);
		item_add_value(body, table->sk_is_number ? VALUE_NUMBER : VALUE_STRING, key.sk,
			strlen(key.sk));
	}
	text_add_char(body, '}');
}

static bool is_whole(const struct http_reply *reply)
{
	const char *header = http_reply_header(reply, "x-amz-crc32");
	if (!header)
		return true;
	uLong sum =
		crc32(0, (const unsigned char *)text_string(&reply->body), (uInt)reply->body.len);
	return strtoul(header, NULL, 10) == sum;
}

/* The code is in a header, as "__type" or as "code". There may be a namespace and a # before it,
 * and after it a colon and an address. Source: "AWS JSON 1.0 protocol" (Smithy). */
static void read_code(const struct http_reply *reply, const json_t *json, char ret[static 64])
{
	const char *header = http_reply_header(reply, "x-amzn-errortype");
	const char *type = header ? header : json_text(json, "__type");
	type = *type ? type : json_text(json, "code");
	const size_t n = strcspn(type, ":");
	const char *hash = memrchr(type, '#', n);
	const char *code = hash ? hash + 1 : type;
	snprintf(ret, 64, "%.*s", (int)(n - (size_t)(code - type)), code);
}

static int read_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	ret_code[0] = ret_message[0] = ret_region[0] = '\0';
	if (!is_whole(reply))
		return -EBADMSG;
	if (reply->status == 200)
		return text_string(&reply->body)[0] == '{' ? 0 : -EBADMSG;
	json_t *json = json_read(&reply->body, NULL);
	const char *message = json_text(json, "message");
	read_code(reply, json, ret_code);
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

static bool is_write(enum dynamodb_kind kind)
{
	return kind == DYNAMODB_PUT || kind == DYNAMODB_UPDATE || kind == DYNAMODB_DELETE ||
	       kind == DYNAMODB_CREATE_TABLE || kind == DYNAMODB_ENABLE_TTL ||
	       kind == DYNAMODB_BATCH_EXECUTE;
}

static size_t reply_max_bytes(enum dynamodb_kind kind)
{
	return kind == DYNAMODB_GET_MANY                         ? BATCH_REPLY_MAX_BYTES
	       : kind == DYNAMODB_QUERY || kind == DYNAMODB_SCAN ? PAGE_REPLY_MAX_BYTES
								 : ITEM_REPLY_MAX_BYTES;
}

static enum outcome send_request(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply, struct problem *ret_problem)
{
	char target[64];
	snprintf(target, sizeof target, "DynamoDB_20120810.%s", dynamodb_kinds[kind]);
	const struct call_header headers[] = {
		{"content-type", "application/x-amz-json-1.0"}, {"x-amz-target", target}};
	struct call call = {
		.kind = kind,
		.subject = db->table->name,
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = headers,
		.n_headers = 2,
		.body = {.memory = db->body.data, .bytes = db->body.len},
		.is_write = is_write(kind),
		.reply_max_bytes = reply_max_bytes(kind),
		.read_error = read_error,
	};
	struct service_conn *service_conn;
	if (limits)
		call.limits = *limits;
	if (service_conn_borrow(db->db->service, &service_conn))
		return outcome_no_memory(ret_problem);
	enum outcome outcome = call_perform(service_conn, &call, ret_reply, ret_problem);
	service_conn_give_back(service_conn);
	return outcome;
}

enum outcome dynamodb_send(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply, struct problem *ret_problem)
{
	text_add_char(&db->body, '}');
	if (db->body.error) {
		problem_set(ret_problem, "the request would be too long, or memory ran out");
		return OUTCOME_LOCAL;
	}
	enum outcome outcome = send_request(db, kind, limits, ret_reply, ret_problem);
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

enum outcome dynamodb_visit(
	const struct item_visit *visit, int error, struct item *item, struct problem *ret_problem)
{
	const struct table *table = visit->table;
	const char *pk = item_string(item, table->pk_name);
	const struct attribute *range = table->sk_name ? item_find(item, table->sk_name) : NULL;
	const enum value_type type = table->sk_is_number ? VALUE_NUMBER : VALUE_STRING;
	const char *sk = range && range->type == type ? range->value : NULL;
	if (error == 0 && (!pk || (table->sk_name && !sk)))
		error = -EBADMSG;
	enum outcome outcome = OUTCOME_OK;
	if (error < 0) {
		outcome = dynamodb_not_understood(error, ret_problem);
	} else if (visit->each(visit->arg, pk, sk, item)) {
		problem_set(ret_problem, "reading the table was ended half-way");
		outcome = OUTCOME_LOCAL;
	}
	item_clear(item);
	return outcome;
}

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* The bracket that opens the Items of a reply, or NULL. Nothing else in a reply reads like this: in
 * a string the quotes would be escaped, and an attribute of that name has an object. */
static const char *find_items(const char *reply)
{
	static const char name[] = "\"Items\"";
	const char *at = reply;
	while ((at = strstr(at, name))) {
		at = skip_space(at + strlen(name));
		if (*at != ':')
			continue;
		at = skip_space(at + 1);
		if (*at == '[')
			return at;
	}
	return NULL;
}

/* Hands out the items between the bracket at *at and the one that closes it, and moves *at there.
 */
static enum outcome visit_items(const struct text *reply, const struct call_limits *limits,
	const struct item_visit *visit, const char **at, struct problem *ret_problem)
{
	const char *next = skip_space(*at + 1);
	bool has_more = *next != ']';
	while (has_more) {
		struct item item = {0};
		size_t bytes = 0;
		const size_t left = reply->len - (size_t)(next - reply->data);
		const int error = item_read(next, left, limits, &item, &bytes);
		const enum outcome outcome = dynamodb_visit(visit, error, &item, ret_problem);
		if (outcome != OUTCOME_OK)
			return outcome;
		next = skip_space(next + bytes);
		has_more = *next == ',';
		if (has_more)
			next = skip_space(next + 1);
		else if (*next != ']')
			return dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	*at = next;
	return OUTCOME_OK;
}

/* Cuts the items out of the reply while they are handed out. */
static enum outcome take_items(struct text *reply, const struct call_limits *limits,
	const struct item_visit *visit, struct problem *ret_problem)
{
	char *const data = reply->data;
	const char *begin = data ? find_items(data) : NULL, *end = begin;
	if (!begin)
		return OUTCOME_OK;
	const enum outcome outcome = visit_items(reply, limits, visit, &end, ret_problem);
	if (outcome == OUTCOME_OK) {
		const size_t kept = (size_t)(begin - data) + 1;
		const size_t left = reply->len - (size_t)(end - data);
		memmove(data + kept, end, left + 1);
		reply->len = kept + left;
	}
	return outcome;
}

enum outcome dynamodb_perform_page(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, const struct item_visit *visit, json_t **ret_reply,
	struct problem *ret_problem)
{
	struct http_reply reply = {0};
	enum outcome outcome = dynamodb_send(db, kind, limits, &reply, ret_problem);
	*ret_reply = NULL;
	if (outcome == OUTCOME_OK)
		outcome = take_items(&reply.body, limits, visit, ret_problem);
	if (outcome == OUTCOME_OK) {
		*ret_reply = json_read(&reply.body, limits);
		if (!json_is_object(*ret_reply))
			outcome = dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	http_reply_clear(&reply);
	return outcome;
}
