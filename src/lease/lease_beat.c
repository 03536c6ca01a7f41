/* Renewing a lease: one heartbeat, what its answer means, and when the next one is due. */
#include "base/clock.h"
#include "lease/leases.h"
#include <stdio.h>
#include <string.h>

#define TRY_LEAST_NS (NS_PER_S / 2)

uint64_t lease_ends_ns(const struct lease *lease)
{
	return atomic_load(&lease->ends_ns);
}

uint64_t lease_length_ns(const struct lease *lease)
{
	return atomic_load(&lease->lease_ns);
}

bool lease_is_lost(const struct lease *lease)
{
	return atomic_load(&lease->lost);
}

void lease_version(const struct lease_options *options, char ret[static LEASE_VERSION_MAX])
{
	char random[ID_CHARS + 1];
	random_id(random);
	if (options->version_is_fixed)
		snprintf(ret, LEASE_VERSION_MAX, "%s", options->id);
	else if (options->id)
		snprintf(ret, LEASE_VERSION_MAX, "%s.%.16s", options->id, random);
	else
		snprintf(ret, LEASE_VERSION_MAX, "%s", random);
}

void lease_tell_locked(
	struct lease *lease, enum lease_event event, const char *text, const char *owner)
{
	if (lease->options.ops->tell && !atomic_load(&lease->stopping))
		lease->options.ops->tell(lease->options.arg, event, text, owner);
}

/* The row is ours with the pending version, which was sent at sent_ns. */
static void renewed(struct lease *lease, uint64_t sent_ns)
{
	struct leases *leases = lease->keeper;
	memcpy(lease->version, lease->pending, sizeof lease->version);
	*lease->pending = 0;
	lease->failures = 0;
	uv_mutex_lock(&leases->mutex);
	atomic_store(&lease->lease_ns, lease->pending_lease_ns);
	atomic_store(&lease->ends_ns, sent_ns + lease->pending_lease_ns);
	if (lease->locked.suspected)
		lease_tell_locked(lease, LEASE_RECOVERED, "the lease is renewed", "");
	lease->locked.suspected = lease->locked.expired = false;
	uv_cond_broadcast(&leases->changed);
	uv_mutex_unlock(&leases->mutex);
}

static void lose(struct lease *lease, const char *why, const char *owner)
{
	uv_mutex_lock(&lease->keeper->mutex);
	snprintf(lease->loss, sizeof lease->loss, "%s", why);
	snprintf(lease->owner, sizeof lease->owner, "%s", owner);
	atomic_store(&lease->lost, true);
	lease_tell_locked(lease, LEASE_LOST, why, owner);
	uv_cond_broadcast(&lease->keeper->changed);
	uv_mutex_unlock(&lease->keeper->mutex);
}

/* The row as it is refuses our version: it is ours all the same if it holds one that we sent. */
static enum outcome look_at_lease_row(struct lease *lease, const struct item *row)
{
	char why[LEASE_TEXT_MAX] = "", owner[LEASE_TEXT_MAX] = "";
	const char *version = lease->options.ops->whose(lease->options.arg, row, why, owner);
	if (version && strcmp(version, lease->pending) == 0) {
		renewed(lease, lease->pending_sent_ns);
		return OUTCOME_OK;
	}
	if (version && strcmp(version, lease->version) == 0)
		return OUTCOME_TRANSIENT; /* it changed between the refusal and the look */
	lose(lease, why, owner);
	return OUTCOME_REFUSED;
}

static bool is_beat_over(void *arg)
{
	return atomic_load(&((struct lease *)arg)->stopping);
}

/* Short at first, so that one that hangs is sent anew long before the lease is in danger; longer
 * for a store that is slow. Where nothing else helps, two slow requests have to fit in: a store may
 * have to be asked what it has refused. */
static uint64_t patience_ns(const struct lease *lease)
{
	const uint64_t lease_ns = lease_length_ns(lease);
	const unsigned share = lease->failures < 2 ? 10 : lease->failures < 4 ? 4 : 2;
	uint64_t ns = lease_ns / share;
	if (ns < TRY_LEAST_NS)
		ns = TRY_LEAST_NS;
	return ns < lease_ns / 2 ? ns : lease_ns / 2;
}

/* An unclear answer leaves `pending`: the next try first asks what became of it, by sending the
 * identical change again. */
static enum outcome try_once(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, const struct call_limits *caller,
	struct problem *ret_problem)
{
	const uint64_t sent_ns = clock_boot_ns();
	if (!*lease->pending) {
		lease_version(&lease->options, lease->pending);
		lease->pending_sent_ns = sent_ns;
		lease->pending_lease_ns =
			more && more->lease_ns ? more->lease_ns : lease_length_ns(lease);
	}
	struct call_limits limits = {
		.deadline_ns = sent_ns + patience_ns(lease),
		.abandon = is_beat_over,
		.abandon_arg = lease,
		.attempts = 2,
	};
	if (caller && caller->deadline_ns && caller->deadline_ns < limits.deadline_ns)
		limits.deadline_ns = caller->deadline_ns;
	const struct lease_try try = {
		.version = lease->version,
		.next = lease->pending,
		.lease_ns = lease->pending_lease_ns,
		.changes = more ? more->changes : NULL,
		.n_changes = more ? more->n_changes : 0,
		.limits = &limits,
	};
	struct item row = {0};
	enum outcome o =
		lease->options.ops->renew(lease->options.arg, conn, &try, &row, ret_problem);
	if (o == OUTCOME_OK) /* the old version was still there when this very call was applied */
		renewed(lease, sent_ns);
	else if (o == OUTCOME_REFUSED)
		o = look_at_lease_row(lease, &row);
	item_clear(&row);
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		lease->failures++;
	return o;
}

enum outcome lease_beat(struct lease *lease, struct store_conn *conn, const struct lease_more *more,
	const struct call_limits *limits, struct problem *ret_problem)
{
	const bool has_pending = *lease->pending;
	enum outcome o = try_once(lease, conn, has_pending ? NULL : more, limits, ret_problem);
	if (has_pending && more && o == OUTCOME_OK)
		o = try_once(lease, conn, more, limits, ret_problem);
	return o;
}

void lease_schedule_locked(struct lease *lease)
{
	const uint64_t period = lease->options.heartbeat_ns;
	if (!lease->failures)
		lease->locked.due_ns = lease_ends_ns(lease) - lease_length_ns(lease) + period;
	else
		lease->locked.due_ns = clock_boot_ns() + period / 8;
	leases_place_locked(lease->keeper, lease);
}
