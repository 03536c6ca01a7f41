/* The store for many hosts: a table of DynamoDB, its connections, and the operations of store.h on
 * it, of which each is a function of dynamodb_request.h. store.c and the locks open it. */
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
