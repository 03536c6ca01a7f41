/* The keeper of leases: a list of them by the time at which something is due, one heartbeat and
 * what its answer means, the thread that knows whose turn it is, and the threads that send. lease.c
 * puts leases here. What is left of a lease counts from before its last heartbeat was sent, never
 * from its answer, and no request is sent with the mutex held. */
#include "lease/lease_keeper.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY_LEAST_NS (NS_PER_S / 2)

void keeper_remove_locked(struct lease_keeper *keeper, struct lease *lease)
{
	if (lease->locked.is_listed)
		TAILQ_REMOVE(&keeper->locked.list, lease, locked.next);
	lease->locked.is_listed = false;
}

/* When this lease is due next, for its heartbeat or for an event. */
static uint64_t next_of(const struct lease *lease)
{
	uint64_t next = UINT64_MAX;
	const uint64_t ends = atomic_load(&lease->ends_ns);
	if (atomic_load(&lease->lost) || atomic_load(&lease->stopping))
		return next;
	if (lease->locked.beats && !lease->locked.busy)
		next = lease->locked.due_ns;
	if (!lease->locked.expired && ends) {
		uint64_t alarm = ends;
		if (!lease->locked.suspected)
			alarm = ends > lease->options.suspect_ns ? ends - lease->options.suspect_ns
								 : 0;
		if (alarm < next)
			next = alarm;
	}
	return next;
}

/* Leases are mostly of one length, so that the place is mostly at the end. */
void keeper_place_locked(struct lease_keeper *keeper, struct lease *lease)
{
	keeper_remove_locked(keeper, lease);
	lease->locked.next_ns = next_of(lease);
	if (lease->locked.next_ns == UINT64_MAX)
		return;
	struct lease *before = TAILQ_LAST(&keeper->locked.list, lease_list);
	while (before && before->locked.next_ns > lease->locked.next_ns)
		before = TAILQ_PREV(before, lease_list, locked.next);
	lease->locked.is_listed = true;
	if (before) {
		TAILQ_INSERT_AFTER(&keeper->locked.list, before, lease, locked.next);
		return;
	}
	TAILQ_INSERT_HEAD(&keeper->locked.list, lease, locked.next);
	uv_cond_signal(&keeper->due);
}

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
	struct lease_keeper *keeper = lease->keeper;
	memcpy(lease->version, lease->pending, sizeof lease->version);
	*lease->pending = 0;
	lease->failures = 0;
	uv_mutex_lock(&keeper->mutex);
	atomic_store(&lease->lease_ns, lease->pending_lease_ns);
	atomic_store(&lease->ends_ns, sent_ns + lease->pending_lease_ns);
	if (lease->locked.suspected)
		lease_tell_locked(lease, LEASE_RECOVERED, "the lease is renewed", "");
	lease->locked.suspected = lease->locked.expired = false;
	uv_cond_broadcast(&keeper->changed);
	uv_mutex_unlock(&keeper->mutex);
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
	keeper_place_locked(lease->keeper, lease);
}

int lease_keeper_new(struct store *store, unsigned workers_most, struct lease_keeper **ret)
{
	struct lease_keeper *keeper = calloc(1, sizeof *keeper);
	if (!keeper)
		return -ENOMEM;
	keeper->store = store;
	keeper->workers_most = workers_most < LEASE_WORKERS_MAX ? workers_most : LEASE_WORKERS_MAX;
	uv_mutex_init(&keeper->mutex);
	uv_cond_init(&keeper->due);
	uv_cond_init(&keeper->work);
	uv_cond_init(&keeper->changed);
	TAILQ_INIT(&keeper->locked.list);
	TAILQ_INIT(&keeper->locked.queue);
	*ret = keeper;
	return 0;
}

void lease_keeper_free(struct lease_keeper *keeper)
{
	if (!keeper)
		return;
	uv_mutex_lock(&keeper->mutex);
	keeper->locked.stopping = true;
	uv_cond_broadcast(&keeper->due);
	uv_cond_broadcast(&keeper->work);
	uv_mutex_unlock(&keeper->mutex);
	/* The keeper starts the workers: once it has ended their number stands. */
	if (keeper->locked.keeping)
		uv_thread_join(&keeper->locked.thread);
	for (unsigned i = 0; i < keeper->locked.workers; i++)
		uv_thread_join(&keeper->locked.worker[i]);
	uv_cond_destroy(&keeper->due);
	uv_cond_destroy(&keeper->work);
	uv_cond_destroy(&keeper->changed);
	uv_mutex_destroy(&keeper->mutex);
	free(keeper);
}

static void tell_outcome_locked(struct lease *lease, enum outcome o, const struct problem *problem)
{
	struct lease_keeper *keeper = lease->keeper;
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED) {
		keeper->locked.failures = 0;
		keeper->locked.outage = false;
	} else if (!atomic_load(&lease->stopping)) {
		log_info("heartbeat: %s", problem->text);
		if (++keeper->locked.failures >= 2 && !keeper->locked.outage) {
			keeper->locked.outage = true;
			lease_tell_locked(lease, LEASE_OUTAGE, problem->text, "");
		}
	}
}

