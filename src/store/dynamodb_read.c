/* Reading several items: by their keys, by a range, or all of a table. The store calls it. Keys
 * that a reply leaves unprocessed are asked for again, and an empty page is not taken for the last
 * one. */
#include "aws/retry.h"
#include "base/clock.h"
#include "store/dynamodb_request.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_KEYS_MAX 100
/* After the patience has ended, so many rounds in a row may leave all keys unprocessed. */
#define IDLE_ROUNDS_MAX 8

/* Adds the RequestItems of n keys. */
static void add_batch(
	struct text *body, const struct table *table, const struct item_key *keys, size_t n)
{
	text_add_char(body, '{');
	dynamodb_member(body, table->name);
	text_add(body, "{\"Keys\":[");
	for (size_t i = 0; i < n; i++) {
		text_add(body, i ? "," : "");
		dynamodb_add_key(body, table, keys[i]);
	}
	text_add(body, "]}}");
}

struct batch {
	struct item_visit visit;
	char *unprocessed;    /* the RequestItems to send next, owned; NULL: all were answered */
	size_t left;          /* keys that were not answered yet */
	unsigned idle_rounds; /* rounds since `left` last became less */
	uint64_t answered_ns; /* when that was */
};

static enum outcome take_batch(
	struct batch *batch, const json_t *reply, struct problem *ret_problem)
{
	const json_t *items =
		json_object_get(json_object_get(reply, "Responses"), batch->visit.table->name);
	const json_t *unprocessed = json_object_get(reply, "UnprocessedKeys");
	free(batch->unprocessed);
	batch->unprocessed = NULL;
	enum outcome outcome = OUTCOME_OK;
	for (size_t i = 0; i < json_array_size(items) && outcome == OUTCOME_OK; i++) {
		struct item item = {0};
		const int error = item_from_json(json_array_get(items, i), &item);
		outcome = dynamodb_visit(&batch->visit, error, &item, ret_problem);
	}
	if (outcome != OUTCOME_OK || json_object_size(unprocessed) == 0)
		return outcome;
	size_t left = json_array_size(
		json_object_get(json_object_get(unprocessed, batch->visit.table->name), "Keys"));
	batch->idle_rounds++;
	if (left && left < batch->left) {
		batch->left = left;
		batch->idle_rounds = 0;
		batch->answered_ns = clock_boot_ns();
	}
	batch->unprocessed = json_dumps(unprocessed, JSON_COMPACT);
	return batch->unprocessed ? OUTCOME_OK : dynamodb_not_understood(-ENOMEM, ret_problem);
}

/* Unprocessed keys are asked for again. That is at once as long as some are answered, since the
 * reply was full then; otherwise as after throttling. */
static enum outcome wait_for_keys(
	const struct batch *batch, const struct call_limits *limits, struct problem *ret_problem)
{
	const uint64_t patience_ns = limits ? limits->patience_ms * NS_PER_MS : 0;
	if (batch->idle_rounds == 0)
		return OUTCOME_OK;
	if (batch->idle_rounds > IDLE_ROUNDS_MAX &&
		clock_boot_ns() - batch->answered_ns >= patience_ns) {
		problem_set(ret_problem, "the table is throttled: it leaves keys unprocessed");
		return OUTCOME_THROTTLED;
	}
	uint64_t ms = retry_backoff_ms(RETRY_THROTTLE, false, batch->idle_rounds - 1, 0);
	return wait_within(limits, ms, ret_problem);
}

static enum outcome get_batch(struct dynamodb_conn *db, struct batch *batch,
	const struct item_key *keys, size_t n, const struct call_limits *limits,
	struct problem *ret_problem)
{
	enum outcome outcome;
	batch->left = n;
	batch->idle_rounds = 0;
	batch->answered_ns = clock_boot_ns();
	do {
		json_t *reply;
		struct text *body = dynamodb_begin_bare(db);
		dynamodb_member(body, "RequestItems");
		if (batch->unprocessed)
			text_add(body, batch->unprocessed);
		else
			add_batch(body, batch->visit.table, keys, n);
		outcome = dynamodb_perform(db, DYNAMODB_GET_MANY, limits, &reply, ret_problem);
		if (outcome == OUTCOME_OK)
			outcome = take_batch(batch, reply, ret_problem);
		json_decref(reply);
		if (outcome == OUTCOME_OK && batch->unprocessed)
			outcome = wait_for_keys(batch, limits, ret_problem);
	} while (outcome == OUTCOME_OK && batch->unprocessed);
	free(batch->unprocessed);
	batch->unprocessed = NULL;
	return outcome;
}

enum outcome dynamodb_get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	struct batch batch = {.visit = {db->table, each, arg}};
	enum outcome outcome = OUTCOME_OK;
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i += BATCH_KEYS_MAX) {
		size_t count = n - i < BATCH_KEYS_MAX ? n - i : BATCH_KEYS_MAX;
		outcome = get_batch(db, &batch, keys + i, count, limits, ret_problem);
	}
	return outcome;
}

static bool given(const char *s)
{
	return s && *s; /* no key is empty, and DynamoDB refuses an empty one */
}

/* DynamoDB allows one condition on the sort key, and BETWEEN includes its lower bound. If that item
 * is not wanted, it is left out when it comes. */
