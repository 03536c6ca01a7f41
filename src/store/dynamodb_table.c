/* Tables: the calls about them, and making one for marks or for locks. init and doctor call it. A
 * table of another shape is refused, never changed. */
#include "aws/retry.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "store/dynamodb_request.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAP_FIRST_MS 20
#define NAP_MAX_MS   2000

/* Adds an object with two strings to an array. */
static void add_pair(struct text *body, const char *first, const char *first_value,
	const char *second, const char *second_value)
{
	text_add(body, body->len && body->data[body->len - 1] == '[' ? "{" : ",{");
	json_add_text(body, first, first_value);
	json_add_text(body, second, second_value);
	text_add_char(body, '}');
}

enum outcome dynamodb_create_table(struct store_conn *conn, const struct table_terms *terms,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	const struct table *table = db->table;
	struct text *body = dynamodb_begin(db);
	json_t *reply;
	const bool provisioned = terms->read_units || terms->write_units;
	json_add_text(body, "BillingMode", provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
	if (provisioned)
		text_addf(body,
			",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%" PRIu64
			",\"WriteCapacityUnits\":%" PRIu64 "}",
			/* DynamoDB refuses a capacity of 0, so a missing one is 1. */
			terms->read_units ? terms->read_units : 1,
			terms->write_units ? terms->write_units : 1);
	if (terms->tags && *terms->tags) {
		text_add(body, ",\"Tags\":[");
		for (const char *const *tag = terms->tags; tag[0] && tag[1]; tag += 2)
			add_pair(body, "Key", tag[0], "Value", tag[1]);
		text_add_char(body, ']');
	}
	text_add(body, ",\"AttributeDefinitions\":[");
	add_pair(body, "AttributeName", table->pk_name, "AttributeType", "S");
	if (table->sk_name)
		add_pair(body, "AttributeName", table->sk_name, "AttributeType",
			table->sk_is_number ? "N" : "S");
	text_add(body, "],\"KeySchema\":[");
	add_pair(body, "AttributeName", table->pk_name, "KeyType", "HASH");
	if (table->sk_name)
		add_pair(body, "AttributeName", table->sk_name, "KeyType", "RANGE");
	text_add_char(body, ']');
	enum outcome outcome =
		dynamodb_perform(db, DYNAMODB_CREATE_TABLE, limits, &reply, ret_problem);
	json_decref(reply);
	return outcome; /* REFUSED if the code is ResourceInUseException (classify()) */
}

/* Returns the type of a key attribute, 'S', 'N' or 'B', or NUL if it is not defined. */
static char type_of(const json_t *definitions, const char *name)
{
	for (size_t i = 0; i < json_array_size(definitions); i++) {
		const json_t *definition = json_array_get(definitions, i);
		if (strcmp(json_text(definition, "AttributeName"), name) == 0)
			return json_text(definition, "AttributeType")[0];
	}
	return '\0';
}

/* Reads whether a table is a global one. DescribeTable names its replicas in other Regions, and for
 * global tables of 2017 only their version. */
static void read_replicas(const json_t *table, struct dynamodb_shape *ret)
{
	const json_t *replicas = json_object_get(table, "Replicas");
	struct text names = TEXT(sizeof ret->replicas - 1);
	for (size_t i = 0; i < json_array_size(replicas); i++)
		text_addf(&names, "%s%s", i ? ", " : "",
			quote(json_text(json_array_get(replicas, i), "RegionName")).text);
	if (!names.len && strcmp(json_text(table, "GlobalTableVersion"), "2017.11.29") == 0)
		text_add(&names, "other Regions");
	snprintf(ret->replicas, sizeof ret->replicas, "%s",
		names.error ? "many Regions" : text_string(&names));
	text_clear(&names);
	ret->is_split =
		*ret->replicas && strcmp(json_text(table, "MultiRegionConsistency"), "STRONG") != 0;
}

/* Reads the status, the keys and the replicas of a table from the reply to DescribeTable. 0 or
 * -EBADMSG. */
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
	read_replicas(table, &shape);
	*ret = shape;
	return 0;
}

