/* Keeps the leases of sessions (marks/session.c) and of locks (src/lock). First comes the keeper: a
 * list of leases, sorted by the time at which something is due, one thread that watches the list,
 * and worker threads that send heartbeats. Then come the functions for the holder of a lease:
 * starting it, renewing it at once, waiting for it and stopping it.
 *
 * The length of a lease counts from just before its last successful heartbeat was sent, never from
 * the reply. No request is sent while the mutex is held. */
#include "lease/lease.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

/* The least time for a heartbeat, but see heartbeat_limit_ns(). */
#define TRY_MIN_NS  (NS_PER_S / 2)
#define SPREAD_FROM 8 /* if this many leases have started, first heartbeats are spread in time */
#define WORKERS_MAX 64

TAILQ_HEAD(lease_list, lease);

struct lease {
	struct lease_keeper *keeper;
	struct lease_options options;
	_Atomic uint64_t ends_ns, lease_ns;
	atomic_bool lost, stopping;
	char loss[LEASE_TEXT_MAX], owner[LEASE_TEXT_MAX]; /* written once, before lost is set */
	/* These belong to the thread that made the lease busy. */
	char version[LEASE_VERSION_MAX];
	/* A version that was sent without a clear answer yet. It may be in the row already, or
	 * arrive later. */
	char pending[LEASE_VERSION_MAX];
	uint64_t pending_sent_ns, pending_lease_ns;
	/* The last heartbeat was not sent or got no clear answer. */
	bool has_failed;
	/* Heartbeats that got no answer within their time limit, since one was answered within the
	 * shortest limit. */
	unsigned slow;
	/* Guarded by the mutex of `keeper`. */
	struct {
		bool busy; /* a request of this lease is under way, or about to be */
		bool has_heartbeats, suspected, expired;
		uint64_t heartbeat_due_ns; /* the time of the next heartbeat */
		uint64_t due_ns;           /* that of the next heartbeat or event; sorts the list */
		bool is_listed, is_queued; /* whether it is in the list, and in the queue */
		TAILQ_ENTRY(lease) in_list, in_queue;
	} locked;
};

struct lease_keeper {
	struct store *store;
	unsigned max_workers;
	uv_mutex_t mutex;
	uv_cond_t due;     /* a lease came to the front of the list, or the keeper is ending */
	uv_cond_t work;    /* a lease came into the queue, or the keeper is ending */
	uv_cond_t changed; /* a lease was renewed, was lost, or is no longer busy */
	struct {
		bool stopping, has_thread; /* has_thread: `thread` was started */
		unsigned failures;         /* consecutive heartbeats that failed, of any lease */
		struct lease_list list;    /* the earliest first */
		struct lease_list queue;   /* leases whose heartbeat is to be sent now */
		unsigned queued;           /* the length of the queue */
		unsigned count;            /* leases that were started and not freed */
		unsigned workers, idle;
		uv_thread_t thread, worker[WORKERS_MAX];
	} locked;
};

static void unlist_locked(struct lease_keeper *keeper, struct lease *lease)
{
	if (lease->locked.is_listed)
		TAILQ_REMOVE(&keeper->locked.list, lease, locked.in_list);
	lease->locked.is_listed = false;
}

/* Returns the time at which the next heartbeat of a lease is due, or its next event: SUSPECT at a
 * margin before its end, and later EXPIRED at the end. UINT64_MAX: nothing will be due. */
static uint64_t next_due_of_lease_locked(const struct lease *lease)
{
	const uint64_t ends_ns = atomic_load(&lease->ends_ns),
		       margin_ns = lease->options.suspect_ns;
	if (lease_is_lost(lease) || atomic_load(&lease->stopping))
		return UINT64_MAX;
	uint64_t heartbeat_ns = UINT64_MAX;
	if (lease->locked.has_heartbeats && !lease->locked.busy)
		heartbeat_ns = lease->locked.heartbeat_due_ns;
	if (lease->locked.expired || !ends_ns) /* both events were reported, or nothing has begun */
		return heartbeat_ns;
	uint64_t event_ns = ends_ns;
	if (!lease->locked.suspected)
		event_ns = ends_ns > margin_ns ? ends_ns - margin_ns : 0;
	return event_ns < heartbeat_ns ? event_ns : heartbeat_ns;
}