static const char *sort_key_condition(const struct store_range *range)
{
	if (given(range->from) && range->to)
		return " AND #s BETWEEN :f AND :t";
	if (given(range->from))
		return range->after ? " AND #s > :f" : " AND #s >= :f";
	return range->to ? " AND #s <= :t" : "";
}

static bool has_unwanted_first(const struct store_range *range)
{
	return given(range->from) && range->to && range->after;
}

static void add_string_value(struct text *body, const char *name, const char *value)
{
	dynamodb_member(body, name);
	item_add_value(body, VALUE_STRING, value, strlen(value));
}

/* `start` is ExclusiveStartKey as JSON text, or NULL. */
static void add_query(struct text *body, const struct table *table, const struct store_range *range,
	const char *start)
{
	const char *sort = sort_key_condition(range);
	dynamodb_member(body, "KeyConditionExpression");
	text_addf(body, "\"#p = :p%s\"", sort);
	dynamodb_member(body, "ExpressionAttributeNames");
	text_add_char(body, '{');
	dynamodb_member(body, "#p");
	json_add_string(body, table->pk_name, strlen(table->pk_name));
	if (*sort) {
		dynamodb_member(body, "#s");
		json_add_string(body, table->sk_name, strlen(table->sk_name));
	}
	text_add_char(body, '}');
	dynamodb_member(body, "ExpressionAttributeValues");
	text_add_char(body, '{');
	add_string_value(body, ":p", range->pk);
	if (given(range->from))
		add_string_value(body, ":f", range->from);
	if (range->to)
		add_string_value(body, ":t", range->to);
	text_add_char(body, '}');
	dynamodb_member(body, "ConsistentRead");
	text_add(body, range->consistent ? "true" : "false");
	if (range->most) {
		dynamodb_member(body, "Limit");
		text_addf(body, "%u", range->most + has_unwanted_first(range));
	}
	if (start) {
		dynamodb_member(body, "ExclusiveStartKey");
		text_add(body, start);
	}
}

struct query {
	const struct store_range *range;
	item_visitor *each;
	void *arg;
	size_t visited;
	bool is_cut;
};

static int visit_wanted(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct query *query = arg;
	const struct store_range *range = query->range;
	if (has_unwanted_first(range) && strcmp(sk, range->from) == 0)
		return 0;
	if (range->most && query->visited == range->most) {
		query->is_cut = true; /* one more was asked for, in case the first is not wanted */
		return 0;
	}
	query->visited++;
	return query->each(query->arg, pk, sk, item);
}

/* Sends the request for a page, which was begun. *start becomes where the next one begins, or NULL
 * after the last one. */
static enum outcome perform_page(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, const struct item_visit *visit, char **start,
	struct problem *ret_problem)
{
	json_t *reply;
	enum outcome outcome = dynamodb_perform_page(db, kind, limits, visit, &reply, ret_problem);
	const json_t *last = json_object_get(reply, "LastEvaluatedKey");
	free(*start);
	*start = NULL;
	if (outcome == OUTCOME_OK && json_is_object(last)) {
		*start = json_dumps(last, JSON_COMPACT);
		if (!*start)
			outcome = dynamodb_not_understood(-ENOMEM, ret_problem);
	}
	json_decref(reply);
	return outcome;
}

static enum outcome query_page(struct dynamodb_conn *db, struct query *query,
	const struct call_limits *limits, char **start, struct problem *ret_problem)
{
	const struct item_visit visit = {db->table, visit_wanted, query};
	add_query(dynamodb_begin(db), db->table, query->range, *start);
	return perform_page(db, DYNAMODB_QUERY, limits, &visit, start, ret_problem);
}

/* DynamoDB refuses a range whose end is before its beginning. */
static bool is_empty_range(const struct store_range *range)
{
	if (!range->to)
		return false;
	int order = given(range->from) ? strcmp(range->from, range->to) : -1;
	return !*range->to || order > 0 || (order == 0 && range->after);
}

enum outcome dynamodb_query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, item_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	if (is_empty_range(range)) {
		*ret_more = false;
		return OUTCOME_OK;
	}
	struct query query = {.range = range, .each = each, .arg = arg};
	char *start = NULL;
	enum outcome outcome;
	do /* a page may be empty and not the last: the caller could not go on from it */
		outcome = query_page(dynamodb_conn_of(conn), &query, limits, &start, ret_problem);
	while (outcome == OUTCOME_OK && start && query.visited == 0);
	if (outcome == OUTCOME_OK)
		*ret_more = start || query.is_cut;
	free(start);
	return outcome;
}

static enum outcome scan_page(struct dynamodb_conn *db, const struct item_visit *visit,
	const struct call_limits *limits, char **start, struct problem *ret_problem)
{
	struct text *body = dynamodb_begin(db);
	dynamodb_member(body, "ConsistentRead");
	text_add(body, "true");
	if (*start) {
		dynamodb_member(body, "ExclusiveStartKey");
		text_add(body, *start);
	}
	return perform_page(db, DYNAMODB_SCAN, limits, visit, start, ret_problem);
}

enum outcome dynamodb_scan(struct store_conn *conn, const struct call_limits *limits,
	item_visitor *each, void *arg, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	const struct item_visit visit = {db->table, each, arg};
	char *start = NULL;
	enum outcome outcome;
	do
		outcome = scan_page(db, &visit, limits, &start, ret_problem);
	while (outcome == OUTCOME_OK && start);
	free(start);
	return outcome;
}
