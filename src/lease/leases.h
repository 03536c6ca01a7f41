/* What the two files of leases share. lease.c is what a holder calls, and renews one lease.
 * leases.c sorts them by time, knows whose turn it is, and keeps the queue. */
#pragma once
#include "lease/lease.h"
#include <stdatomic.h>
#include <uv.h>

#define LEASE_WORKERS_MAX 64

struct lease {
	struct leases *keeper;
	struct lease_options options;
	_Atomic uint64_t ends_ns, lease_ns;
	atomic_bool lost, stopping;
	char loss[LEASE_TEXT_MAX], owner[LEASE_TEXT_MAX]; /* written once, before lost is set */
	/* These belong to the thread that made the lease busy. */
	char version[LEASE_VERSION_MAX];
	/* A version that was sent and has no clear answer yet. It may be in the row, or come late.
	 */
	char pending[LEASE_VERSION_MAX];
	uint64_t pending_sent_ns, pending_lease_ns;
	/* Heartbeats in a row that were not sent or got no clear answer. */
	unsigned failures;
	/* Guarded by the mutex of `keeper`. */
	struct {
		bool busy; /* a request of this lease is under way, or about to be */
		bool beats, suspected, expired;
		uint64_t due_ns;  /* when the next heartbeat is due */
		uint64_t next_ns; /* when something is next to be done, by which the heap is sorted
				   */
		size_t at;        /* its place in the heap, from 1; 0: it is not in the heap */
		struct lease *then; /* the next one in the queue */
	} locked;
};

struct leases {
	struct store *store;
	unsigned workers_most;
	uv_mutex_t mutex;
	uv_cond_t due;     /* a lease came into the heap, or all is to end */
	uv_cond_t work;    /* a lease came into the queue, or all is to end */
	uv_cond_t changed; /* a lease was renewed, was lost, or is no longer busy */
	struct {
		bool stopping, keeping, outage;
		unsigned failures;   /* heartbeats in a row that failed, of any lease */
		struct lease **heap; /* [1…n], the earliest first */
		size_t n, room;
		struct lease *first, *last; /* the queue of those that are to be renewed now */
		unsigned count;             /* leases that were started */
		unsigned workers, idle;
		uv_thread_t keeper, worker[LEASE_WORKERS_MAX];
	} locked;
};

/* Puts a lease to its place in the heap, or takes it out if nothing is to be done. The mutex is
 * held, and there is room for all leases. */
void leases_place_locked(struct leases *leases, struct lease *lease);
void leases_remove_locked(struct leases *leases, struct lease *lease);
/* Makes room for one more lease. 0 or -ENOMEM. */
int leases_reserve_locked(struct leases *leases);

/* Takes a lease out of the queue of those to be renewed, unless a thread has it already. */
void leases_unqueue_locked(struct leases *leases, struct lease *lease);
/* Starts the threads of the keeper and of the first worker, unless they run. 0 or -errno. */
int leases_run_locked(struct leases *leases);

/* Sends one heartbeat. It is called by the thread that made the lease busy, without the mutex. */
enum outcome lease_beat(struct lease *lease, struct store_conn *conn, const struct lease_more *more,
	const struct call_limits *limits, struct problem *ret_problem);
/* Sets when the next heartbeat is due, which is soon if the last one got no clear answer. The mutex
 * is held. */
void lease_schedule_locked(struct lease *lease);
void lease_tell_locked(
	struct lease *lease, enum lease_event event, const char *text, const char *owner);
