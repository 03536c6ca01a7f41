/* The holder's side of leases. A lease is a row whose version is renewed by conditional updates.
 * Heartbeats have threads and connections of their own, so that neither a transfer nor a heartbeat
 * that hangs delays one. Only elapsed time decides who owns a row (CLOCK_BOOTTIME).
 *
 * A row that was lost stays lost. A lease that only ran out, since the store could not be reached,
 * may recover. As long as nobody has ended the row, the next heartbeat that succeeds makes it ours
 * again, since it is conditional on the version, which nobody has changed. */
#pragma once
#include "base/random.h"
#include "store/store.h"

#define LEASE_VERSION_MAX 64
#define LEASE_TEXT_MAX    256

/* Keeps any number of leases. One thread knows whose turn it is. Each request that is under way has
 * a thread, of which there are at least one and at most workers_most. No thread starts before the
 * first lease does. */
struct lease_keeper;
int lease_keeper_new(struct store *store, unsigned workers_most, struct lease_keeper **ret);
/* It is called after all of its leases were freed. NULL is ignored. */
void lease_keeper_free(struct lease_keeper *keeper);

/* One heartbeat. */
struct lease_try {
	const char *version, *next; /* the version that the row has, and the one that it gets */
	uint64_t lease_ns;
	const struct change *changes; /* further changes of the row */
	size_t n_changes;
	const struct call_limits *limits;
};

/* In the order of enum s3once_lock_event_type. */
enum lease_event {
	/* Less than suspect_ns is left. */
	LEASE_SUSPECT,
	/* It was renewed after SUSPECT or EXPIRED. */
	LEASE_RECOVERED,
	/* It is lost. `text` says why, and `owner` is the new owner. */
	LEASE_LOST,
	/* It ran out. A SUSPECT came before. */
	LEASE_EXPIRED,
	/* Heartbeats of any leases fail one after the other, and `text` says why. It is told once
	 * until one succeeds. */
	LEASE_OUTAGE,
};

/* How a lease handles its row. These are called from any thread. */
struct lease_ops {
	/* Changes the row's version, if it is ours and has try->version. */
	enum outcome (*renew)(void *arg, struct store_conn *conn, const struct lease_try *try,
		struct item *ret_row, struct problem *ret_problem);
	/* Reads the row that has refused a heartbeat, which is empty if there is none. Returns its
	 * version if everything else in it may be ours, or NULL. Writes why it is lost, and whose
	 * it is, for the case that it is not ours. */
	const char *(*whose)(void *arg, const struct item *row, char ret_why[static LEASE_TEXT_MAX],
		char ret_owner[static LEASE_TEXT_MAX]);
	/* Is told each event once. It must return at once, and must not call back. May be NULL. */
	void (*tell)(void *arg, enum lease_event event, const char *text, const char *owner);
};
struct lease_options {
	const struct lease_ops *ops; /* borrowed */
	void *arg;
	/* New versions begin with it. It is borrowed until lease_free(). NULL: they are random. */
	const char *id;
	/* The version never changes. */
	bool version_is_fixed;
	uint64_t lease_ns;
	/* 0: there are no heartbeats except lease_renew(). */
	uint64_t heartbeat_ns;
	uint64_t suspect_ns;
};

struct lease;
int lease_new(struct lease_keeper *keeper, const struct lease_options *options, struct lease **ret);
/* Starts renewing a row. It was written with this version by a request that was sent at sent_ns, by
 * clock_boot_ns(). If sent_ns is 0, that was long ago, and nothing of the lease is known to be
 * left. It is called once. 0 or -errno. */
int lease_start(struct lease *lease, const char *version, uint64_t sent_ns);
/* What else is changed when a lease is renewed. */
struct lease_more {
	const struct change *changes;
	size_t n_changes;
	uint64_t lease_ns; /* the new length; 0: as before */
};
/* Renews the lease now, after a heartbeat that is under way. OK if it was renewed, and REFUSED if
 * it is lost. Any other outcome says what went wrong; the heartbeats go on then. No request ends
 * after until_ns, which is 0 if there is no such limit. */
enum outcome lease_renew(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, uint64_t until_ns, struct problem *ret_problem);
/* Ends the heartbeats. One that is under way is abandoned. */
void lease_stop(struct lease *lease);
/* Stops and frees the lease. NULL is ignored. */
void lease_free(struct lease *lease);

/* Makes a version for a row that is to be ours, as the options say. */
void lease_version(const struct lease *lease, char ret[static LEASE_VERSION_MAX]);
/* The row's version. A heartbeat that had no answer may have written another one, which is in
 * *ret_pending, or "". They are borrowed. It is called after lease_stop(). */
const char *lease_row_version(const struct lease *lease, const char **ret_pending);

/* The clock_boot_ns() until which the row is surely ours. It counts from before the last successful
 * heartbeat was sent. 0 before lease_start(). Lock-free. */
uint64_t lease_ends_ns(const struct lease *lease);
uint64_t lease_length_ns(const struct lease *lease);
/* Whether the row is no longer ours. Lock-free. */
bool lease_is_lost(const struct lease *lease);
/* A sentence that says why the row was lost, and whose it is now. They are "" if it is not lost or
 * the new owner is not known, and are borrowed until lease_free(). */
const char *lease_loss(const struct lease *lease);
const char *lease_new_owner(const struct lease *lease);
/* Waits until at least `need_ns` of the lease are left, and returns true then. It returns false if
 * the lease is lost, or if abandon() says so, which is asked every 100 ms. */
bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg);