enum outcome dynamodb_describe_table(struct store_conn *conn, const struct call_limits *limits,
	struct dynamodb_shape *ret, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	json_t *reply;
	dynamodb_begin(db);
	enum outcome outcome =
		dynamodb_perform(db, DYNAMODB_DESCRIBE_TABLE, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK && read_shape(reply, ret) < 0)
		outcome = dynamodb_not_understood(-EBADMSG, ret_problem);
	json_decref(reply);
	/* For every other request, an absent table is OUTCOME_SETUP. */
	if (outcome != OUTCOME_OK && strcmp(ret_problem->code, "ResourceNotFoundException") == 0)
		outcome = OUTCOME_ABSENT;
	return outcome;
}

enum outcome dynamodb_enable_ttl(struct store_conn *conn, const char *attribute,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	json_t *reply;
	struct text *body = dynamodb_begin(db);
	json_add_member(body, "TimeToLiveSpecification");
	text_add(body, "{\"Enabled\":true");
	json_add_text(body, "AttributeName", attribute);
	text_add_char(body, '}');
	enum outcome outcome =
		dynamodb_perform(db, DYNAMODB_ENABLE_TTL, limits, &reply, ret_problem);
	json_decref(reply);
	/* Time to live that is on already is OK. DynamoDB reports it only by its message, not by a
	 * code. */
	if (outcome != OUTCOME_OK && strcmp(ret_problem->code, "ValidationException") == 0 &&
		strstr(ret_problem->text, "already enabled"))
		outcome = OUTCOME_OK;
	return outcome;
}

enum outcome dynamodb_describe_ttl(struct store_conn *conn, const char *attribute,
	const struct call_limits *limits, bool *ret_on, struct problem *ret_problem)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	json_t *reply;
	dynamodb_begin(db);
	enum outcome outcome =
		dynamodb_perform(db, DYNAMODB_DESCRIBE_TTL, limits, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		const json_t *ttl = json_object_get(reply, "TimeToLiveDescription");
		const char *status = json_text(ttl, "TimeToLiveStatus");
		bool is_on = strcmp(status, "ENABLED") == 0 || strcmp(status, "ENABLING") == 0;
		*ret_on = is_on && strcmp(json_text(ttl, "AttributeName"), attribute) == 0;
	}
	json_decref(reply);
	return outcome;
}

/* One table_make() under way. */
struct creation {
	struct store_conn *conn;
	const struct table_making *making;
	struct call_limits limits;
	uint64_t nap_ms;
	struct table_made made;
};

/* Describes one of a table's keys for a message. The name is "" if the table has no key of this
 * kind. */
static void format_key(char *ret, size_t size, const char *name, char type, const char *kind)
{
	if (*name)
		snprintf(ret, size, "%s \"%.100s\" (%c)", kind, name, type);
	else
		snprintf(ret, size, "no %s", kind);
}

enum outcome table_check_shape(const struct table *table, const char *what,
	const struct dynamodb_shape *shape, struct problem *ret_problem)
{
	const char *sk_name = table->sk_name ? table->sk_name : "";
	const char sk_type = !table->sk_name ? '\0' : table->sk_is_number ? 'N' : 'S';
	char hash[160], range[160], needed_range[160];

	const bool has_pk = strcmp(shape->pk_name, table->pk_name) == 0 && shape->pk_type == 'S';
	const bool has_sk = strcmp(shape->sk_name, sk_name) == 0 && shape->sk_type == sk_type;
	if (has_pk && has_sk)
		return OUTCOME_OK;
	format_key(hash, sizeof hash, shape->pk_name, shape->pk_type, "partition key");
	format_key(range, sizeof range, shape->sk_name, shape->sk_type, "sort key");
	format_key(needed_range, sizeof needed_range, sk_name, sk_type, "sort key");
	return outcome_error(ret_problem, OUTCOME_SETUP,
		"table %s is not one for %s: it has %s and %s, %s need partition key \"%s\" (S) "
		"and %s; give another table name",
		table->name, what, hash, range, what, table->pk_name, needed_range);
}

