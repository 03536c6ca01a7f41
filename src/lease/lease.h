/* The holder's side of leases. A lease is a row in a store. Its holder renews it by heartbeats,
 * which are conditional updates of the row's version. Heartbeats have their own threads and
 * connections, so that neither a transfer nor a hanging heartbeat delays them. Only elapsed time
 * (CLOCK_BOOTTIME) decides who owns a row.
 *
 * A lease that is lost stays lost. A lease that has only expired, since the store could not be
 * reached, may recover: each heartbeat requires that the row still has the holder's version. If no
 * other client has changed it meanwhile, the heartbeat succeeds, and the holder has the row
 * again. */
#pragma once
#include "base/random.h"
#include "store/store.h"

#define LEASE_VERSION_MAX 64
#define LEASE_TEXT_MAX    256

/* Keeps any number of leases. One thread schedules the heartbeats, and 1 to max_workers other
 * threads send them. No thread is started before the first lease. */
struct lease_keeper;
int lease_keeper_new(struct store *store, unsigned max_workers, struct lease_keeper **ret);
/* Call it after all leases of the keeper were freed. NULL is ignored. */
void lease_keeper_free(struct lease_keeper *keeper);

/* The write of one heartbeat. */
struct lease_try {
	const char *version, *next; /* the row's present version, and its next one */
	uint64_t lease_ns;
	const struct change *changes; /* further changes of the row */
	size_t n_changes;
	const struct call_limits *limits;
};

/* Events, in the order of enum s3once_lock_event_type, since lock_events.c casts one into the
 * other. */
enum lease_event {
	/* Less than suspect_ns is left. */
	LEASE_SUSPECT,
	/* It was renewed after LEASE_SUSPECT or LEASE_EXPIRED. */
	LEASE_RECOVERED,
	/* It is lost. `text` is the reason, and `owner` the new owner. */
	LEASE_LOST,
	/* It has expired. LEASE_SUSPECT was reported before. */
	LEASE_EXPIRED,
	/* Two consecutive heartbeats have failed, of any leases of the keeper. `text` is the
	 * reason. The event is not reported again before a heartbeat has succeeded. */
	LEASE_OUTAGE,
};

/* Operations on the row of a lease. They are called from any thread. */
struct lease_ops {
	/* Changes the row's version from try->version to try->next. REFUSED if the row is not ours
	 * or has another version. *ret_row is then the present row. */
	enum outcome (*renew)(void *arg, struct store_conn *conn, const struct lease_try *try,
		struct item *ret_row, struct problem *ret_problem);
	/* Judges the row that has refused a heartbeat; `row` is empty if there is none. Returns the
	 * row's version if the rest of the row may be ours, or NULL if the row is not ours. Also
	 * sets ret_why to the reason, and ret_owner to the row's new owner; both are used if the
	 * lease turns out to be lost. */
	const char *(*row_version)(void *arg, const struct item *row,
		char ret_why[static LEASE_TEXT_MAX], char ret_owner[static LEASE_TEXT_MAX]);
	/* Called once for each event. It must return at once, and must not call functions of the
	 * lease. May be NULL. */
	void (*on_event)(void *arg, enum lease_event event, const char *text, const char *owner);
};
struct lease_options {
	const struct lease_ops *ops; /* borrowed */
	void *arg;
	/* New versions begin with this id, which is borrowed until lease_free(). NULL: versions are
	 * random. */
	const char *id;
	/* The version is `id`, and never changes. */
	bool version_is_fixed;
	uint64_t lease_ns;
	/* The interval between heartbeats. 0: only lease_renew() sends them. */
	uint64_t heartbeat_ns;
	/* LEASE_SUSPECT is reported when less than this is left. */
	uint64_t suspect_ns;
};

struct lease;
int lease_new(struct lease_keeper *keeper, const struct lease_options *options, struct lease **ret);
/* Starts the heartbeats of a row that was written with this version, by a request that was sent at
 * sent_ns (clock_boot_ns()). Call it once. 0 or -errno.
 *
 * If sent_ns is 0, it is not known when the row was written, nor whether anything of the lease is
 * left. The heartbeats then begin after lease_renew(). */
int lease_start(struct lease *lease, const char *version, uint64_t sent_ns);
/* Further changes that a renewal makes. */
struct lease_more {
	const struct change *changes;
	size_t n_changes;
	uint64_t lease_ns; /* the new length; 0: as before */
};
/* Renews the lease now. If a heartbeat is under way, waits for its end first. OK if the lease was
 * renewed, and REFUSED if it is lost or was stopped. Any other outcome is that of the failed
 * request, and the heartbeats continue. No request ends after until_ns; 0: there is no such
 * limit. */
enum outcome lease_renew(struct lease *lease, struct store_conn *conn,
	const struct lease_more *more, uint64_t until_ns, struct problem *ret_problem);
/* Ends the heartbeats. A heartbeat that is under way is abandoned. */
void lease_stop(struct lease *lease);
/* Stops and frees the lease. NULL is ignored. */
void lease_free(struct lease *lease);

/* Makes the version for a row that we are about to acquire, according to the options. */
void lease_version(const struct lease *lease, char ret[static LEASE_VERSION_MAX]);
/* Returns the row's version. *ret_pending is a version that a heartbeat without a clear answer may
 * have written instead, or "". Both are borrowed. Call it after lease_stop(). */
const char *lease_row_version(const struct lease *lease, const char **ret_pending);

/* Returns the clock_boot_ns() until which the row is surely ours. The lease counts from before the
 * last successful heartbeat was sent. Returns 0 before lease_start(). If that was called with
 * sent_ns 0, returns 0 until lease_renew() has succeeded. Lock-free. */
uint64_t lease_ends_ns(const struct lease *lease);
uint64_t lease_length_ns(const struct lease *lease);
/* Whether the row is no longer ours. Lock-free. */
bool lease_is_lost(const struct lease *lease);
/* The reason why the row was lost, as a sentence, and the new owner. Both are "" if the row is not
 * lost; the owner is "" also if unknown. Borrowed until lease_free(). */
const char *lease_loss(const struct lease *lease);
const char *lease_new_owner(const struct lease *lease);
/* Waits until at least `need_ns` of the lease are left, and returns true then. Returns false if the
 * lease is lost, or if abandon(), which is called every 100 ms, returns true. */
bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg);
