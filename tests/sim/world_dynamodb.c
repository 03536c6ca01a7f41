/* Implements world_dynamodb.h. */
#include "world_dynamodb.h"
#include "dynamodb_expressions.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct row {
	char *pk, *sk;
	json_t *item;
	json_t *before; /* the earlier item, which eventually consistent reads may return, or NULL
			 */
	int64_t expires_s; /* 0: never */
};

struct world_dynamodb {
	struct chance chance;
	char table[64];
	struct dynamodb_habits habits;
	dynamodb_witness *witness;
	void *arg;
	struct row *rows; /* sorted */
	size_t n, cap;
	char ttl[256]; /* the attribute of TTL, or "" */
	struct dynamodb_bill bill;
};

struct world_dynamodb *world_dynamodb_new(uint64_t seed, const char *table,
	const struct dynamodb_habits *habits, dynamodb_witness *witness, void *arg)
{
	struct world_dynamodb *db = calloc(1, sizeof *db);
	if (!db)
		abort();
	db->chance = chance_of(seed, "dynamodb");
	snprintf(db->table, sizeof db->table, "%s", table);
	db->habits = *habits;
	db->witness = witness;
	db->arg = arg;
	snprintf(db->ttl, sizeof db->ttl, "%s", habits->ttl ? habits->ttl : "");
	return db;
}

/* Returns the size of an item as DynamoDB bills it: its names, and the bytes of its strings and
 * numbers. */
static size_t item_bytes(const json_t *item)
{
	const char *name, *type;
	json_t *attribute, *value;
	size_t bytes = 0;
	json_object_foreach((json_t *)(uintptr_t)item, name, attribute)
	{
		bytes += strlen(name);
		json_object_foreach(attribute, type, value) bytes += json_string_length(value);
	}
	return bytes;
}

/* Bills a read of items of this total size. */
static void bill_read(struct world_dynamodb *db, size_t bytes, bool is_consistent)
{
	const size_t units = bytes > 4096 ? (bytes + 4095) / 4096 : 1;
	db->bill.half_reads += is_consistent ? 2 * units : units;
}

/* Bills a write of an item, even one that is refused, by the larger size of the two items. */
static void bill_write(struct world_dynamodb *db, const json_t *old, const json_t *now)
{
	const size_t a = item_bytes(old), b = item_bytes(now), bytes = a > b ? a : b;
	db->bill.writes += bytes > 1024 ? (bytes + 1023) / 1024 : 1;
}

struct dynamodb_bill world_dynamodb_bill(const struct world_dynamodb *db)
{
	return db->bill;
}

static void row_clear(struct row *row)
{
	free(row->pk);
	free(row->sk);
	json_decref(row->item);
	json_decref(row->before);
}

void world_dynamodb_calm(struct world_dynamodb *db)
{
	db->habits.partial_per_mille = 0;
}

void world_dynamodb_free(struct world_dynamodb *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->n; i++)
		row_clear(&db->rows[i]);
	free(db->rows);
	free(db);
}

static int compare_keys(const struct row *row, const char *pk, const char *sk)
{
	const int order = strcmp(row->pk, pk);
	return order ? order : strcmp(row->sk, sk);
}

