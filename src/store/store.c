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

int64_t store_time_s(const struct store *store)
{
	return store->ops->time_s(store);
}