/* Waits before the table is described again, a little longer each time. Fails if the wait would
 * outlive the deadline. Nothing else ends the wait, since no abandon() is set in these limits. */
static enum outcome wait_while(
	struct creation *creation, const char *status, struct problem *ret_problem)
{
	enum outcome outcome = wait_within(&creation->limits, creation->nap_ms, ret_problem);

	if (outcome != OUTCOME_OK)
		return outcome_error(ret_problem, OUTCOME_SETUP,
			"table %s is still %s after %llu s: run init again later",
			creation->making->table.name, status,
			(unsigned long long)creation->making->timeout_ms / 1000);
	creation->nap_ms = creation->nap_ms * 2 < NAP_MAX_MS ? creation->nap_ms * 2 : NAP_MAX_MS;
	return OUTCOME_OK;
}

/* Creates the table if it is absent, and waits until it can be used. OK only if it has the required
 * keys. */
static enum outcome make_ready(struct creation *creation, struct problem *ret_problem)
{
	const struct table_making *making = creation->making;
	enum outcome outcome = OUTCOME_OK;

	while (outcome == OUTCOME_OK) {
		struct dynamodb_shape *shape = &creation->made.shape;
		outcome = dynamodb_describe_table(
			creation->conn, &creation->limits, shape, ret_problem);
		if (outcome == OUTCOME_ABSENT) {
			outcome = dynamodb_create_table(
				creation->conn, &making->terms, &creation->limits, ret_problem);
			creation->made.created |= outcome == OUTCOME_OK;
			/* REFUSED: another process is creating the table, or the table exists but
			 * is not visible yet. */
			if (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED)
				outcome = wait_while(creation, "not visible", ret_problem);
			continue;
		}
		if (outcome != OUTCOME_OK)
			return outcome;
		/* The keys of a table that is being deleted do not matter: once it is absent, a new
		 * one is created. */
		const bool is_leaving = strcmp(shape->status, "DELETING") == 0;
		if (!is_leaving)
			outcome =
				table_check_shape(&making->table, making->what, shape, ret_problem);
		const bool is_usable = strcmp(shape->status, "ACTIVE") == 0 ||
				       strcmp(shape->status, "UPDATING") == 0;
		if (outcome != OUTCOME_OK || is_usable)
			return outcome;
		if (is_leaving || strcmp(shape->status, "CREATING") == 0)
			outcome = wait_while(creation, shape->status, ret_problem);
		else
			outcome = outcome_error(ret_problem, OUTCOME_SETUP,
				"table %s cannot be used: it is %s", making->table.name,
				shape->status);
	}
	return outcome;
}

enum outcome table_make(const struct aws_settings *aws, struct http_shared *http,
	const struct table_making *making, struct table_made *ret, struct problem *ret_problem)
{
	struct creation creation = {.making = making,
		.limits = {.deadline_ns = clock_boot_ns() + making->timeout_ms * NS_PER_MS},
		.nap_ms = NAP_FIRST_MS};
	struct store *store = NULL;
	enum outcome outcome = OUTCOME_LOCAL;

	if (store_dynamodb_open_table(aws, http, &making->table, &store, ret_problem))
		return OUTCOME_LOCAL;
	if (store_conn_new(store, &creation.conn))
		problem_set(ret_problem, "table %s: out of memory", making->table.name);
	else
		outcome = make_ready(&creation, ret_problem);
	const struct dynamodb_shape *shape = &creation.made.shape;
	/* DynamoDB has no time to live for a global table of strong consistency. */
	const bool is_strong_global = *shape->replicas && !shape->is_split;
	const bool may_have_ttl = !is_strong_global;
	if (outcome == OUTCOME_OK && making->ttl_name && may_have_ttl) {
		outcome = dynamodb_enable_ttl(
			creation.conn, making->ttl_name, &creation.limits, ret_problem);
		creation.made.has_ttl = outcome == OUTCOME_OK;
		if (outcome == OUTCOME_UNSUPPORTED)
			outcome = OUTCOME_OK;
	}
	if (outcome == OUTCOME_OK)
		*ret = creation.made;
	store_conn_free(creation.conn);
	store_close(store);
	return outcome;
}