/* Returns the index of the row, or the index at which it belongs. */
static size_t place_of(const struct world_dynamodb *db, const char *pk, const char *sk, bool *found)
{
	size_t low = 0, high = db->n;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (compare_keys(&db->rows[middle], pk, sk) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < db->n && compare_keys(&db->rows[low], pk, sk) == 0;
	return low;
}

const json_t *world_dynamodb_item(const struct world_dynamodb *db, const char *pk, const char *sk)
{
	bool found;
	const size_t i = place_of(db, pk, sk, &found);
	return found ? db->rows[i].item : NULL;
}

const json_t *world_dynamodb_at(const struct world_dynamodb *db, size_t i)
{
	return i < db->n ? db->rows[i].item : NULL;
}

static void remove_row(struct world_dynamodb *db, size_t i)
{
	row_clear(&db->rows[i]);
	memmove(db->rows + i, db->rows + i + 1, (--db->n - i) * sizeof *db->rows);
}

void world_dynamodb_forget(struct world_dynamodb *db, const char *pk, const char *sk)
{
	bool found;
	const size_t i = place_of(db, pk, sk, &found);
	if (found)
		remove_row(db, i);
}

const char *dynamodb_text(const json_t *item, const char *name)
{
	const json_t *value = json_object_get(item, name);
	const char *text = json_string_value(json_object_get(value, "S"));
	if (!text)
		text = json_string_value(json_object_get(value, "N"));
	return text ? text : "";
}

static int64_t expiry_of(const struct world_dynamodb *db, const json_t *item)
{
	return strtoll(dynamodb_text(item, db->ttl), NULL, 10);
}

/* Writes a row, and takes ownership of `now`. NULL removes the row. */
static void write_row(struct world_dynamodb *db, const struct wire_request *request, const char *pk,
	const char *sk, json_t *now)
{
	bool found;
	const size_t i = place_of(db, pk, sk, &found);
	if (db->witness)
		db->witness(db->arg, request, pk, sk, found ? db->rows[i].item : NULL, now);
	if (!now) {
		if (found)
			remove_row(db, i);
		return;
	}
	if (found) {
		json_decref(db->rows[i].before);
		db->rows[i].before = db->rows[i].item;
		db->rows[i].item = now;
		db->rows[i].expires_s = expiry_of(db, now);
		return;
	}
	if (db->n == db->cap) {
		db->cap = 2 * db->cap + 64;
		db->rows = realloc(db->rows, db->cap * sizeof *db->rows);
		if (!db->rows)
			abort();
	}
	memmove(db->rows + i + 1, db->rows + i, (db->n - i) * sizeof *db->rows);
	db->n++;
	db->rows[i] = (struct row){
		.pk = strdup(pk), .sk = strdup(sk), .item = now, .expires_s = expiry_of(db, now)};
}

static void answer(struct wire_reply *ret, int status, json_t *body)
{
	char *text = json_dumps(body, JSON_COMPACT), number[16];
	json_decref(body);
	ret->status = status;
	text_add(&ret->body, text);
	snprintf(number, sizeof number, "%lu",
		crc32(0, (const unsigned char *)text, (uInt)strlen(text)));
	wire_reply_header(ret, "x-amz-crc32", number);
	wire_reply_header(ret, "content-type", "application/x-amz-json-1.0");
	free(text);
}

static json_t *error_body(const char *code, const char *message)
{
	char type[128];
	snprintf(type, sizeof type, "com.amazonaws.dynamodb.v20120810#%s", code);
	return json_pack("{s:s, s:s}", "__type", type, "message", message);
}

static void refuse(struct wire_reply *ret, const char *code, const char *message)
{
	answer(ret, 400, error_body(code, message));
}

static const char *text_in(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));
	return text ? text : "";
}

static bool is_key(const struct world_dynamodb *db, const json_t *key)
{
	return *dynamodb_text(key, "pk") && (db->habits.hash_only || *dynamodb_text(key, "sk"));
}

#define KEY_REFUSED "The provided key element does not match the schema"

/* Whether the request uses all the names and values that it gives, as DynamoDB demands. */
static bool uses_all(const json_t *body)
{
	static const char *const given[] = {
		"ExpressionAttributeNames", "ExpressionAttributeValues"};
	static const char *const expressions[] = {"ConditionExpression", "UpdateExpression",
		"KeyConditionExpression", "FilterExpression", "ProjectionExpression"};
	bool ret = true;
	for (size_t i = 0; i < 2; i++) {
		json_t *all = json_object_get(body, given[i]), *value;
		const char *name;
		ret = ret && (!all || json_object_size(all));
		json_object_foreach(all, name, value)
		{
			bool is_used = false;
			for (size_t k = 0; k < 5; k++)
				is_used = is_used || strstr(text_in(body, expressions[k]), name);
			ret = ret && is_used;
		}
	}
	return ret;
}

