/* The store for many hosts: a table of DynamoDB, its connections, and the calls about one item. The
 * conditions and changes of a write become expressions here. store.c and the locks open it. What
 * may be assumed of an answer is said in dynamodb_request.h. */
#include "store/dynamodb_request.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 100 keys of 3 KB, or an item of 400 KB, each byte as \u00XX. */
#define BODY_MAX_BYTES (4 << 20)

struct table store_dynamodb_table(const char *name)
{
	return (struct table){.name = name, .pk_name = "pk", .sk_name = "sk"};
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

static struct dynamodb *db_of(const struct store *store)
{
	return (struct dynamodb *)(uintptr_t)store;
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct dynamodb_conn *db = calloc(1, sizeof *db);
	int r = db ? bell_init(&db->ticket.ticket.called) : -ENOMEM;

	if (r) {
		free(db);
		return r;
	}
	db->conn.store = store;
	db->db = db_of(store);
	db->table = &db->db->table;
	db->body = TEXT(BODY_MAX_BYTES);
	db->ticket.statement = TEXT(BATCH_MAX_BYTES);
	*ret = &db->conn;
	return 0;
}

static void conn_free(struct store_conn *conn)
{
	text_clear(&dynamodb_conn_of(conn)->body);
	bell_clear(&dynamodb_conn_of(conn)->ticket.ticket.called);
	text_clear(&dynamodb_conn_of(conn)->ticket.statement);
	free(conn);
}

static int64_t time_s(const struct store *store)
{
	return service_time_s(db_of(store)->service);
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	return service_kind(db_of(store)->service, i, ret_count);
}

static unsigned cuts(const struct store *store)
{
	return service_cuts(db_of(store)->service);
}

/* The strings of its table are owned. */
static void close_store(struct store *store)
{
	struct dynamodb *db = db_of(store);

	if (db->service)
		service_free(db->service);
	uv_mutex_destroy(&db->batches.mutex);
	free((char *)(uintptr_t)db->table.name);
	free((char *)(uintptr_t)db->table.pk_name);
	free((char *)(uintptr_t)db->table.sk_name);
	free(db);
}

static const struct store_ops dynamodb_ops = {
	.conn_new = conn_new,
	.conn_free = conn_free,
	.write = dynamodb_write,
	.get = dynamodb_get,
	.get_many = dynamodb_get_many,
	.query = dynamodb_query,
	.scan = dynamodb_scan,
	.try_batches = dynamodb_try_batches,
	.use_batches = dynamodb_use_batches,
	.time_s = time_s,
	.kind = kind,
	.cuts = cuts,
	.close = close_store,
};

int store_dynamodb_open_table(const struct aws_settings *settings, struct http_shared *http,
	const struct table *table, struct store **ret, struct problem *ret_problem)
{
	const struct service_options options = {
		.settings = settings, .http = http, .is_s3 = false, .kinds = dynamodb_kinds};
	struct dynamodb *db = calloc(1, sizeof *db);
	int r = db ? uv_mutex_init(&db->batches.mutex) : -ENOMEM;

	if (!r) {
		db->store.ops = &dynamodb_ops;
		db->table = (struct table){.name = strdup(table->name),
			.pk_name = strdup(table->pk_name),
			.sk_name = table->sk_name ? strdup(table->sk_name) : NULL,
			.sk_is_number = table->sk_is_number};
		const bool is_whole = db->table.name && db->table.pk_name &&
				      !db->table.sk_name == !table->sk_name;
		r = is_whole ? service_new(&options, &db->service, NULL) : -ENOMEM;
		if (!r) {
			*ret = &db->store;
			return 0;
		}
		close_store(&db->store);
	} else {
		free(db);
	}
	problem_set(ret_problem, "table %s: %s", table->name, strerror(-r));
	return r;
}

int store_dynamodb_open(const struct aws_settings *settings, struct http_shared *http,
	const char *table, struct store **ret, struct problem *ret_problem)
{
	const struct table ours = store_dynamodb_table(table);

	return store_dynamodb_open_table(settings, http, &ours, ret, ret_problem);
}
