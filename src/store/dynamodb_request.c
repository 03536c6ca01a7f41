/* Begins, sends and reads requests to DynamoDB, for the calls in dynamodb*.c. Also reads and writes
 * single items, and makes expressions of the conditions and changes of a write. classify() of
 * aws/retry.h decides the outcome of an answer, as for all services. */
#include "store/dynamodb_request.h"
#include "base/json_text.h"
#include <assert.h>
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

/* The most bytes of a reply: an item of 400 KB, a page of 1 MB or a batch of 16 MB, with room for
 * escaped bytes. */
#define ITEM_REPLY_MAX_BYTES  (4 << 20)
#define PAGE_REPLY_MAX_BYTES  (12 << 20)
#define BATCH_REPLY_MAX_BYTES (96 << 20)

struct dynamodb_conn *dynamodb_conn_of(struct store_conn *conn)
{
	return (struct dynamodb_conn *)conn;
}

struct text *dynamodb_begin_bare(struct dynamodb_conn *db)
{
	text_reset(&db->body);
	text_reset(&db->names);
	text_reset(&db->values);
	db->n_placeholders = 0;
	text_add_char(&db->body, '{');
	return &db->body;
}

struct text *dynamodb_begin(struct dynamodb_conn *db)
{
	struct text *body = dynamodb_begin_bare(db);
	json_add_text(body, "TableName", db->table->name);
	return body;
}

bool table_has_key(const struct table *table, const char *name)
{
	return strcmp(name, table->pk_name) == 0 ||
	       (table->sk_name && strcmp(name, table->sk_name) == 0);
}

size_t table_key_attributes(
	const struct table *table, struct item_key key, struct change ret[static 2])
{
	ret[0] = (struct change){table->pk_name, VALUE_STRING, key.pk, strlen(key.pk)};
	if (table->sk_name)
		ret[1] = (struct change){table->sk_name,
			table->sk_is_number ? VALUE_NUMBER : VALUE_STRING, key.sk, strlen(key.sk)};
	return table->sk_name ? 2 : 1;
}

void dynamodb_add_key(
	struct text *body, const struct table *table, struct item_key key, const struct item *item)
{
	struct change of_key[2];
	const size_t n = table_key_attributes(table, key, of_key);

	text_add_char(body, '{');
	for (size_t i = 0; i < n; i++) {
		json_add_member(body, of_key[i].name);
		item_add_value(body, of_key[i].type, of_key[i].value, of_key[i].n);
	}
	for (size_t i = 0; item && i < item->count; i++)
		if (!table_has_key(table, item->attributes[i].name))
			item_add_attribute(body, &item->attributes[i]);
	text_add_char(body, '}');
}

/* Implements call.read_error(): returns 1 if the reply has an error code, 0 if it has none, and
 * -EBADMSG if it cannot be understood, or if its CRC-32 is not that of its body. No reply of
 * DynamoDB names a region, so ret_region is always "".
 *
 * The code of an error is in a header, or in the body as "__type" or "code". There may be a
 * namespace and a # before the code, and a colon and an address after it. Source: "AWS JSON 1.0
 * protocol" (Smithy). */
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
	return outcome_error(ret_problem, OUTCOME_LOST,
		"the server's reply is not what DynamoDB answers to this request");
}