/* Answers a conditional write of one item: Put, Update or Delete. */
static void write_item(struct world_dynamodb *db, const struct wire_request *request,
	const char *operation, const json_t *body, struct wire_reply *ret)
{
	const json_t *key = json_object_get(body, *operation == 'P' ? "Item" : "Key");
	const json_t *names = json_object_get(body, "ExpressionAttributeNames");
	const json_t *values = json_object_get(body, "ExpressionAttributeValues");
	const char *condition = text_in(body, "ConditionExpression");
	const char *update = text_in(body, "UpdateExpression");
	const char *pk = dynamodb_text(key, "pk"), *sk = dynamodb_text(key, "sk");
	const json_t *old = world_dynamodb_item(db, pk, sk);
	if (!is_key(db, key)) {
		refuse(ret, "ValidationException", KEY_REFUSED);
		return;
	}
	const enum expression_result holds =
		*condition ? condition_holds(condition, names, values, old) : EXPRESSION_TRUE;
	if (holds == EXPRESSION_INVALID) {
		refuse(ret, "ValidationException", "Invalid ConditionExpression");
		return;
	}
	if (holds == EXPRESSION_FALSE) {
		bill_write(db, old, NULL);
		json_t *error = error_body(
			"ConditionalCheckFailedException", "The conditional request failed");
		if (old && db->habits.returns_old &&
			strcmp(text_in(body, "ReturnValuesOnConditionCheckFailure"), "ALL_OLD") ==
				0)
			json_object_set_new(error, "Item", json_deep_copy(old));
		answer(ret, 400, error);
		return;
	}
	json_t *now = NULL;
	if (*operation == 'P')
		now = json_deep_copy(key);
	else if (*operation == 'U')
		now = json_deep_copy(old ? old : key);
	if (now && *update &&
		(!update_apply(update, names, values, now) ||
			strcmp(dynamodb_text(now, "pk"), pk) != 0 ||
			strcmp(dynamodb_text(now, "sk"), sk) != 0)) {
		json_decref(now);
		refuse(ret, "ValidationException", "Invalid UpdateExpression");
		return;
	}
	json_t *told = json_object();
	if (strcmp(text_in(body, "ReturnValues"), "ALL_NEW") == 0)
		json_object_set_new(told, "Attributes", json_deep_copy(now));
	bill_write(db, old, now);
	write_row(db, request, pk, sk, now);
	answer(ret, 200, told);
}

/* Returns the item that a read shows for a row. */
static const json_t *seen(struct world_dynamodb *db, const struct row *row, bool is_consistent)
{
	if (!is_consistent && db->habits.may_read_stale && row->before &&
		chance_hits(&db->chance, 300))
		return row->before;
	return row->item;
}

static void get_item(struct world_dynamodb *db, const json_t *body, struct wire_reply *ret)
{
	const json_t *key = json_object_get(body, "Key");
	bool found;
	if (!is_key(db, key)) {
		refuse(ret, "ValidationException", KEY_REFUSED);
		return;
	}
	const size_t i = place_of(db, dynamodb_text(key, "pk"), dynamodb_text(key, "sk"), &found);
	const bool is_consistent = json_is_true(json_object_get(body, "ConsistentRead"));
	const json_t *shown = found ? seen(db, &db->rows[i], is_consistent) : NULL;
	json_t *told = json_object();
	if (shown)
		json_object_set_new(told, "Item", json_deep_copy(shown));
	bill_read(db, item_bytes(shown), is_consistent);
	answer(ret, 200, told);
}

#define KEYS_OF_A_BATCH 100
static bool is_batch(const struct world_dynamodb *db, const json_t *keys)
{
	const size_t n = json_array_size(keys);
	bool ret = n && n <= KEYS_OF_A_BATCH;
	for (size_t i = 0; i < n && ret; i++) {
		ret = is_key(db, json_array_get(keys, i));
		for (size_t k = 0; k < i && ret; k++)
			ret = !json_equal(json_array_get(keys, i), json_array_get(keys, k));
	}
	return ret;
}

