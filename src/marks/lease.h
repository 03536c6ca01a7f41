/* The holder's side of a lease: a row whose version a thread of its own renews by conditional
 * updates, on a connection of its own, so that no stuck transfer can delay it. Ownership is decided
 * by elapsed time alone (CLOCK_BOOTTIME). */
#pragma once
#include "base/random.h"
#include "marks/store.h"

#define LEASE_KEEP_S                                                                               \
	(7 * 24 * 3600) /* `expires` of a row: the store's time and this, at every heartbeat */

struct lease_options {
	struct store *store; /* borrowed until lease_stop */
	const char *pk;      /* of the row; sort key "-"; borrowed until lease_stop */
	uint64_t lease_ns, heartbeat_ns;
};

/* Once the row is lost it stays lost. A lease that only ran out (the store could not be reached)
 * may recover: as long as nobody ended the row, the next heartbeat that succeeds makes it ours
 * again, since it is conditional on the version nobody changed. */
struct lease;
int lease_new(const struct lease_options *options, struct lease **ret);
/* Starts renewing a row that was written with this version by a request sent at sent_ns
 * (clock_boot_ns()). Once. 0 or -errno. */
int lease_start(struct lease *lease, const char *version, uint64_t sent_ns);
/* Ends the heartbeats (one under way is abandoned) and frees. */
void lease_stop(struct lease *lease);

/* The clock_boot_ns() until which the row is surely ours; counted from before the last successful
 * heartbeat was sent. 0 before lease_start. Lock-free. */
uint64_t lease_ends_ns(const struct lease *lease);
/* The row is no longer ours. Lock-free. */
bool lease_is_lost(const struct lease *lease);
/* Why, a sentence; "" if it is not lost. Borrowed until lease_stop. */
const char *lease_loss(const struct lease *lease);
/* Blocks until at least `need_ns` of the lease are left or it is lost or abandon() says so, asked
 * every 100 ms; true in the first case. */
bool lease_await(struct lease *lease, uint64_t need_ns, bool (*abandon)(void *arg), void *arg);
