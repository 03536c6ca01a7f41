/* The holder's side of leases: rows whose versions are renewed by conditional updates, on threads
 * and connections of their own, so that neither a stuck transfer nor a hung heartbeat delays one.
 * Ownership is decided by elapsed time alone (CLOCK_BOOTTIME).
 *
 * Once a row is lost it stays lost. A lease that only ran out (the store could not be reached) may
 * recover: as long as nobody ended the row, the next heartbeat that succeeds makes it ours again,
 * since it is conditional on the version nobody changed. */
#pragma once
#include "base/random.h"
#include "store/store.h"

#define LEASE_VERSION_MAX 64
#define LEASE_TEXT_MAX    256

/* Keeps any number of leases: one thread that knows whose turn it is, and for the requests as many
 * as are under way at once, at least one and at most workers_most; none before the first lease
 * starts. */
struct leases;
int leases_new(struct store *store, unsigned workers_most, struct leases **ret);
void leases_free(struct leases *leases); /* after its leases; NULL is fine */

/* One heartbeat. */
struct lease_try {
	const char *version, *next; /* the row's, and the one it gets */
	uint64_t lease_ns;
	const struct change *changes; /* more of them */
	size_t n_changes;
	const struct call_limits *limits;
};

enum lease_event {
	LEASE_SUSPECT,   /* less than suspect_ns is left */
	LEASE_RECOVERED, /* renewed after one of these two */
	LEASE_EXPIRED,   /* always after SUSPECT */
	LEASE_LOST,      /* text: why; owner: the new one */
	LEASE_OUTAGE, /* heartbeats fail one after the other, whichever; text: why. Once until one
			 succeeds */
};

/* What a row is to its lease. Called from any thread. */
struct lease_ops {
	/* Changes the row's version, if it is ours and has try->version. */
	enum outcome (*renew)(void *arg, struct store_conn *conn, const struct lease_try *try,
		struct item *ret_row, struct problem *ret_problem);
	/* Reads a row (empty: there is none) that refused: its version if it may be ours by all
	 * else, or NULL; and, in case it is not, why it is lost and whose it is. */
	const char *(*whose)(void *arg, const struct item *row, char ret_why[static LEASE_TEXT_MAX],
		char ret_owner[static LEASE_TEXT_MAX]);
	/* Each event once; must return at once and not call back. May be NULL. */
	void (*tell)(void *arg, enum lease_event event, const char *text, const char *owner);
};
struct lease_options {
	const struct lease_ops *ops; /* borrowed */
	void *arg;
	const char
		*id; /* new versions begin with it, borrowed until lease_free; NULL: all random */
	bool version_is_fixed; /* there is only one */
	uint64_t lease_ns;
	uint64_t heartbeat_ns; /* 0: none but lease_renew() */
	uint64_t suspect_ns;
};

struct lease;
int lease_new(struct leases *leases, const struct lease_options *options, struct lease **ret);
/* Starts renewing a row that was written with this version by a request sent at sent_ns
 * (clock_boot_ns()); 0: long ago, so that nothing is known to be left. Once. 0 or -errno. */
int lease_start(struct lease *lease, const char *version, uint64_t sent_ns);
/* Renews now, with more changes and, if lease_ns is not 0, another length. OK; REFUSED: it is lost;
 * else what went wrong, and the heartbeats go on. Waits for one that is under way. */
struct lease_more {
	const struct change *changes;
	size_t n_changes;
	uint64_t lease_ns;
};
enum outcome lease_renew(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, const struct call_limits *limits,
	struct problem *ret_problem);
/* Ends the heartbeats; one under way is abandoned. */
void lease_stop(struct lease *lease);
void lease_free(struct lease *lease); /* stops it; NULL is fine */

/* A version for a row that is to be ours, as lease_options say. */
void lease_version(const struct lease_options *options, char ret[static LEASE_VERSION_MAX]);
/* The row's version, and one that it may have instead ("": none). After lease_stop; borrowed. */
const char *lease_row_version(const struct lease *lease, const char **ret_or);

/* The clock_boot_ns() until which the row is surely ours; counted from before the last successful
 * heartbeat was sent. 0 before lease_start. Lock-free. */
uint64_t lease_ends_ns(const struct lease *lease);
uint64_t lease_length_ns(const struct lease *lease);
/* The row is no longer ours. Lock-free. */
bool lease_is_lost(const struct lease *lease);
/* Why, a sentence, and whose it is now; "" if it is not lost or nobody is known. Borrowed until
 * lease_free. */
const char *lease_loss(const struct lease *lease);
const char *lease_new_owner(const struct lease *lease);
/* Blocks until at least `need_ns` of the lease are left or it is lost or abandon() says so, asked
 * every 100 ms; true in the first case. */
bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg);
