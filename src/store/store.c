#include "store/store.h"

int store_conn_new(struct store *store, struct store_conn **ret)
{
	return store->ops->conn_new(store, ret);
}

void store_conn_free(struct store_conn *conn)
{
	if (conn)
		conn->store->ops->conn_free(conn);
}

void store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
}

enum outcome store_sync(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	const struct store_ops *ops = conn->store->ops;
	return ops->sync ? ops->sync(conn, limits, ret_problem) : OUTCOME_OK;
}

int64_t store_time_s(const struct store *store)
{
	return store->ops->time_s(store);
}