static void get_many(struct world_dynamodb *db, const json_t *body, struct wire_reply *ret)
{
	const json_t *of = json_object_get(json_object_get(body, "RequestItems"), db->table);
	const json_t *keys = json_object_get(of, "Keys");
	const bool is_consistent = json_is_true(json_object_get(of, "ConsistentRead"));
	if (!is_batch(db, keys)) {
		refuse(ret, "ValidationException", "The keys are not valid");
		return;
	}
	json_t *items = json_array(), *left = json_array();
	for (size_t n = json_array_size(keys), k = 0; k < n; k++) {
		const json_t *key = json_array_get(keys, k);
		bool found;
		if (chance_hits(&db->chance, db->habits.partial_per_mille)) {
			json_array_append_new(left, json_deep_copy(key));
			continue;
		}
		const size_t i =
			place_of(db, dynamodb_text(key, "pk"), dynamodb_text(key, "sk"), &found);
		/* A statement of its own, since the order in which arguments are computed is not
		 * fixed. */
		const json_t *shown = found ? seen(db, &db->rows[i], is_consistent) : NULL;
		bill_read(db, item_bytes(shown), is_consistent);
		if (!found)
			continue;
		json_array_insert_new(items, /* in no order */
			chance_below(&db->chance, json_array_size(items) + 1),
			json_deep_copy(shown));
	}
	json_t *told = json_pack("{s:{s:o}}", "Responses", db->table, items);
	if (json_array_size(left)) {
		json_t *rest = json_deep_copy(of);
		json_object_set_new(rest, "Keys", left);
		json_object_set_new(told, "UnprocessedKeys", json_pack("{s:o}", db->table, rest));
	} else {
		json_decref(left);
		json_object_set_new(told, "UnprocessedKeys", json_object());
	}
	answer(ret, 200, told);
}

/* Returns the partition that a Query reads, or "" for a Scan. */
static const char *partition_of(const json_t *body)
{
	char name[64], value[64];
	if (sscanf(text_in(body, "KeyConditionExpression"), "%63s = %63s", name, value) != 2)
		return "";
	return dynamodb_text(json_object_get(body, "ExpressionAttributeValues"), value);
}

/* Answers Query and Scan. */
static void list(struct world_dynamodb *db, const json_t *body, struct wire_reply *ret)
{
	const char *condition = text_in(body, "KeyConditionExpression");
	const json_t *start = json_object_get(body, "ExclusiveStartKey");
	const json_t *limit = json_object_get(body, "Limit");
	const bool is_consistent = json_is_true(json_object_get(body, "ConsistentRead"));
	size_t most = db->habits.page_items ? db->habits.page_items : 1000, i = 0;
	if (limit && (size_t)json_integer_value(limit) < most)
		most = (size_t)json_integer_value(limit);
	json_t *items = json_array(), *last = NULL;
	const char *partition = partition_of(body);
	size_t bytes = 0;
	bool found;
	if (*partition)
		i = place_of(db, partition, "", &found);
	if (start) {
		i = place_of(db, dynamodb_text(start, "pk"), dynamodb_text(start, "sk"), &found);
		i += found;
	}
	for (; i < db->n && !last; i++) {
		const struct row *row = &db->rows[i];
		if (*partition && strcmp(row->pk, partition) != 0)
			break;
		if (*condition && condition_holds(condition,
					  json_object_get(body, "ExpressionAttributeNames"),
					  json_object_get(body, "ExpressionAttributeValues"),
					  row->item) != EXPRESSION_TRUE)
			continue;
		const json_t *shown = seen(db, row, is_consistent);
		bytes += item_bytes(shown);
		json_array_append_new(items, json_deep_copy(shown));
		if (json_array_size(items) == most) {
			last = json_pack("{s:{s:s}}", "pk", "S", row->pk);
			if (!db->habits.hash_only)
				json_object_set_new(last, "sk", json_pack("{s:s}", "S", row->sk));
		}
	}
	bill_read(db, bytes, is_consistent);
	const int count = (int)json_array_size(items);
	json_t *told =
		json_pack("{s:i, s:i, s:o}", "Count", count, "ScannedCount", count, "Items", items);
	if (last)
		json_object_set_new(told, "LastEvaluatedKey", last);
	answer(ret, 200, told);
}

static json_t *statement_error(const char *code, const char *message)
{
	return json_pack("{s:{s:s, s:s}}", "Error", "Code", code, "Message", message);
}

static bool conditions_hold(const struct statement *statement, const json_t *item)
{
	for (size_t i = 0; i < json_array_size(statement->conditions); i++) {
		const json_t *condition = json_array_get(statement->conditions, i);
		const json_t *there =
			json_object_get(item, json_string_value(json_array_get(condition, 0)));
		const json_t *value = json_array_get(condition, 1);
		if (json_is_null(value) ? there != NULL : !value_equals(there, value))
			return false;
	}
	return true;
}

