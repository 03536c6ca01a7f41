#include "lease/leases.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	free(leases->locked.heap);
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

static struct lease *take_work_locked(struct leases *leases)
{
	leases->locked.idle++;
	wait_until(leases->locked.first || leases->locked.stopping, .told = &leases->work,
		.mutex = &leases->mutex);
	leases->locked.idle--;
	struct lease *lease = leases->locked.stopping ? NULL : leases->locked.first;
	if (lease)
		leases->locked.first = lease->locked.then;
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
	size_t waiting = 1;
	lease->locked.busy = true;
	lease->locked.then = NULL;
	if (leases->locked.first)
		leases->locked.last->locked.then = lease;
	else
		leases->locked.first = lease;
	leases->locked.last = lease;
	for (struct lease *l = leases->locked.first; l != lease; l = l->locked.then)
		waiting++;
	const unsigned n = leases->locked.workers;
	if (waiting > leases->locked.idle && n < leases->workers_most &&
		!thread_start(&leases->locked.worker[n], attend_due, leases))
		leases->locked.workers++;
	uv_cond_signal(&leases->work);
}

void leases_unqueue_locked(struct leases *leases, struct lease *lease)
{
	struct lease *before = NULL, *l = leases->locked.first;
	for (; l && l != lease; l = l->locked.then)
		before = l;
	if (!l)
		return;
	*(before ? &before->locked.then : &leases->locked.first) = lease->locked.then;
	if (leases->locked.last == lease)
		leases->locked.last = before;
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
	return leases->locked.n ? leases->locked.heap[1]->locked.next_ns : 0;
}

static void keep_leases(void *arg)
{
	struct leases *leases = arg;
	uv_mutex_lock(&leases->mutex);
	while (!leases->locked.stopping) {
		const uint64_t now_ns = clock_boot_ns(), due_ns = next_due_locked(leases);
		if (due_ns && due_ns <= now_ns)
			attend_locked(leases, leases->locked.heap[1], now_ns);
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
