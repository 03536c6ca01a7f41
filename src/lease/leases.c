/* How leases are kept: a list of them by the time at which something is due, one heartbeat and what
 * its answer means, the thread that knows whose turn it is, and the threads that send. lease.c puts
 * leases here. What is left of a lease counts from before its last heartbeat was sent, never from
 * its answer, and no request is sent with the mutex held. */
#include "lease/leases.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY_LEAST_NS (NS_PER_S / 2)

void leases_remove_locked(struct leases *leases, struct lease *lease)
{
	if (lease->locked.is_listed)
		TAILQ_REMOVE(&leases->locked.list, lease, locked.next);
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
void leases_place_locked(struct leases *leases, struct lease *lease)
{
	leases_remove_locked(leases, lease);
	lease->locked.next_ns = next_of(lease);
	if (lease->locked.next_ns == UINT64_MAX)
		return;
	struct lease *before = TAILQ_LAST(&leases->locked.list, lease_list);
	while (before && before->locked.next_ns > lease->locked.next_ns)
		before = TAILQ_PREV(before, lease_list, locked.next);
	lease->locked.is_listed = true;
	if (before) {
		TAILQ_INSERT_AFTER(&leases->locked.list, before, lease, locked.next);
		return;
	}
	TAILQ_INSERT_HEAD(&leases->locked.list, lease, locked.next);
	uv_cond_signal(&leases->due);
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

int leases_new(struct store *store, unsigned workers_most, struct leases **ret)
{
	struct leases *leases = calloc(1, sizeof *leases);
	if (!leases)
		return -ENOMEM;
	leases->store = store;
	leases->workers_most = workers_most < LEASE_WORKERS_MAX ? workers_most : LEASE_WORKERS_MAX;
	uv_mutex_init(&leases->mutex);
	uv_cond_init(&leases->due);
	uv_cond_init(&leases->work);
	uv_cond_init(&leases->changed);
	TAILQ_INIT(&leases->locked.list);
	TAILQ_INIT(&leases->locked.queue);
	*ret = leases;
	return 0;
}

void leases_free(struct leases *leases)
{
	if (!leases)
		return;
	uv_mutex_lock(&leases->mutex);
	leases->locked.stopping = true;
	uv_cond_broadcast(&leases->due);
	uv_cond_broadcast(&leases->work);
	uv_mutex_unlock(&leases->mutex);
	/* The keeper starts the workers: once it has ended their number stands. */
	if (leases->locked.keeping)
		uv_thread_join(&leases->locked.keeper);
	for (unsigned i = 0; i < leases->locked.workers; i++)
		uv_thread_join(&leases->locked.worker[i]);
	uv_cond_destroy(&leases->due);
	uv_cond_destroy(&leases->work);
	uv_cond_destroy(&leases->changed);
	uv_mutex_destroy(&leases->mutex);
	free(leases);
}

static void tell_outcome_locked(struct lease *lease, enum outcome o, const struct problem *problem)
{
	struct leases *leases = lease->keeper;
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED) {
		leases->locked.failures = 0;
		leases->locked.outage = false;
	} else if (!atomic_load(&lease->stopping)) {
		log_info("heartbeat: %s", problem->text);
		if (++leases->locked.failures >= 2 && !leases->locked.outage) {
			leases->locked.outage = true;
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

static struct lease *take_work_locked(struct leases *leases)
{
	leases->locked.idle++;
	wait_until(!TAILQ_EMPTY(&leases->locked.queue) || leases->locked.stopping,
		.told = &leases->work, .mutex = &leases->mutex);
	leases->locked.idle--;
	struct lease *lease = leases->locked.stopping ? NULL : TAILQ_FIRST(&leases->locked.queue);
	if (lease)
		leave_queue_locked(lease);
	return lease;
}

static void attend_due(void *arg)
{
	struct leases *leases = arg;
	struct store_conn *conn = NULL;
	struct lease *lease;
	uv_mutex_lock(&leases->mutex);
	while ((lease = take_work_locked(leases))) {
		uv_mutex_unlock(&leases->mutex);
		struct problem problem = {0};
		enum outcome o = OUTCOME_LOCAL;
		if (!conn && store_conn_new(leases->store, &conn)) {
			problem_set(&problem, "no connection for a heartbeat: out of memory");
			lease->failures++;
		} else if (!atomic_load(&lease->stopping)) {
			o = lease_beat(lease, conn, NULL, NULL, &problem);
		}
		uv_mutex_lock(&leases->mutex);
		tell_outcome_locked(lease, o, &problem);
		lease->locked.busy = false;
		lease_schedule_locked(lease);
		uv_cond_broadcast(&leases->changed);
	}
	uv_mutex_unlock(&leases->mutex);
	store_conn_free(conn);
}

/* Queues a heartbeat, and starts another thread if all are busy. */
static void queue_locked(struct leases *leases, struct lease *lease)
{
	const unsigned n = leases->locked.workers;
	lease->locked.busy = lease->locked.waits = true;
	TAILQ_INSERT_TAIL(&leases->locked.queue, lease, locked.then);
	if (++leases->locked.waiting > leases->locked.idle && n < leases->workers_most &&
		!thread_start(&leases->locked.worker[n], attend_due, leases))
		leases->locked.workers++;
	uv_cond_signal(&leases->work);
}

void leases_unqueue_locked(struct lease *lease)
{
	if (!lease->locked.waits)
		return;
	leave_queue_locked(lease);
	lease->locked.busy = false;
}

static void attend_locked(struct leases *leases, struct lease *lease, uint64_t now_ns)
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
		queue_locked(leases, lease);
	leases_place_locked(leases, lease);
}

/* When something is to be done next; 0: nothing is. */
static uint64_t next_due_locked(const struct leases *leases)
{
	const struct lease *first = TAILQ_FIRST(&leases->locked.list);
	return first ? first->locked.next_ns : 0;
}

static void keep_leases(void *arg)
{
	struct leases *leases = arg;
	uv_mutex_lock(&leases->mutex);
	while (!leases->locked.stopping) {
		const uint64_t now_ns = clock_boot_ns(), due_ns = next_due_locked(leases);
		if (due_ns && due_ns <= now_ns)
			attend_locked(leases, TAILQ_FIRST(&leases->locked.list), now_ns);
		else
			wait_until(leases->locked.stopping || next_due_locked(leases) != due_ns,
				.told = &leases->due, .mutex = &leases->mutex,
				.deadline_ns = due_ns);
	}
	uv_mutex_unlock(&leases->mutex);
}

/* The first worker as well: refused later, nobody would renew anything. */
int leases_run_locked(struct leases *leases)
{
	int error = 0;
	if (!leases->locked.workers) {
		error = thread_start_patiently(&leases->locked.worker[0], attend_due, leases);
		leases->locked.workers = !error;
	}
	if (!error && !leases->locked.keeping) {
		error = thread_start_patiently(&leases->locked.keeper, keep_leases, leases);
		leases->locked.keeping = !error;
	}
	return error;
}
