/* The store for many hosts: the operations of store.h on a table of DynamoDB. store.c and the locks
 * open it. Writes go through the batches; all else is one call of dynamodb.h. */
#include "store/dynamodb_batch.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dynamodb_store {
	struct store store;
	struct dynamodb *db;
	char *name, *pk_name, *sk_name;
	struct table table;
	struct batches batches;
};

struct dynamodb_store_conn {
	struct store_conn conn;
	struct dynamodb_conn *db;
	const struct table *table;
	struct batch_ticket ticket;
};

struct table store_dynamodb_table(const char *name)
{
	return (struct table){.name = name, .pk_name = "pk", .sk_name = "sk"};
}

static struct dynamodb_store *store_of(const struct store *store)
{
	return (struct dynamodb_store *)(uintptr_t)store;
}

static struct dynamodb_store_conn *conn_of(struct store_conn *conn)
{
	return (struct dynamodb_store_conn *)conn;
}

static int conn_new(struct store *store, struct store_conn **ret)
{
	struct dynamodb_store_conn *conn = calloc(1, sizeof *conn);
	int r = conn ? batch_ticket_init(&conn->ticket) : -ENOMEM;

	if (!r && (r = dynamodb_conn_new(store_of(store)->db, &conn->db)))
		batch_ticket_clear(&conn->ticket);
	if (r) {
		free(conn);
		return r;
	}
	conn->conn.store = store;
	conn->table = &store_of(store)->table;
	*ret = &conn->conn;
	return 0;
}

static void conn_free(struct store_conn *conn)
{
	dynamodb_conn_free(conn_of(conn)->db);
	batch_ticket_clear(&conn_of(conn)->ticket);
	free(conn);
}

static enum outcome write_item(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	static const struct call_limits none;
	const struct batch_write one = {.db = conn_of(conn)->db,
		.table = conn_of(conn)->table,
		.key = key,
		.what = write,
		.limits = limits ? limits : &none,
		.ret = ret,
		.ret_problem = ret_problem};

	return batches_write(&store_of(conn->store)->batches, &conn_of(conn)->ticket, &one);
}

static enum outcome get(struct store_conn *conn, struct item_key key, bool consistent,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem)
{
	return dynamodb_get(
		conn_of(conn)->db, conn_of(conn)->table, key, consistent, limits, ret, ret_problem);
}

static enum outcome get_many(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, item_visitor *each, void *arg,
	struct problem *ret_problem)
{
	return dynamodb_get_many(
		conn_of(conn)->db, conn_of(conn)->table, keys, n, limits, each, arg, ret_problem);
}

static enum outcome query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, item_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	return dynamodb_query(conn_of(conn)->db, conn_of(conn)->table, range, limits, each, arg,
		ret_more, ret_problem);
}

static enum outcome scan(struct store_conn *conn, const struct call_limits *limits,
	item_visitor *each, void *arg, struct problem *ret_problem)
{
	return dynamodb_scan(
		conn_of(conn)->db, conn_of(conn)->table, limits, each, arg, ret_problem);
}

static enum outcome try_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem)
{
	return dynamodb_batches_probe(
		conn_of(conn)->db, conn_of(conn)->table, pk, limits, ret_how, ret_problem);
}

static void use_batches(struct store *store, const char *how)
{
	enum dynamodb_dialect dialect;

	if (dynamodb_batches_dialect(how, &dialect))
		batches_begin(&store_of(store)->batches, dialect);
}

static int64_t time_s(const struct store *store)
{
	return service_time_s(dynamodb_service(store_of(store)->db));
}

static const char *kind(const struct store *store, size_t i, unsigned long *ret_count)
{
	return service_kind(dynamodb_service(store_of(store)->db), i, ret_count);
}

static unsigned cuts(const struct store *store)
{
	return service_cuts(dynamodb_service(store_of(store)->db));
}

static void close_store(struct store *store)
{
	struct dynamodb_store *own = store_of(store);

	dynamodb_close(own->db);
	batches_destroy(&own->batches);
	free(own->name);
	free(own->pk_name);
	free(own->sk_name);
	free(own);
}

static const struct store_ops dynamodb_ops = {
	.conn_new = conn_new,
	.conn_free = conn_free,
	.write = write_item,
	.get = get,
	.get_many = get_many,
	.query = query,
	.scan = scan,
	.try_batches = try_batches,
	.use_batches = use_batches,
	.time_s = time_s,
	.kind = kind,
	.cuts = cuts,
	.close = close_store,
};

int store_dynamodb_open_table(const struct aws_settings *settings, struct http_shared *http,
	const struct table *table, struct store **ret, struct problem *ret_problem)
{
	struct dynamodb_store *store = calloc(1, sizeof *store);
	int r = store ? batches_init(&store->batches) : -ENOMEM;

	if (r) {
		free(store);
		problem_set(ret_problem, "table %s: %s", table->name, strerror(-r));
		return r;
	}
	r = -ENOMEM;
	store->store.ops = &dynamodb_ops;
	store->name = strdup(table->name);
	store->pk_name = strdup(table->pk_name);
	store->sk_name = table->sk_name ? strdup(table->sk_name) : NULL;
	store->table =
		(struct table){store->name, store->pk_name, store->sk_name, table->sk_is_number};
	if (store->name && store->pk_name && !store->sk_name == !table->sk_name)
		r = dynamodb_open(settings, http, &store->db);
	if (r) {
		problem_set(ret_problem, "table %s: %s", table->name, strerror(-r));
		close_store(&store->store);
		return r;
	}
	*ret = &store->store;
	return 0;
}

int store_dynamodb_open(const struct aws_settings *settings, struct http_shared *http,
	const char *table, struct store **ret, struct problem *ret_problem)
{
	const struct table ours = store_dynamodb_table(table);

	return store_dynamodb_open_table(settings, http, &ours, ret, ret_problem);
}
