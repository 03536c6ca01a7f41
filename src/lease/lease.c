/* A lease as its holder uses it: begun, renewed at once, waited for and stopped. Sessions and locks
 * hold leases. All else happens in lease_keeper.c. */
#include "lease/lease.h"
#include "base/clock.h"
#include "base/wait_until.h"
#include "lease/lease_keeper.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPREAD_FROM 8 /* leases from which on their first heartbeats are spread */

int lease_new(struct lease_keeper *keeper, const struct lease_options *options, struct lease **ret)
{
	struct lease *lease = calloc(1, sizeof *lease);
	if (!lease)
		return -ENOMEM;
	lease->keeper = keeper;
	lease->options = *options;
	atomic_store(&lease->lease_ns, options->lease_ns);
	*ret = lease;
	return 0;
}

const char *lease_loss(const struct lease *lease)
{
	return lease_is_lost(lease) ? lease->loss : "";
}

const char *lease_new_owner(const struct lease *lease)
{
	return lease_is_lost(lease) ? lease->owner : "";
}

const char *lease_row_version(const struct lease *lease, const char **ret_or)
{
	*ret_or = lease->pending;
	return lease->version;
}

/* Leases that start together should not send their heartbeats together. */
static uint64_t first_due_ns(const struct lease *lease, uint64_t sent_ns)
{
	const uint64_t period = lease->options.heartbeat_ns;
	if (lease->keeper->locked.count < SPREAD_FROM)
		return sent_ns + period;
	return sent_ns + random_below(period);
}

int lease_start(struct lease *lease, const char *version, uint64_t sent_ns)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	const int error = keeper_run_locked(keeper);
	if (!error) {
		keeper->locked.count++;
		snprintf(lease->version, sizeof lease->version, "%s", version);
		if (sent_ns)
			atomic_store(&lease->ends_ns, sent_ns + lease->options.lease_ns);
		lease->locked.beats = lease->options.heartbeat_ns && sent_ns;
		lease->locked.due_ns = first_due_ns(lease, sent_ns);
		keeper_place_locked(keeper, lease);
	}
	uv_mutex_unlock(&keeper->mutex);
	return error;
}

/* Makes the lease busy for this thread; false if it is lost or stopping. */
static bool occupy(struct lease *lease)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	wait_until(!lease->locked.busy || atomic_load(&lease->stopping), .told = &keeper->changed,
		.mutex = &keeper->mutex);
	const bool ok = !lease_is_lost(lease) && !atomic_load(&lease->stopping);
	lease->locked.busy |= ok;
	uv_mutex_unlock(&keeper->mutex);
	return ok;
}

enum outcome lease_renew(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, const struct call_limits *limits,
	struct problem *ret_problem)
{
	enum outcome o = OUTCOME_TRANSIENT;
	if (!occupy(lease))
		return OUTCOME_REFUSED;
	for (int i = 0; i < 3 && o != OUTCOME_OK && o != OUTCOME_REFUSED; i++)
		o = lease_beat(lease, conn, more, limits, ret_problem);
	uv_mutex_lock(&lease->keeper->mutex);
	lease->locked.busy = false;
	lease->locked.beats = lease->options.heartbeat_ns != 0;
	lease_schedule_locked(lease);
	uv_cond_broadcast(&lease->keeper->changed);
	uv_mutex_unlock(&lease->keeper->mutex);
	return o;
}

static bool is_good_for(const struct lease *lease, uint64_t need_ns)
{
	return clock_boot_ns() + need_ns <= lease_ends_ns(lease);
}

bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg)
{
	struct lease_keeper *keeper = lease->keeper;
	bool goes_on = true;
	if (!is_good_for(lease, need_ns)) {
		uv_mutex_lock(&keeper->mutex);
		goes_on = wait_until(lease_is_lost(lease) || is_good_for(lease, need_ns),
				  .told = &keeper->changed, .mutex = &keeper->mutex,
				  .abandon = abandon, .arg = arg) == WAIT_MET;
		uv_mutex_unlock(&keeper->mutex);
	}
	return goes_on && !lease_is_lost(lease);
}

void lease_stop(struct lease *lease)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	const bool first = !atomic_exchange(&lease->stopping, true);
	keeper_unqueue_locked(lease);
	uv_cond_broadcast(&keeper->changed);
	wait_until(!lease->locked.busy, .told = &keeper->changed, .mutex = &keeper->mutex);
	keeper_remove_locked(keeper, lease);
	if (first && *lease->version)
		keeper->locked.count--;
	uv_mutex_unlock(&keeper->mutex);
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	lease_stop(lease);
	free(lease);
}