static json_t *changed(const struct statement *statement, const json_t *old)
{
	json_t *now = json_deep_copy(old);
	json_object_update(now, statement->sets);
	for (size_t i = 0; i < json_array_size(statement->removes); i++)
		json_object_del(now, json_string_value(json_array_get(statement->removes, i)));
	return now;
}

/* Applies one statement of a batch, and returns its reply. */
static json_t *execute(struct world_dynamodb *db, const struct wire_request *request,
	const struct statement *statement)
{
	const char *pk = dynamodb_text(statement->item, "pk");
	const char *sk = dynamodb_text(statement->item, "sk");
	const json_t *old = world_dynamodb_item(db, pk, sk);
	if (strcmp(statement->table, db->table) != 0)
		return statement_error("ResourceNotFound", "Requested resource not found");
	json_t *table = json_pack("{s:s}", "TableName", db->table);
	bill_write(db, old, statement->item);
	if (statement->is_insert && !old) {
		write_row(db, request, pk, sk, json_deep_copy(statement->item));
		return table;
	}
	if (statement->is_insert) {
		json_decref(table);
		return statement_error("DuplicateItem", "Duplicate primary key exists in table");
	}
	if (!old || !conditions_hold(statement, old)) {
		json_decref(table);
		return statement_error("ConditionalCheckFailed", "The conditional request failed");
	}
	write_row(db, request, pk, sk, changed(statement, old));
	return table;
}

static bool names_one_twice(const struct statement *statements, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(dynamodb_text(statements[i].item, "pk"),
				    dynamodb_text(statements[k].item, "pk")) == 0 &&
				strcmp(dynamodb_text(statements[i].item, "sk"),
					dynamodb_text(statements[k].item, "sk")) == 0)
				return true;
	return false;
}

#define STATEMENTS_OF_A_BATCH 25
static void execute_batch(struct world_dynamodb *db, const struct wire_request *request,
	const json_t *body, struct wire_reply *ret)
{
	const json_t *given = json_object_get(body, "Statements");
	const size_t n = json_array_size(given);
	struct statement statements[STATEMENTS_OF_A_BATCH];
	bool valid = n > 0 && n <= STATEMENTS_OF_A_BATCH;
	size_t read = 0;
	json_t *answers = json_array();
	bool is_valid[STATEMENTS_OF_A_BATCH];
	for (; valid && read < n; read++) {
		const json_t *one = json_array_get(given, read);
		is_valid[read] = statement_read(text_in(one, "Statement"),
			json_object_get(one, "Parameters"), db->habits.batches == BATCHES_LISTS,
			&statements[read]);
	}
	valid = valid && !names_one_twice(statements, n);
	for (size_t i = 0; valid && i < n; i++) {
		const bool is_hit = chance_hits(&db->chance, db->habits.partial_per_mille);
		const bool is_done = !is_hit || chance_hits(&db->chance, 500);
		json_t *told = !is_valid[i] ? statement_error("ValidationError",
						      "Statement wasn't well formed")
			       : is_done    ? execute(db, request, &statements[i])
					    : NULL;
		if (is_hit && is_valid[i]) { /* may be applied nevertheless */
			json_decref(told);
			told = is_done ? statement_error("InternalServerError", "Internal error")
				       : statement_error("ThrottlingError", "Rate exceeded");
		}
		json_array_append_new(answers, told);
	}
	for (size_t i = 0; i < read; i++)
		statement_clear(&statements[i]);
	if (valid) {
		answer(ret, 200, json_pack("{s:o}", "Responses", answers));
		return;
	}
	json_decref(answers);
	refuse(ret, "ValidationException", "The statements are not valid");
}

static void describe(struct world_dynamodb *db, struct wire_reply *ret)
{
	json_t *keys = json_pack("[{s:s, s:s}]", "AttributeName", "pk", "KeyType", "HASH");
	json_t *types = json_pack("[{s:s, s:s}]", "AttributeName", "pk", "AttributeType", "S");
	if (!db->habits.hash_only) {
		json_array_append_new(
			keys, json_pack("{s:s, s:s}", "AttributeName", "sk", "KeyType", "RANGE"));
		json_array_append_new(types,
			json_pack("{s:s, s:s}", "AttributeName", "sk", "AttributeType", "S"));
	}
	answer(ret, 200,
		json_pack("{s:{s:s, s:s, s:o, s:o}}", "Table", "TableName", db->table,
			"TableStatus", "ACTIVE", "KeySchema", keys, "AttributeDefinitions", types));
}