/* Moves a lease to its place in the list, or out of the list if nothing will be due for it. The
 * search begins at the end: leases mostly have the same length, so the one that was renewed last
 * belongs there. */
static void place_locked(struct lease_keeper *keeper, struct lease *lease)
{
	const uint64_t due_ns = next_due_of_lease_locked(lease);
	unlist_locked(keeper, lease);
	lease->locked.due_ns = due_ns;
	if (due_ns == UINT64_MAX)
		return;
	struct lease *earlier = TAILQ_LAST(&keeper->locked.list, lease_list);
	while (earlier && earlier->locked.due_ns > due_ns)
		earlier = TAILQ_PREV(earlier, lease_list, locked.in_list);
	lease->locked.is_listed = true;
	if (earlier) {
		TAILQ_INSERT_AFTER(&keeper->locked.list, earlier, lease, locked.in_list);
		return;
	}
	TAILQ_INSERT_HEAD(&keeper->locked.list, lease, locked.in_list);
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

void lease_version(const struct lease *lease, char ret[static LEASE_VERSION_MAX])
{
	const struct lease_options *options = &lease->options;
	char random[ID_CHARS + 1];
	random_id(random);
	if (options->version_is_fixed)
		snprintf(ret, LEASE_VERSION_MAX, "%s", options->id);
	else if (options->id)
		snprintf(ret, LEASE_VERSION_MAX, "%s.%.16s", options->id, random);
	else
		snprintf(ret, LEASE_VERSION_MAX, "%s", random);
}

/* Reports an event to the holder, unless the holder has stopped the lease. */
static void report_event_locked(
	struct lease *lease, enum lease_event event, const char *text, const char *owner)
{
	if (lease->options.ops->on_event && !atomic_load(&lease->stopping))
		lease->options.ops->on_event(lease->options.arg, event, text, owner);
}

/* Notes that a request sent at sent_ns has written the pending version into the row. The caller
 * does not hold the mutex. */
static void note_renewal(struct lease *lease, uint64_t sent_ns)
{
	struct lease_keeper *keeper = lease->keeper;
	memcpy(lease->version, lease->pending, sizeof lease->version);
	*lease->pending = 0;
	lease->has_failed = false;
	uv_mutex_lock(&keeper->mutex);
	atomic_store(&lease->lease_ns, lease->pending_lease_ns);
	atomic_store(&lease->ends_ns, sent_ns + lease->pending_lease_ns);
	if (lease->locked.suspected)
		report_event_locked(lease, LEASE_RECOVERED, "the lease is renewed", "");
	lease->locked.suspected = lease->locked.expired = false;
	uv_cond_broadcast(&keeper->changed);
	uv_mutex_unlock(&keeper->mutex);
}

/* Judges the row that has refused a heartbeat. The caller does not hold the mutex. OK if the row
 * has the pending version: an earlier try of ours was applied. TRANSIENT if the row has the last
 * known version. REFUSED otherwise: the lease is lost. */
static enum outcome judge_refusing_row(struct lease *lease, const struct item *row)
{
	char why[LEASE_TEXT_MAX] = "", owner[LEASE_TEXT_MAX] = "";
	const char *version = lease->options.ops->row_version(lease->options.arg, row, why, owner);
	if (version && strcmp(version, lease->pending) == 0) {
		note_renewal(lease, lease->pending_sent_ns);
		return OUTCOME_OK;
	}
	/* Another client has written our version back since the refusal, so the heartbeat is
	 * repeated. */
	if (version && strcmp(version, lease->version) == 0)
		return OUTCOME_TRANSIENT;
	uv_mutex_lock(&lease->keeper->mutex);
	memcpy(lease->loss, why, sizeof lease->loss);
	memcpy(lease->owner, owner, sizeof lease->owner);
	atomic_store(&lease->lost, true);
	report_event_locked(lease, LEASE_LOST, why, owner);
	uv_cond_broadcast(&lease->keeper->changed);
	uv_mutex_unlock(&lease->keeper->mutex);
	return OUTCOME_REFUSED;
}

static bool is_heartbeat_abandoned(void *arg)
{
	return atomic_load(&((struct lease *)arg)->stopping);
}

/* Returns the part of the lease that a heartbeat may take. At first a tenth, so that a heartbeat
 * that hangs is sent again long before the lease is in danger. If the store is slow, it is a
 * quarter, and then half of the lease: a refused write and a read of the row have to fit in. */
static uint64_t heartbeat_limit_ns(const struct lease *lease, unsigned slow)
{
	const uint64_t lease_ns = lease_length_ns(lease);
	const unsigned divisor = slow < 2 ? 10 : slow < 4 ? 4 : 2;
	uint64_t limit_ns = lease_ns / divisor;
	if (limit_ns < TRY_MIN_NS)
		limit_ns = TRY_MIN_NS;
	return limit_ns < lease_ns / 2 ? limit_ns : lease_ns / 2;
}

/* Notes whether the store is slow. A longer limit stays until a heartbeat needs no more than the
 * shortest one, as TCP keeps its longer timeout: otherwise each success would be followed by
 * failures, and the lease would be renewed too late again and again. */
static void note_pace(struct lease *lease, bool is_answered, uint64_t sent_ns)
{
	if (!is_answered)
		lease->slow++;
	else if (clock_boot_ns() - sent_ns <= heartbeat_limit_ns(lease, 0))
		lease->slow = 0;
}

/* Sends the pending version, or a new one if none is pending. After an unclear answer the version
 * stays pending. The next try sends the same change again, and so finds out whether the change was
 * applied. OK if the lease is renewed, and REFUSED if it is lost. */
static enum outcome try_heartbeat(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, uint64_t until_ns, struct problem *ret_problem)
{
	const uint64_t sent_ns = clock_boot_ns();
	if (!*lease->pending) {
		lease_version(lease, lease->pending);
		lease->pending_sent_ns = sent_ns;
		lease->pending_lease_ns =
			more && more->lease_ns ? more->lease_ns : lease_length_ns(lease);
	}
	struct call_limits limits = {
		.deadline_ns = sent_ns + heartbeat_limit_ns(lease, lease->slow),
		.abandon = is_heartbeat_abandoned,
		.abandon_arg = lease,
		.attempts = 2, /* few, since a failed heartbeat is followed by another one anyway */
	};
	if (until_ns && until_ns < limits.deadline_ns)
		limits.deadline_ns = until_ns;
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
	/* OK means that the row still had the old version. So no earlier try with the same new
	 * version was applied, and the lease counts from this request, not from pending_sent_ns. */
	if (o == OUTCOME_OK)
		note_renewal(lease, sent_ns);
	else if (o == OUTCOME_REFUSED)
		o = judge_refusing_row(lease, &row);
	item_clear(&row);
	const bool is_answered = o == OUTCOME_OK || o == OUTCOME_REFUSED;
	note_pace(lease, is_answered, sent_ns);
	if (!is_answered)
		lease->has_failed = true;
	return o;
}

/* Sends one heartbeat. If a version is still pending, it is sent first, without `more`: its OK may
 * come from an earlier attempt that was applied, and that did not carry these changes. To be called
 * without the mutex, by the thread that made the lease busy. */
static enum outcome send_heartbeat(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, uint64_t until_ns, struct problem *ret_problem)
{
	const bool has_pending = *lease->pending;
	if (has_pending && more) {
		const enum outcome o = try_heartbeat(lease, conn, NULL, until_ns, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
	return try_heartbeat(lease, conn, more, until_ns, ret_problem);
}

/* Marks the lease as no longer busy. The next heartbeat is due a period after the last successful
 * one was sent. If the last one got no clear answer, the next one is due after an eighth of a
 * period, so that several more are sent before the lease ends. */
static void end_heartbeat_locked(struct lease *lease)
{
	lease->locked.busy = false;
	const uint64_t period = lease->options.heartbeat_ns;
	if (!lease->has_failed)
		lease->locked.heartbeat_due_ns =
			lease_ends_ns(lease) - lease_length_ns(lease) + period;
	else
		lease->locked.heartbeat_due_ns = clock_boot_ns() + period / 8;
	place_locked(lease->keeper, lease);
	uv_cond_broadcast(&lease->keeper->changed);
}

int lease_keeper_new(struct store *store, unsigned max_workers, struct lease_keeper **ret)
{
	struct lease_keeper *keeper = calloc(1, sizeof *keeper);
	if (!keeper)
		return -ENOMEM;
	keeper->store = store;
	keeper->max_workers = max_workers < WORKERS_MAX ? max_workers : WORKERS_MAX;
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
	/* The keeper's thread starts the workers. Once that thread has ended, their number is
	 * fixed. */
	if (keeper->locked.has_thread)
		uv_thread_join(&keeper->locked.thread);
	for (unsigned i = 0; i < keeper->locked.workers; i++)
		uv_thread_join(&keeper->locked.worker[i]);
	uv_cond_destroy(&keeper->due);
	uv_cond_destroy(&keeper->work);
	uv_cond_destroy(&keeper->changed);
	uv_mutex_destroy(&keeper->mutex);
	free(keeper);
}

/* Notes how a heartbeat has ended. Reports an outage after two consecutive failures. */
static void note_outcome_locked(struct lease *lease, enum outcome o, const struct problem *problem)
{
	struct lease_keeper *keeper = lease->keeper;
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED) {
		keeper->locked.failures = 0; /* a service that refuses can be reached */
	} else if (!atomic_load(&lease->stopping)) {
		log_info("heartbeat: %s", problem->text);
		if (++keeper->locked.failures == 2)
			report_event_locked(lease, LEASE_OUTAGE, problem->text, "");
	}
}

static void leave_queue_locked(struct lease *lease)
{
	TAILQ_REMOVE(&lease->keeper->locked.queue, lease, locked.in_queue);
	lease->keeper->locked.queued--;
	lease->locked.is_queued = false;
}

/* Waits for a lease whose heartbeat is to be sent, and takes it. NULL: the keeper is being
 * freed. */
static struct lease *take_due_lease_locked(struct lease_keeper *keeper)
{
	keeper->locked.idle++;
	wait_until(!TAILQ_EMPTY(&keeper->locked.queue) || keeper->locked.stopping,
		.cond = &keeper->work, .mutex = &keeper->mutex);
	keeper->locked.idle--;
	struct lease *lease = keeper->locked.stopping ? NULL : TAILQ_FIRST(&keeper->locked.queue);
	if (lease)
		leave_queue_locked(lease);
	return lease;
}

/* A worker thread, which sends the heartbeats of the leases in the queue. */
static void send_due_heartbeats(void *arg)
{
	struct lease_keeper *keeper = arg;
	struct store_conn *conn = NULL;
	struct lease *lease;
	uv_mutex_lock(&keeper->mutex);
	while ((lease = take_due_lease_locked(keeper))) {
		uv_mutex_unlock(&keeper->mutex);
		struct problem problem = {0};
		enum outcome o = OUTCOME_LOCAL; /* no heartbeat was sent */
		if (!conn && store_conn_new(keeper->store, &conn)) {
			problem_set(&problem, "no connection for a heartbeat: out of memory");
			lease->has_failed = true;
		} else if (!atomic_load(&lease->stopping)) {
			o = send_heartbeat(lease, conn, NULL, 0, &problem);
		}
		uv_mutex_lock(&keeper->mutex);
		note_outcome_locked(lease, o, &problem);
		end_heartbeat_locked(lease);
	}
	uv_mutex_unlock(&keeper->mutex);
	store_conn_free(conn);
}

/* Makes the lease busy, and hands its heartbeat to the workers. If no worker is idle for it,
 * another worker starts. If that fails, the heartbeat waits for an existing worker. */
static void queue_heartbeat_locked(struct lease_keeper *keeper, struct lease *lease)
{
	const unsigned n = keeper->locked.workers;
	lease->locked.busy = lease->locked.is_queued = true;
	TAILQ_INSERT_TAIL(&keeper->locked.queue, lease, locked.in_queue);
	const bool needs_worker = ++keeper->locked.queued > keeper->locked.idle;
	if (needs_worker && n < keeper->max_workers &&
		!thread_start(&keeper->locked.worker[n], send_due_heartbeats, keeper))
		keeper->locked.workers++;
	uv_cond_signal(&keeper->work);
}

/* Handles the first lease of the list, which is due: reports an event, queues the heartbeat, or
 * both. */
static void handle_due_locked(struct lease_keeper *keeper, struct lease *lease, uint64_t now_ns)
{
	const uint64_t ends_ns = atomic_load(&lease->ends_ns); /* 0: no lease has begun */
	const bool is_near_end = ends_ns && now_ns + lease->options.suspect_ns >= ends_ns;
	const bool is_at_end = ends_ns && now_ns >= ends_ns;
	const bool needs_heartbeat = lease->locked.has_heartbeats && !lease->locked.busy &&
				     lease->locked.heartbeat_due_ns <= now_ns;
	if (is_near_end && !lease->locked.suspected) {
		lease->locked.suspected = true;
		report_event_locked(lease, LEASE_SUSPECT, "the lease was not renewed in time", "");
	} else if (is_at_end && !lease->locked.expired) {
		/* If this thread is late, both SUSPECT and EXPIRED may be due. Then this call
		 * reports SUSPECT alone, and the lease goes back into the list for EXPIRED. So the
		 * events of all leases come in the order in which they were due. */
		lease->locked.expired = true;
		report_event_locked(lease, LEASE_EXPIRED, "the lease has run out", "");
	}
	if (needs_heartbeat)
		queue_heartbeat_locked(keeper, lease);
	place_locked(keeper, lease);
}

/* Returns when something is due next, or 0 if nothing ever is. */
static uint64_t next_due_locked(const struct lease_keeper *keeper)
{
	const struct lease *first = TAILQ_FIRST(&keeper->locked.list);
	return first ? first->locked.due_ns : 0;
}

/* The keeper's thread, which waits until something is due for any lease. */
static void watch_leases(void *arg)
{
	struct lease_keeper *keeper = arg;
	uv_mutex_lock(&keeper->mutex);
	while (!keeper->locked.stopping) {
		const uint64_t now_ns = clock_boot_ns(), due_ns = next_due_locked(keeper);
		if (due_ns && due_ns <= now_ns)
			handle_due_locked(keeper, TAILQ_FIRST(&keeper->locked.list), now_ns);
		else
			wait_until(keeper->locked.stopping || next_due_locked(keeper) != due_ns,
				.cond = &keeper->due, .mutex = &keeper->mutex,
				.deadline_ns = due_ns);
	}
	uv_mutex_unlock(&keeper->mutex);
}

int lease_new(struct lease_keeper *keeper, const struct lease_options *options, struct lease **ret)
{
	struct lease *lease = calloc(1, sizeof *lease);
	if (!lease)
		return -ENOMEM;
	*lease = (struct lease){
		.keeper = keeper, .options = *options, .lease_ns = options->lease_ns};
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

const char *lease_row_version(const struct lease *lease, const char **ret_pending)
{
	*ret_pending = lease->pending;
	return lease->version;
}

/* Counts the lease, and lets its heartbeats begin. Many leases that start together should not send
 * their heartbeats together. From SPREAD_FROM leases on, the first heartbeat comes at a random time
 * of the period. If sent_ns is 0, no heartbeat comes before lease_renew(). */
static void begin_heartbeats_locked(struct lease *lease, const char *version, uint64_t sent_ns)
{
	struct lease_keeper *keeper = lease->keeper;
	const uint64_t period_ns = lease->options.heartbeat_ns;
	const bool is_spread = ++keeper->locked.count >= SPREAD_FROM;
	snprintf(lease->version, sizeof lease->version, "%s", version);
	if (sent_ns)
		atomic_store(&lease->ends_ns, sent_ns + lease->options.lease_ns);
	lease->locked.has_heartbeats = period_ns && sent_ns;
	lease->locked.heartbeat_due_ns =
		sent_ns + (is_spread ? random_below(period_ns) : period_ns);
	place_locked(keeper, lease);
}

int lease_start(struct lease *lease, const char *version, uint64_t sent_ns)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	int error = 0;
	/* The first worker is started here, so that the caller learns of a failure. In
	 * handle_due_locked() no caller would learn of it, and no thread would renew the lease. */
	if (!keeper->locked.workers) {
		error = thread_start_patiently(
			&keeper->locked.worker[0], send_due_heartbeats, keeper);
		keeper->locked.workers = !error;
	}
	if (!error && !keeper->locked.has_thread) {
		error = thread_start_patiently(&keeper->locked.thread, watch_leases, keeper);
		keeper->locked.has_thread = !error;
	}
	if (!error)
		begin_heartbeats_locked(lease, version, sent_ns);
	uv_mutex_unlock(&keeper->mutex);
	return error;
}

enum outcome lease_renew(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, uint64_t until_ns, struct problem *ret_problem)
{
	struct lease_keeper *keeper = lease->keeper;
	enum outcome o = OUTCOME_TRANSIENT;
	uv_mutex_lock(&keeper->mutex);
	wait_until(!lease->locked.busy || atomic_load(&lease->stopping), .cond = &keeper->changed,
		.mutex = &keeper->mutex);
	const bool is_over = lease_is_lost(lease) || atomic_load(&lease->stopping);
	/* A lease that is over is left as it is: another thread may have made it busy. */
	lease->locked.busy |= !is_over;
	uv_mutex_unlock(&keeper->mutex);
	if (is_over)
		return OUTCOME_REFUSED;
	/* If a try has no clear answer, the next one finds out whether it was applied. After three
	 * tries the heartbeats continue with that. */
	for (int i = 0; i < 3 && o != OUTCOME_OK && o != OUTCOME_REFUSED; i++)
		o = send_heartbeat(lease, conn, more, until_ns, ret_problem);
	uv_mutex_lock(&keeper->mutex);
	/* A lease that was started with sent_ns 0 has heartbeats from now on. */
	lease->locked.has_heartbeats = lease->options.heartbeat_ns != 0;
	end_heartbeat_locked(lease);
	uv_mutex_unlock(&keeper->mutex);
	return o;
}

bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	const bool is_met = wait_until(lease_is_lost(lease) ||
					       clock_boot_ns() + need_ns <= lease_ends_ns(lease),
				    .cond = &keeper->changed, .mutex = &keeper->mutex,
				    .abandon = abandon, .arg = arg) == WAIT_MET;
	uv_mutex_unlock(&keeper->mutex);
	return is_met && !lease_is_lost(lease);
}

void lease_stop(struct lease *lease)
{
	struct lease_keeper *keeper = lease->keeper;
	uv_mutex_lock(&keeper->mutex);
	atomic_store(&lease->stopping, true);
	if (lease->locked.is_queued) { /* no worker has begun the heartbeat that is queued */
		leave_queue_locked(lease);
		lease->locked.busy = false;
	}
	uv_cond_broadcast(&keeper->changed);
	wait_until(!lease->locked.busy, .cond = &keeper->changed, .mutex = &keeper->mutex);
	unlist_locked(keeper, lease);
	uv_mutex_unlock(&keeper->mutex);
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	lease_stop(lease);
	uv_mutex_lock(&lease->keeper->mutex);
	/* Only lease_start() sets the version, and it has counted the lease. */
	if (*lease->version)
		lease->keeper->locked.count--;
	uv_mutex_unlock(&lease->keeper->mutex);
	free(lease);
}
