/* What a keeper knows of its leases, for lease.c and its test. */
#pragma once
#include "lease/lease.h"
#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#define LEASE_WORKERS_MAX 64

TAILQ_HEAD(lease_list, lease);

struct lease {
	struct lease_keeper *keeper;
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
		uint64_t next_ns; /* when something is next to be done, by which the list is sorted
				   */
		bool is_listed, waits; /* in the list, in the queue */
		TAILQ_ENTRY(lease) next, then;
	} locked;
};

struct lease_keeper {
	struct store *store;
	unsigned workers_most;
	uv_mutex_t mutex;
	uv_cond_t due;     /* a lease came to the front of the list, or all is to end */
	uv_cond_t work;    /* a lease came into the queue, or all is to end */
	uv_cond_t changed; /* a lease was renewed, was lost, or is no longer busy */
	struct {
		bool stopping, keeping, outage;
		unsigned failures;       /* heartbeats in a row that failed, of any lease */
		struct lease_list list;  /* the earliest first */
		struct lease_list queue; /* of those that are to be renewed now */
		unsigned waiting;        /* in the queue */
		unsigned count;          /* leases that were started */
		unsigned workers, idle;
		uv_thread_t thread, worker[LEASE_WORKERS_MAX];
	} locked;
};

/* Puts a lease to its place in the list, or takes it out if nothing is to be done. The mutex is
 * held. */
void keeper_place_locked(struct lease_keeper *keeper, struct lease *lease);
void keeper_remove_locked(struct lease_keeper *keeper, struct lease *lease);
