/* The inside of leases: lease.c is what a holder calls, leases.c knows whose turn it is and keeps
 * the queue, lease_beat.c renews one lease, and leases_heap.c sorts them by time. */
#pragma once
#include "lease/lease.h"
#include <pthread.h>
#include <stdatomic.h>

#define LEASE_WORKERS_MAX 64

struct lease {
	struct leases *keeper;
	struct lease_options options;
	_Atomic uint64_t ends_ns, lease_ns;
	atomic_bool lost, stopping;
	char loss[LEASE_TEXT_MAX], owner[LEASE_TEXT_MAX]; /* written once, before lost is set */
	/* Of the thread that made it busy. */
	char version[LEASE_VERSION_MAX];
	char pending[LEASE_VERSION_MAX]; /* sent and not yet answered clearly: it may be in the row,
					    or come late */
	uint64_t pending_sent_ns, pending_lease_ns;
	unsigned failures; /* tries in a row that were not made or got no clear answer */
	struct {           /* by the keeper's mutex */
		bool busy; /* a request of this lease is under way, or about to be */
		bool beats, suspected, expired;
		uint64_t due_ns;    /* of the next heartbeat */
		uint64_t next_ns;   /* of the next thing to do; its place in the heap */
		size_t at;          /* there, from 1; 0: it is not in the heap */
		struct lease *then; /* after it in the queue */
	} locked;
};

struct leases {
	struct store *store;
	unsigned workers_most;
	pthread_mutex_t mutex;
	pthread_cond_t due;     /* something came into the heap, or the end */
	pthread_cond_t work;    /* something came into the queue, or the end */
	pthread_cond_t changed; /* a lease was renewed, lost, or is no longer busy */
	struct {
		bool stopping, keeping, outage;
		unsigned failures;   /* heartbeats in a row, of whichever lease */
		struct lease **heap; /* [1…n], the earliest first */
		size_t n, room;
		struct lease *first, *last; /* to be renewed now */
		unsigned count;             /* leases that were started */
		unsigned workers, idle;
		pthread_t keeper, worker[LEASE_WORKERS_MAX];
	} locked;
};

/* Puts a lease where its time says, or takes it out if nothing is to be done. The mutex is held;
 * there is room for all leases. */
void leases_place_locked(struct leases *leases, struct lease *lease);
void leases_remove_locked(struct leases *leases, struct lease *lease);
/* Room for one more lease. 0 or -ENOMEM. */
int leases_reserve_locked(struct leases *leases);

/* Takes a lease out of the queue of those to be renewed, unless a thread has it already. */
void leases_unqueue_locked(struct leases *leases, struct lease *lease);
/* Starts the keeper's thread and the first worker's unless they run. 0 or -errno. */
int leases_run_locked(struct leases *leases);

/* One try, by the thread that made it busy; the mutex is not held. */
enum outcome lease_beat(struct lease *lease, struct store_conn *conn, const struct lease_more *more,
	const struct call_limits *limits, struct problem *ret_problem);
/* The next heartbeat is due: soon if the last try got no clear answer. The mutex is held. */
void lease_schedule_locked(struct lease *lease);
void lease_tell_locked(
	struct lease *lease, enum lease_event event, const char *text, const char *owner);
