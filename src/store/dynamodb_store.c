/* The store for many hosts: a table of DynamoDB, its connections, and reading several items by
 * their keys, by a range, or all of a table. Single items are read and written in
 * dynamodb_request.c. store.c and the locks open it. Unprocessed keys of a reply are requested
 * again, and an empty page is not taken for the last one. Pages of items are cut out of the reply
 * while they are handed out, so that no tree of them is built. */
#include "aws/retry.h"
#include "base/clock.h"
#include "store/dynamodb_request.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of a request: 100 keys of 3 KB, or an item of 400 KB, with each byte as \u00XX. */
#define BODY_MAX_BYTES (4 << 20)
#define BATCH_KEYS_MAX 100
/* A round that leaves all keys unprocessed is idle. Reading fails after more consecutive idle
 * rounds than this, but not before the patience is over. */
#define IDLE_ROUNDS_MAX 8

enum outcome dynamodb_hand_out(
	struct item_visit *visit, int error, struct item *item, struct problem *ret_problem)
{
	const struct table *table = visit->table;
	visit->n++;
	const char *pk = item_string(item, table->pk_name);
	const struct attribute *sort = table->sk_name ? item_find(item, table->sk_name) : NULL;
	const enum value_type type = table->sk_is_number ? VALUE_NUMBER : VALUE_STRING;
	const char *sk = sort && sort->type == type ? sort->value : NULL;
	const bool lacks_key = !pk || (table->sk_name && !sk);
	enum outcome outcome = OUTCOME_OK;
	if (error < 0)
		outcome = dynamodb_not_understood(error, ret_problem);
	else if (lacks_key)
		outcome = outcome_error(ret_problem, OUTCOME_SETUP,
			"table %s: " DYNAMODB_HAS_OTHER_KEYS
			" than %s%s%s: check the name of the table",
			table->name, quote(table->pk_name).text, table->sk_name ? " and " : "",
			table->sk_name ? quote(table->sk_name).text : "");
	else if (visit->each(visit->arg, &(struct found_item){.key = {pk, sk}, .item = item}))
		outcome = outcome_error(
			ret_problem, OUTCOME_LOCAL, "reading the table was stopped before its end");
	item_clear(item);
	return outcome;
}

/* The reading of up to BATCH_KEYS_MAX keys. BatchGetItem may answer only some of them. It returns
 * the rest as UnprocessedKeys, which have the form of the RequestItems of the next request. */
struct reading {
	struct item_visit visit;
	char *unprocessed; /* the RequestItems to send next, owned; NULL: all keys were answered */
	size_t left;       /* keys that were not answered yet */
	unsigned idle_rounds; /* rounds since `left` last became less */
	uint64_t answered_ns; /* the time when `left` last became less */
};

/* Hands out the items of a reply. */
static enum outcome take_answered(
	struct reading *reading, const json_t *reply, struct problem *ret_problem)
{
	const json_t *items =
		json_object_get(json_object_get(reply, "Responses"), reading->visit.table->name);
	enum outcome outcome = OUTCOME_OK;
	for (size_t i = 0; i < json_array_size(items) && outcome == OUTCOME_OK; i++) {
		struct item item = {0};
		const int error = item_from_json(json_array_get(items, i), &item);
		outcome = dynamodb_hand_out(&reading->visit, error, &item, ret_problem);
	}
	return outcome;
}

/* Keeps the request for the keys that a reply leaves unprocessed, and notes whether the reply has
 * answered any. */
static enum outcome keep_unprocessed(
	struct reading *reading, const json_t *reply, struct problem *ret_problem)
{
	const json_t *unprocessed = json_object_get(reply, "UnprocessedKeys");
	const json_t *of_table = json_object_get(unprocessed, reading->visit.table->name);
	const size_t left = json_array_size(json_object_get(of_table, "Keys"));
	free(reading->unprocessed);
	reading->unprocessed = NULL;
	if (json_object_size(unprocessed) == 0)
		return OUTCOME_OK;
	/* If left is 0, the reply has unprocessed keys but none of this table: no key counts as
	 * answered. */
	if (left && left < reading->left) {
		reading->left = left;
		reading->idle_rounds = 0;
		reading->answered_ns = clock_boot_ns();
	} else {
		reading->idle_rounds++;
	}
	reading->unprocessed = json_dumps(unprocessed, JSON_COMPACT);
	return reading->unprocessed ? OUTCOME_OK : dynamodb_not_understood(-ENOMEM, ret_problem);
}

