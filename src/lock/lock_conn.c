/* The connections of a client, kept for the next call, and how long a call may take. */
#include "lock/lock_client.h"

struct store_conn *lock_conn_get(struct s3once_locks *locks)
{
	struct store_conn *conn = NULL;
	uv_mutex_lock(&locks->mutex);
	if (locks->locked.n_idle)
		conn = locks->locked.idle[--locks->locked.n_idle];
	uv_mutex_unlock(&locks->mutex);
	if (!conn && store_conn_new(locks->store, &conn))
		return NULL;
	return conn;
}

void lock_conn_put(struct s3once_locks *locks, struct store_conn *conn)
{
	uv_mutex_lock(&locks->mutex);
	const bool keep = locks->locked.n_idle < LOCK_CONNS;
	if (keep)
		locks->locked.idle[locks->locked.n_idle++] = conn;
	uv_mutex_unlock(&locks->mutex);
	if (!keep)
		store_conn_free(conn);
}

static bool is_closed(void *arg)
{
	return atomic_load(&((struct s3once_locks *)arg)->closed);
}

struct call_limits lock_limits(struct s3once_locks *locks, uint64_t deadline_ns)
{
	return (struct call_limits){
		.deadline_ns = deadline_ns, .abandon = is_closed, .abandon_arg = locks};
}