static void enable_ttl(struct world_dynamodb *db, const json_t *body, struct wire_reply *ret)
{
	const json_t *wanted = json_object_get(body, "TimeToLiveSpecification");
	const char *name = text_in(wanted, "AttributeName");
	if (!*name || !json_is_true(json_object_get(wanted, "Enabled")))
		refuse(ret, "ValidationException", "TimeToLive cannot be set so");
	else if (*db->ttl)
		refuse(ret, "ValidationException", "TimeToLive is already enabled");
	else {
		snprintf(db->ttl, sizeof db->ttl, "%s", name);
		for (size_t i = 0; i < db->n; i++)
			db->rows[i].expires_s = expiry_of(db, db->rows[i].item);
		answer(ret, 200, json_pack("{s:O}", "TimeToLiveSpecification", wanted));
	}
}

static void describe_ttl(struct world_dynamodb *db, struct wire_reply *ret)
{
	json_t *told = json_pack("{s:s}", "TimeToLiveStatus", *db->ttl ? "ENABLED" : "DISABLED");
	if (*db->ttl)
		json_object_set_new(told, "AttributeName", json_string(db->ttl));
	answer(ret, 200, json_pack("{s:o}", "TimeToLiveDescription", told));
}

/* Deletes expired items at some moment after their time (TTL). */
static void expire(struct world_dynamodb *db, int64_t now_s)
{
	for (size_t i = 0; i < db->n; i++) {
		const int64_t expires_s = db->rows[i].expires_s;
		if (expires_s && expires_s < now_s && chance_hits(&db->chance, 20))
			remove_row(db, i--);
	}
}

void world_dynamodb_answer(struct world_dynamodb *db, const struct wire_request *request,
	int64_t now_s, struct wire_reply *ret)
{
	const char *target = wire_header(request, "x-amz-target");
	const char *dot = target ? strchr(target, '.') : NULL;
	const char *operation = dot ? dot + 1 : "";
	json_t *body =
		json_loadb((const char *)request->body, request->body_bytes, JSON_ALLOW_NUL, NULL);
	expire(db, now_s);
	if (!body)
		refuse(ret, "SerializationException", "The body is no JSON");
	else if (json_object_get(body, "TableName") &&
		 strcmp(text_in(body, "TableName"), db->table) != 0)
		refuse(ret, "ResourceNotFoundException", "Requested resource not found");
	else if (!uses_all(body))
		refuse(ret, "ValidationException", "A name or a value is not used in expressions");
	else if (json_object_get(body, "Limit") &&
		 json_integer_value(json_object_get(body, "Limit")) < 1)
		refuse(ret, "ValidationException", "Limit is less than 1");
	else if (strcmp(operation, "PutItem") == 0 || strcmp(operation, "UpdateItem") == 0 ||
		 strcmp(operation, "DeleteItem") == 0)
		write_item(db, request, operation, body, ret);
	else if (strcmp(operation, "GetItem") == 0)
		get_item(db, body, ret);
	else if (strcmp(operation, "BatchGetItem") == 0)
		get_many(db, body, ret);
	else if (strcmp(operation, "Query") == 0 || strcmp(operation, "Scan") == 0)
		list(db, body, ret);
	else if (strcmp(operation, "BatchExecuteStatement") == 0 &&
		 db->habits.batches != BATCHES_NONE)
		execute_batch(db, request, body, ret);
	else if (strcmp(operation, "DescribeTable") == 0)
		describe(db, ret);
	else if (strcmp(operation, "UpdateTimeToLive") == 0)
		enable_ttl(db, body, ret);
	else if (strcmp(operation, "DescribeTimeToLive") == 0)
		describe_ttl(db, ret);
	else if (strcmp(operation, "CreateTable") == 0) {
		char message[320];
		snprintf(message, sizeof message, "Table already exists: %s", db->table);
		refuse(ret, "ResourceInUseException", message);
	} else
		refuse(ret, "UnknownOperationException", "");
	json_decref(body);
}