/* Waits before the unprocessed keys are requested again. It does not wait if some keys were
 * answered, since the reply was full then. Otherwise it waits as after throttling. */
static enum outcome wait_for_keys(const struct reading *reading, const struct call_limits *limits,
	struct problem *ret_problem)
{
	const uint64_t patience_ns = limits ? limits->patience_ms * NS_PER_MS : 0;
	if (reading->idle_rounds == 0)
		return OUTCOME_OK;
	if (reading->idle_rounds > IDLE_ROUNDS_MAX &&
		clock_boot_ns() - reading->answered_ns >= patience_ns)
		return outcome_error(ret_problem, OUTCOME_THROTTLED,
			"the table is throttled: it leaves keys unprocessed");
	uint64_t ms = retry_backoff_ms(RETRY_THROTTLE, RETRY_OF_DYNAMODB, reading->idle_rounds - 1);
	return wait_within(limits, ms, ret_problem);
}

/* Adds the RequestItems of the first request: {"TABLE":{"Keys":[…]}}. */
static void add_requested_keys(struct dynamodb_conn *db, const struct item_key *keys, size_t n)
{
	struct text *body = &db->body;
	text_add_char(body, '{');
	json_add_member(body, db->table->name);
	text_add(body, "{\"Keys\":[");
	for (size_t i = 0; i < n; i++) {
		text_add(body, i ? "," : "");
		dynamodb_add_key(body, db->table, keys[i], NULL);
	}
	text_add(body, "]}}");
}

/* Reads up to BATCH_KEYS_MAX items. It repeats the request until no keys are left unprocessed. */
static enum outcome get_batch(struct dynamodb_conn *db, const struct item_visit *visit,
	const struct item_key *keys, size_t n, const struct call_limits *limits,
	struct problem *ret_problem)
{
	struct reading reading = {.visit = *visit, .left = n, .answered_ns = clock_boot_ns()};
	enum outcome outcome;
	do {
		json_t *reply;
		struct text *body = dynamodb_begin_bare(db);
		json_add_member(body, "RequestItems");
		if (reading.unprocessed)
			text_add(body, reading.unprocessed);
		else
			add_requested_keys(db, keys, n);
		outcome = dynamodb_perform(db, DYNAMODB_GET_MANY, limits, &reply, ret_problem);
		if (outcome == OUTCOME_OK)
			outcome = take_answered(&reading, reply, ret_problem);
		if (outcome == OUTCOME_OK)
			outcome = keep_unprocessed(&reading, reply, ret_problem);
		json_decref(reply);
		if (outcome == OUTCOME_OK && reading.unprocessed)
			outcome = wait_for_keys(&reading, limits, ret_problem);
	} while (outcome == OUTCOME_OK && reading.unprocessed);
	free(reading.unprocessed);
	return outcome;
}

static enum outcome get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, found_visitor *each, void *arg,
	struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	const struct item_visit visit = {db->table, each, arg};
	enum outcome outcome = OUTCOME_OK;
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i += BATCH_KEYS_MAX) {
		size_t count = n - i < BATCH_KEYS_MAX ? n - i : BATCH_KEYS_MAX;
		outcome = get_batch(db, &visit, keys + i, count, limits, ret_problem);
	}
	return outcome;
}

static const char *skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Returns the bracket that opens the Items of a reply, or NULL. Nothing else in a reply looks the
 * same: in a string the quotes would be escaped, and the value of an attribute named Items is an
 * object. */
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

/* Hands out the items of a reply, and cuts them out of it, so that the caller reads only the short
 * rest as JSON. */
