/* The other side of a lease: how long a row's version has not changed, by our own elapsed time.
 * Kept on disk between runs of one boot, so that short-lived runs do not start the wait anew.
 *
 * What follows from it takes the whole row: whether a session is over is judged in
 * marks/session.c, whether a lock may be taken over in lock/lock_acquire.c. */
#pragma once
#include "base/random.h"
#include <stdbool.h>
#include <stdint.h>

#define OBSERVATIONS_MAX 256 /* remembered; of more, those seen unchanged for longest */

struct observation {
	char session[ID_CHARS + 1]; /* or what names a lock's row */
	char version[ID_CHARS + 1];
	uint64_t since_ns; /* clock_boot_ns() after the reply that first showed this version */
	uint64_t asked_ns; /* when the store was last asked; not kept on disk */
	bool over;         /* ended for good: never asked again */
};

/* Not thread-safe: whoever has it holds a lock of its own. */
struct observer {
	struct observation list[OBSERVATIONS_MAX];
	unsigned n;
};

/* The observation of a session, made if need be. Valid until the next call. */
struct observation *observer_of(struct observer *observer, const char *session);
/* Notes what a reply that arrived at now_ns showed. Returns how long, in ns, this version has been
 * seen unchanged. */
uint64_t observer_note(struct observation *observation, const char *version, uint64_t now_ns);

/* Reads what an earlier run of this boot (and time namespace) kept; anything else in the file is
 * ignored. */
void observer_load(struct observer *observer, const char *path);
/* Replaces the file (0600). Best effort: without it the next run only waits longer. */
void observer_save(const struct observer *observer, const char *path);
