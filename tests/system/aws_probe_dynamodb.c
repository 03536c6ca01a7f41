#include "aws_probe.h"
#include "store/dynamodb_request.h"
#include <stdlib.h>
#include <string.h>

static struct item_key key_of(const struct probe *probe)
{
	return (struct item_key){
		probe_argument(probe, 0), probe->table.sk_name ? probe_argument(probe, 1) : NULL};
}

static json_t *item_to_json(const struct item *item)
{
	struct text text = TEXT(1 << 20);
	text_add(&text, "{");
	for (size_t i = 0; i < item->count; i++)
		item_add_attribute(&text, &item->attributes[i]);
	text_add(&text, "}");
	json_t *json = json_loadb(text_string(&text), text.len, JSON_ALLOW_NUL, NULL);
	text_clear(&text);
	return json;
}

static enum outcome with_item(
	struct probe *probe, enum outcome outcome, enum outcome when, struct item *item)
{
	if (outcome == when)
		probe_set(probe, "item", item_to_json(item));
	item_clear(item);
	return outcome;
}

static enum outcome db_put(struct probe *probe, struct store_conn *conn)
{
	struct item item = {0}, present = {0};
	json_t *json = json_loads(probe_argument(probe, 2), 0, NULL);
	if (item_from_json(json, &item) < 0)
		probe_die("that is no item");
	json_decref(json);
	enum outcome outcome = dynamodb_write(conn, key_of(probe),
		&(struct item_write){.item = &item,
			.conditions = probe->conditions,
			.n_conditions = probe->n_conditions},
		&probe->limits, &present, &probe->problem);
	item_clear(&item);
	return with_item(probe, outcome, OUTCOME_REFUSED, &present);
}

static enum outcome db_update(struct probe *probe, struct store_conn *conn)
{
	struct item present = {0};
	enum outcome outcome = dynamodb_write(conn, key_of(probe),
		&(struct item_write){.changes = probe->changes,
			.n_changes = probe->n_changes,
			.conditions = probe->conditions,
			.n_conditions = probe->n_conditions},
		&probe->limits, &present, &probe->problem);
	return with_item(probe, outcome, OUTCOME_REFUSED, &present);
}

static enum outcome db_delete(struct probe *probe, struct store_conn *conn)
{
	struct item present = {0};
	enum outcome outcome = dynamodb_write(conn, key_of(probe),
		&(struct item_write){.removes = true,
			.conditions = probe->conditions,
			.n_conditions = probe->n_conditions},
		&probe->limits, &present, &probe->problem);
	return with_item(probe, outcome, OUTCOME_REFUSED, &present);
}

static enum outcome db_get(struct probe *probe, struct store_conn *conn)
{
	struct item item = {0};
	enum outcome outcome = dynamodb_get(
		conn, key_of(probe), !probe->weak, &probe->limits, &item, &probe->problem);
	return with_item(probe, outcome, OUTCOME_OK, &item);
}

static int take_item(void *arg, const struct found_item *found)
{
	probe_append(arg, "items",
		json_pack("[s s? i]", found->key.pk, found->key.sk, (int)found->item->count));
	return probe_wants_end(arg, "items");
}

/* many PK SK... */
static enum outcome db_many(struct probe *probe, struct store_conn *conn)
{
	size_t n = (size_t)probe->n_arguments - 1;
	struct item_key *keys = calloc(n, sizeof *keys);
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct item_key){probe->arguments[0], probe->arguments[i + 1]};
	enum outcome outcome = conn->store->ops->get_many(
		conn, keys, n, &probe->limits, take_item, probe, &probe->problem);
	free(keys);
	return outcome;
}

static enum outcome db_query(struct probe *probe, struct store_conn *conn)
{
	const struct store_range range = {.pk = probe_argument(probe, 0),
		.from = probe->from,
		.after = probe->after,
		.to = probe->to,
		.max_items = probe->most,
		.consistent = !probe->weak};
	bool more = false;
	enum outcome outcome = conn->store->ops->query(
		conn, &range, &probe->limits, take_item, probe, &more, &probe->problem);
	if (outcome == OUTCOME_OK)
		probe_set(probe, "more", json_boolean(more));
	return outcome;
}

static enum outcome db_create(struct probe *probe, struct store_conn *conn)
{
	return dynamodb_create_table(
		conn, &(struct table_terms){0}, &probe->limits, &probe->problem);
}

static enum outcome db_describe(struct probe *probe, struct store_conn *conn)
{
	struct dynamodb_shape shape;
	enum outcome outcome =
		dynamodb_describe_table(conn, &probe->limits, &shape, &probe->problem);
	if (outcome == OUTCOME_OK)
		probe_set(probe, "shape",
			json_pack("[s s s s# s#]", shape.status, shape.pk_name, shape.sk_name,
				&shape.pk_type, 1, &shape.sk_type, shape.sk_type ? 1 : 0));
	return outcome;
}

static enum outcome db_ttl(struct probe *probe, struct store_conn *conn)
{
	return dynamodb_enable_ttl(conn, probe_argument(probe, 0), &probe->limits, &probe->problem);
}

static enum outcome db_ttl_is(struct probe *probe, struct store_conn *conn)
{
	bool is_on = false;
	enum outcome outcome = dynamodb_describe_ttl(
		conn, probe_argument(probe, 0), &probe->limits, &is_on, &probe->problem);
	probe_set(probe, "on", json_boolean(is_on));
	return outcome;
}

/* statements PK SK...: one batch of an INSERT for each, and the answer to each. */
static enum outcome db_statements(struct probe *probe, struct store_conn *conn)
{
	struct dynamodb_conn *db = dynamodb_conn_of(conn);
	enum outcome answers[STATEMENTS_MAX];
	const size_t n = (size_t)probe->n_arguments - 1;
	dynamodb_batch_begin(db);
	for (size_t i = 0; i < n; i++) {
		struct text statement = TEXT(1 << 16);
		const struct item_key key = {probe->arguments[0], probe->arguments[i + 1]};
		statement_insert(&statement, db->table, key, &(const struct item){0});
		dynamodb_batch_add(db, &statement);
		text_clear(&statement);
	}
	enum outcome outcome =
		dynamodb_batch_execute(db, n, &probe->limits, answers, &probe->problem);
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i++)
		probe_append(probe, "answers", json_string(outcome_name(answers[i])));
	return outcome;
}

static const struct {
	const char *name;
	enum outcome (*run)(struct probe *probe, struct store_conn *conn);
} commands[] = {
	{"put", db_put},
	{"update", db_update},
	{"delete", db_delete},
	{"get", db_get},
	{"many", db_many},
	{"query", db_query},
	{"create", db_create},
	{"describe", db_describe},
	{"ttl", db_ttl},
	{"ttl-is", db_ttl_is},
	{"statements", db_statements},
};

static size_t find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].name, name) == 0)
			return i;
	probe_die("no such command");
}

void probe_dynamodb(struct probe *probe, const struct aws_settings *settings,
	struct http_shared *http, char **words)
{
	struct store *store;
	struct store_conn *conn;
	size_t command = find_command(words[2]);
	probe->table.name = words[1];
	if (store_dynamodb_open_table(settings, http, &probe->table, &store, &probe->problem) < 0 ||
		store_conn_new(store, &conn) < 0)
		probe_die("cannot open dynamodb");
	for (unsigned i = 0; i < probe->repeat; i++) {
		probe->result = json_object();
		enum outcome outcome = commands[command].run(probe, conn);
		probe_print(probe, outcome, store->service);
	}
	store_conn_free(conn);
	store_close(store);
}