/* Adds an object of the collected members. DynamoDB refuses an empty object, so that is omitted. */
static void add_collected(struct text *body, const char *name, const struct text *members)
{
	if (members->error)
		body->error = members->error;
	if (!members->len)
		return;
	json_add_member(body, name);
	text_add_char(body, '{');
	text_add_bytes(body, members->data, members->len);
	text_add_char(body, '}');
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
	add_collected(&db->body, "ExpressionAttributeNames", &db->names);
	add_collected(&db->body, "ExpressionAttributeValues", &db->values);
	text_add_char(&db->body, '}');
	if (db->body.error)
		return outcome_error(ret_problem, OUTCOME_LOCAL,
			"the request would be too long, or memory ran out");
	const struct call call = {.kind = kind,
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
		.limits = limits ? *limits : no_limits};
	if (service_conn_borrow(db->conn.store->service, &service_conn))
		return outcome_no_memory(ret_problem);
	enum outcome outcome = call_perform(service_conn, &call, ret_reply, ret_problem);
	service_conn_give_back(service_conn);
	/* Only an absent table causes ABSENT: a request about an absent item succeeds. */
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

/* Adds a placeholder for a name or a value to the body: "#a0" or ":a1". Names and values are
 * numbered together. snprintf() would be too slow, since requests consist mostly of
 * placeholders. */
static void add_placeholder(struct dynamodb_conn *db, char sigil, char ret[static 4])
{
	const unsigned n = db->n_placeholders++;

	assert(n < 26 * 10); /* a letter and a digit */
	memcpy(ret, (char[]){sigil, (char)('a' + n / 10), (char)('0' + n % 10), '\0'}, 4);
	text_add_bytes(&db->body, ret, 3);
}

void dynamodb_add_name(struct dynamodb_conn *db, const char *name)
{
	char placeholder[4];

	add_placeholder(db, '#', placeholder);
	json_add_member(&db->names, placeholder);
	json_add_string(&db->names, name, strlen(name));
}

void dynamodb_add_value(struct dynamodb_conn *db, enum value_type type, const char *value, size_t n)
{
	char placeholder[4];

	add_placeholder(db, ':', placeholder);
	json_add_member(&db->values, placeholder);
	item_add_value(&db->values, type, value, n);
}

static void add_condition(struct dynamodb_conn *db, const struct condition *c)
{
	static const struct {
		const char *before, *after; /* the attribute's name */
	} words[] = {
		[CONDITION_ABSENT] = {"attribute_not_exists(", ")"},
		[CONDITION_PRESENT] = {"attribute_exists(", ")"},
		[CONDITION_EQUALS] = {"", " = "},
		[CONDITION_AT_MOST] = {"", " <= "},
	};

	text_add(&db->body, words[c->test].before);
	dynamodb_add_name(db, c->name);
	text_add(&db->body, words[c->test].after);
	if (c->test == CONDITION_EQUALS || c->test == CONDITION_AT_MOST)
		dynamodb_add_value(db, c->type, c->value, strlen(c->value));
}

/* Adds the caller's conditions, C AND D, as a ConditionExpression. A put or a removal has these
 * alone. An update of an existing item is "attribute_exists(pk) AND C AND D", and one that may
 * create the item "attribute_not_exists(pk) OR (C AND D)". Without C and D, the latter can only
 * create it. */
static void add_conditions(struct dynamodb_conn *db, const struct item_write *write)
{
	const bool is_update = !write->item && !write->removes;
	const bool must_exist = is_update && !write->or_absent;
	const bool may_create = is_update && write->or_absent;
	/* As a put or a removal is, and an update that only counts. */
	const bool is_always_applied =
		!write->n_conditions && !must_exist && !write_only_creates(write);
	const struct condition of_key = {
		db->table->pk_name, must_exist ? CONDITION_PRESENT : CONDITION_ABSENT};
	const char *before = "";

	if (is_always_applied)
		return;
	json_add_member(&db->body, "ConditionExpression");
	text_add_char(&db->body, '"');
	if (is_update) {
		add_condition(db, &of_key);
		before = must_exist ? " AND " : " OR (";
	}
	for (size_t i = 0; i < write->n_conditions; i++) {
		text_add(&db->body, before);
		add_condition(db, &write->conditions[i]);
		before = " AND ";
	}
	if (may_create && write->n_conditions) /* ends the " OR (" */
		text_add_char(&db->body, ')');
	text_add_char(&db->body, '"');
	/* So a refusal shows the present item. */
	json_add_text(&db->body, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
}

/* Adds the changes of an update as an UpdateExpression: SET a = b, … REMOVE c, … ADD d 1. */
static void add_changes(struct dynamodb_conn *db, const struct item_write *write)
{
	const char *before = "SET ";

	if (write->n_changes == 0 && !write->increments)
		return;
	json_add_member(&db->body, "UpdateExpression");
	text_add_char(&db->body, '"');
	for (size_t i = 0; i < write->n_changes; i++) {
		const struct change *change = &write->changes[i];
		if (!change->value)
			continue;
		text_add(&db->body, before);
		dynamodb_add_name(db, change->name);
		text_add(&db->body, " = ");
		dynamodb_add_value(db, change->type, change->value, change_bytes(change));
		before = ", ";
	}
	before = " REMOVE ";
	for (size_t i = 0; i < write->n_changes; i++) {
		if (write->changes[i].value)
			continue;
		text_add(&db->body, before);
		dynamodb_add_name(db, write->changes[i].name);
		before = ", ";
	}
	if (write->increments) {
		text_add(&db->body, " ADD ");
		dynamodb_add_name(db, write->increments);
		text_add_char(&db->body, ' ');
		dynamodb_add_value(db, VALUE_NUMBER, "1", 1);
	}
	text_add_char(&db->body, '"');
}

/* Fills a zeroed item from its JSON in a reply. */
static enum outcome take_item(const json_t *json, struct item *ret, struct problem *ret_problem)
{
	const int error = item_from_json(json, ret);
	return error < 0 ? dynamodb_not_understood(error, ret_problem) : OUTCOME_OK;
}

enum outcome dynamodb_read_refused(const struct batch_write *write)
{
	struct problem problem = {0};
	enum outcome outcome = dynamodb_get(
		&write->db->conn, write->key, READ_CONSISTENT, write->limits, write->ret, &problem);
	if (outcome == OUTCOME_OK || outcome == OUTCOME_ABSENT)
		return OUTCOME_REFUSED;
	*write->ret_problem = problem;
	/* THROTTLED would mean that the write was not applied; TRANSIENT means that it may have
	 * been. */
	return outcome == OUTCOME_THROTTLED ? OUTCOME_TRANSIENT : outcome;
}

/* Sets *write->ret to the present item, by the reply to a refused write. Returns REFUSED, or the
 * outcome of a failure. */
static enum outcome take_refused(const struct batch_write *write, const json_t *reply)
{
	const json_t *item = json_object_get(reply, "Item"); /* NULL also if `reply` is NULL */
	/* There is no item, or the server ignores ALL_OLD. A read finds out which. */
	if (!item)
		return dynamodb_read_refused(write);
	const enum outcome taken = take_item(item, write->ret, write->ret_problem);
	return taken == OUTCOME_OK ? OUTCOME_REFUSED : taken;
}

enum outcome dynamodb_write_alone(const struct batch_write *write)
{
	const struct item_write *what = write->what;
	const enum dynamodb_kind kind = what->item      ? DYNAMODB_PUT
					: what->removes ? DYNAMODB_DELETE
							: DYNAMODB_UPDATE;
	json_t *reply;
	struct text *body = dynamodb_begin(write->db);
	json_add_member(body, what->item ? "Item" : "Key");
	dynamodb_add_key(body, write->db->table, write->key, what->item);
	if (what->returns_item)
		json_add_text(body, "ReturnValues", "ALL_NEW");
	add_changes(write->db, what);
	add_conditions(write->db, what);
	enum outcome outcome =
		dynamodb_perform(write->db, kind, write->limits, &reply, write->ret_problem);
	if (outcome == OUTCOME_OK && what->returns_item)
		outcome = take_item(
			json_object_get(reply, "Attributes"), write->ret, write->ret_problem);
	else if (outcome == OUTCOME_REFUSED && write->ret)
		outcome = take_refused(write, reply);
	json_decref(reply);
	return outcome;
}

enum outcome dynamodb_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	json_t *reply;
	struct text *body = dynamodb_begin(db);
	json_add_member(body, "Key");
	dynamodb_add_key(body, db->table, key, NULL);
	json_add_member(body, "ConsistentRead");
	text_add(body, consistency == READ_CONSISTENT ? "true" : "false");
	enum outcome outcome = dynamodb_perform(db, DYNAMODB_GET, limits, &reply, ret_problem);
	const json_t *item = json_object_get(reply, "Item");
	if (outcome == OUTCOME_OK)
		outcome = item ? take_item(item, ret, ret_problem) : OUTCOME_ABSENT;
	json_decref(reply);
	return outcome;
}