static enum outcome take_items(struct text *reply, const struct call_limits *limits,
	struct item_visit *visit, struct problem *ret_problem)
{
	const char *begin = reply->data ? find_items(reply->data) : NULL;
	if (!begin) /* no items; the caller checks whether this is a reply at all */
		return OUTCOME_OK;
	const char *next = skip_space(begin + 1);
	bool has_more = *next != ']';
	while (has_more) {
		struct item item = {0};
		size_t bytes = 0;
		const size_t left = reply->len - (size_t)(next - reply->data);
		const int error = item_read(next, left, limits, &item, &bytes);
		const enum outcome outcome = dynamodb_hand_out(visit, error, &item, ret_problem);
		if (outcome != OUTCOME_OK)
			return outcome;
		next = skip_space(next + bytes);
		has_more = *next == ',';
		if (has_more)
			next = skip_space(next + 1);
		else if (*next != ']')
			return dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	/* The reply becomes …"Items":[]…, with `next` at the closing bracket. */
	const size_t kept = (size_t)(begin - reply->data) + 1;
	const size_t left = reply->len - (size_t)(next - reply->data);
	memmove(reply->data + kept, next, left + 1);
	reply->len = kept + left;
	return OUTCOME_OK;
}

/* Sends the request for a page, whose body the caller has written, and hands out its items one by
 * one. *start becomes the key at which the next page begins, as JSON text, or NULL after the last
 * page. */
static enum outcome perform_page(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct item_visit *visit, char **start,
	struct problem *ret_problem)
{
	struct http_reply reply = {0};
	json_t *json = NULL;
	enum outcome outcome = dynamodb_send(db, kind, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK)
		outcome = take_items(&reply.body, limits, visit, ret_problem);
	if (outcome == OUTCOME_OK) {
		json = json_read(&reply.body, limits);
		if (!json_is_object(json))
			outcome = dynamodb_not_understood(-EBADMSG, ret_problem);
	}
	const json_t *last = json_object_get(json, "LastEvaluatedKey");
	free(*start);
	*start = NULL;
	if (outcome == OUTCOME_OK && json_is_object(last)) {
		*start = json_dumps(last, JSON_COMPACT);
		if (!*start)
			outcome = dynamodb_not_understood(-ENOMEM, ret_problem);
	}
	json_decref(json);
	http_reply_clear(&reply);
	return outcome;
}

static void add_term(struct dynamodb_conn *db, const char *before, const char *name,
	const char *comparison, const char *value)
{
	text_add(&db->body, before);
	dynamodb_add_name(db, name);
	text_add(&db->body, comparison);
	dynamodb_add_value(db, VALUE_STRING, value, strlen(value));
}

/* Writes the body of a Query. `start` is the key at which a page begins, as JSON text, or NULL. A
 * range after a key begins as if a page had ended at that key, since DynamoDB allows one condition
 * on the sort key, and BETWEEN includes its lower bound. */
static void add_query(struct dynamodb_conn *db, const struct store_range *range, const char *start)
{
	const char *sk_name = db->table->sk_name;
	/* DynamoDB refuses an empty key. No item has one, so such a range begins at the first
	 * item. */
	const char *begin = range->from && *range->from ? range->from : NULL;
	const char *from = range->after ? NULL : begin, *after = range->after ? begin : NULL;
	const bool is_between = from && range->to;
	struct text *body = dynamodb_begin(db);
	json_add_member(body, "KeyConditionExpression");
	add_term(db, "\"", db->table->pk_name, " = ", range->pk);
	if (from)
		add_term(db, " AND ", sk_name, is_between ? " BETWEEN " : " >= ", from);
	else if (range->to)
		add_term(db, " AND ", sk_name, " <= ", range->to);
	if (is_between) { /* its upper bound */
		text_add(body, " AND ");
		dynamodb_add_value(db, VALUE_STRING, range->to, strlen(range->to));
	}
	text_add_char(body, '"');
	json_add_member(body, "ConsistentRead");
	text_add(body, range->consistent ? "true" : "false");
	if (range->max_items) {
		json_add_member(body, "Limit");
		text_addf(body, "%u", range->max_items);
	}
	if (start || after)
		json_add_member(body, "ExclusiveStartKey");
	if (start)
		text_add(body, start);
	else if (after)
		dynamodb_add_key(body, db->table, (struct item_key){range->pk, after}, NULL);
}

/* Whether no key can be in the range: it ends before its beginning or, if it begins after a key, at
 * that key; or it ends at the empty key, which no item has. */
static bool is_empty_range(const struct store_range *range)
{
	if (!range->to)
		return false;
	const int order = strcmp(range->from ? range->from : "", range->to);
	return order > 0 || (order == 0 && (range->after || !*range->to));
}

static enum outcome query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct item_visit visit = {db->table, each, arg};
	char *start = NULL;
	enum outcome outcome;
	if (is_empty_range(range)) { /* DynamoDB would refuse it */
		*ret_more = false;
		return OUTCOME_OK;
	}
	/* A page that is empty need not be the last one. The caller could not continue from it,
	 * since it continues from the last item visited. So empty pages are skipped here. */
	do {
		add_query(db, range, start);
		outcome = perform_page(db, DYNAMODB_QUERY, limits, &visit, &start, ret_problem);
	} while (outcome == OUTCOME_OK && start && !visit.n);
	*ret_more = start != NULL;
	free(start);
	return outcome;
}

