#include "upload/batches_learner.h"
#include "base/thread.h"

static void learn(void *arg)
{
	struct batches_learner *learner = arg;
	settings_use_batches(learner->conn, &learner->limits, &learner->settings);
}

void batches_learner_begin(struct batches_learner *learner, struct store_conn *conn,
	const struct call_limits *limits, const struct store_settings *settings)
{
	*learner = (struct batches_learner){.limits = *limits, .settings = *settings};
	const bool is_known = *settings->batches || !conn->store->ops->try_batches;
	if (!is_known && !store_conn_new(conn->store, &learner->conn)) {
		learner->is_at_work = !thread_start(&learner->thread, learn, learner);
		if (learner->is_at_work)
			return;
		store_conn_free(learner->conn);
	}
	settings_use_batches(conn, limits, &learner->settings);
}

void batches_learner_end(struct batches_learner *learner)
{
	if (!learner->is_at_work)
		return;
	uv_thread_join(&learner->thread);
	store_conn_free(learner->conn);
	learner->is_at_work = false;
}