static void leave_queue_locked(struct lease *lease)
{
	TAILQ_REMOVE(&lease->keeper->locked.queue, lease, locked.then);
	lease->keeper->locked.waiting--;
	lease->locked.waits = false;
}

static struct lease *take_work_locked(struct lease_keeper *keeper)
{
	keeper->locked.idle++;
	wait_until(!TAILQ_EMPTY(&keeper->locked.queue) || keeper->locked.stopping,
		.told = &keeper->work, .mutex = &keeper->mutex);
	keeper->locked.idle--;
	struct lease *lease = keeper->locked.stopping ? NULL : TAILQ_FIRST(&keeper->locked.queue);
	if (lease)
		leave_queue_locked(lease);
	return lease;
}

static void attend_due(void *arg)
{
	struct lease_keeper *keeper = arg;
	struct store_conn *conn = NULL;
	struct lease *lease;
	uv_mutex_lock(&keeper->mutex);
	while ((lease = take_work_locked(keeper))) {
		uv_mutex_unlock(&keeper->mutex);
		struct problem problem = {0};
		enum outcome o = OUTCOME_LOCAL;
		if (!conn && store_conn_new(keeper->store, &conn)) {
			problem_set(&problem, "no connection for a heartbeat: out of memory");
			lease->failures++;
		} else if (!atomic_load(&lease->stopping)) {
			o = lease_beat(lease, conn, NULL, NULL, &problem);
		}
		uv_mutex_lock(&keeper->mutex);
		tell_outcome_locked(lease, o, &problem);
		lease->locked.busy = false;
		lease_schedule_locked(lease);
		uv_cond_broadcast(&keeper->changed);
	}
	uv_mutex_unlock(&keeper->mutex);
	store_conn_free(conn);
}

/* Queues a heartbeat, and starts another thread if all are busy. */
static void queue_locked(struct lease_keeper *keeper, struct lease *lease)
{
	const unsigned n = keeper->locked.workers;
	lease->locked.busy = lease->locked.waits = true;
	TAILQ_INSERT_TAIL(&keeper->locked.queue, lease, locked.then);
	if (++keeper->locked.waiting > keeper->locked.idle && n < keeper->workers_most &&
		!thread_start(&keeper->locked.worker[n], attend_due, keeper))
		keeper->locked.workers++;
	uv_cond_signal(&keeper->work);
}

void keeper_unqueue_locked(struct lease *lease)
{
	if (!lease->locked.waits)
		return;
	leave_queue_locked(lease);
	lease->locked.busy = false;
}

static void attend_locked(struct lease_keeper *keeper, struct lease *lease, uint64_t now_ns)
{
	const uint64_t ends = atomic_load(&lease->ends_ns);
	if (!lease->locked.suspected && ends && now_ns + lease->options.suspect_ns >= ends) {
		lease->locked.suspected = true;
		lease_tell_locked(lease, LEASE_SUSPECT, "the lease was not renewed in time", "");
	}
	if (!lease->locked.expired && ends && now_ns >= ends) {
		lease->locked.expired = true;
		lease_tell_locked(lease, LEASE_EXPIRED, "the lease has run out", "");
	}
	if (lease->locked.beats && !lease->locked.busy && lease->locked.due_ns <= now_ns)
		queue_locked(keeper, lease);
	keeper_place_locked(keeper, lease);
}

/* When something is to be done next; 0: nothing is. */
static uint64_t next_due_locked(const struct lease_keeper *keeper)
{
	const struct lease *first = TAILQ_FIRST(&keeper->locked.list);
	return first ? first->locked.next_ns : 0;
}

static void keep_leases(void *arg)
{
	struct lease_keeper *keeper = arg;
	uv_mutex_lock(&keeper->mutex);
	while (!keeper->locked.stopping) {
		const uint64_t now_ns = clock_boot_ns(), due_ns = next_due_locked(keeper);
		if (due_ns && due_ns <= now_ns)
			attend_locked(keeper, TAILQ_FIRST(&keeper->locked.list), now_ns);
		else
			wait_until(keeper->locked.stopping || next_due_locked(keeper) != due_ns,
				.told = &keeper->due, .mutex = &keeper->mutex,
				.deadline_ns = due_ns);
	}
	uv_mutex_unlock(&keeper->mutex);
}

/* The first worker as well: refused later, nobody would renew anything. */
int keeper_run_locked(struct lease_keeper *keeper)
{
	int error = 0;
	if (!keeper->locked.workers) {
		error = thread_start_patiently(&keeper->locked.worker[0], attend_due, keeper);
		keeper->locked.workers = !error;
	}
	if (!error && !keeper->locked.keeping) {
		error = thread_start_patiently(&keeper->locked.thread, keep_leases, keeper);
		keeper->locked.keeping = !error;
	}
	return error;
}