static enum outcome scan(struct store_conn *conn, const struct call_limits *limits,
	found_visitor *each, void *arg, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct item_visit visit = {db->table, each, arg};
	char *start = NULL;
	enum outcome outcome;
	do {
		struct text *body = dynamodb_begin(db);
		json_add_member(body, "ConsistentRead");
		text_add(body, "true");
		if (start) {
			json_add_member(body, "ExclusiveStartKey");
			text_add(body, start);
		}
		outcome = perform_page(db, DYNAMODB_SCAN, limits, &visit, &start, ret_problem);
	} while (outcome == OUTCOME_OK && start);
	free(start);
	return outcome;
}

struct table store_dynamodb_table(const char *name)
{
	return (struct table){.name = name, .pk_name = "pk", .sk_name = "sk"};
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct dynamodb_conn *db = calloc(1, sizeof *db);

	if (!db)
		return -ENOMEM;
	wakeup_init(&db->ticket.ticket.wakeup);
	wakeup_init(&db->begun.ticket.wakeup);
	db->conn.store = store;
	db->db = (struct dynamodb *)store;
	db->table = &db->db->table;
	db->body = db->names = db->values = TEXT(BODY_MAX_BYTES);
	db->ticket.statement = TEXT(BATCH_MAX_BYTES);
	db->begun.statement = TEXT(BATCH_MAX_BYTES);
	*ret = &db->conn;
	return 0;
}

static void conn_free(struct store_conn *conn)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);

	text_clear(&db->body);
	text_clear(&db->names);
	text_clear(&db->values);
	wakeup_clear(&db->ticket.ticket.wakeup);
	wakeup_clear(&db->begun.ticket.wakeup);
	text_clear(&db->ticket.statement);
	text_clear(&db->begun.statement);
	free(conn);
}

static int64_t time_s(const struct store *store)
{
	return service_time_s(store->service);
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	return service_kind(store->service, i, ret_count);
}

/* Frees a store that may be half made. The strings of its table are owned. */
static void close_store(struct store *store)
{
	struct dynamodb *db = (struct dynamodb *)store;

	if (store->service)
		service_free(store->service);
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
	.begin_write = dynamodb_begin_write,
	.end_write = dynamodb_end_write,
	.get = dynamodb_get,
	.get_many = get_many,
	.query = query,
	.scan = scan,
	.try_batches = dynamodb_try_batches,
	.use_batches = dynamodb_use_batches,
	.time_s = time_s,
	.kind = kind,
	.close = close_store,
};

int store_dynamodb_open_table(const struct aws_settings *settings, struct http_shared *http,
	const struct table *table, struct store **ret, struct problem *ret_problem)
{
	const struct service_options options = {
		.settings = settings, .http = http, .is_s3 = false, .kinds = dynamodb_kinds};
	struct dynamodb *db = calloc(1, sizeof *db);

	if (!db)
		return problem_error(ret_problem, -ENOMEM, "table %s: out of memory", table->name);
	uv_mutex_init(&db->batches.mutex);
	db->store.ops = &dynamodb_ops;
	db->table = (struct table){.name = strdup(table->name),
		.pk_name = strdup(table->pk_name),
		.sk_name = table->sk_name ? strdup(table->sk_name) : NULL,
		.sk_is_number = table->sk_is_number};
	const bool is_whole = db->table.name && db->table.pk_name &&
			      (db->table.sk_name || !table->sk_name); /* all strings were copied */
	const int r = is_whole ? service_new(&options, &db->store.service, NULL) : -ENOMEM;
	if (r) {
		close_store(&db->store);
		return problem_error(ret_problem, r, "table %s: %s", table->name, strerror(-r));
	}
	*ret = &db->store;
	return 0;
}

int store_dynamodb_open(const struct aws_settings *settings, struct http_shared *http,
	const char *table, struct store **ret, struct problem *ret_problem)
{
	const struct table ours = store_dynamodb_table(table);

	return store_dynamodb_open_table(settings, http, &ours, ret, ret_problem);
}
