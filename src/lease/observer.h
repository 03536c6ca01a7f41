/* The observer's side of a lease: for how long a row's version has not changed, by the elapsed time
 * of this host. Observations are kept on disk between runs of one boot. Without that, each of
 * several short runs would begin to wait again.
 *
 * Nothing is decided here: marks/session.c decides whether a session is over, and
 * lock/lock_acquire.c whether a lock may be taken over. */
#pragma once
#include "base/random.h"
#include <stdbool.h>
#include <stdint.h>

#define OBSERVATIONS_MAX 256 /* if there are more, rows that are unchanged for longest are kept */

struct observation {
	char row[ID_CHARS + 1]; /* a session's id, or lock_observe.c's name for a row */
	char version[ID_CHARS + 1];
	uint64_t since_ns; /* clock_boot_ns() after the reply that first showed this version */
	uint64_t asked_ns; /* the time of the last request to the store; not kept on disk */
	bool over;         /* the session has ended for good, and is never asked for again */
};

/* Not thread-safe: the caller guards it with a mutex. */
struct observer {
	struct observation list[OBSERVATIONS_MAX];
	unsigned n;
};

/* Returns the observation of a session or of a lock's row, and adds one if there is none. The
 * pointer is valid until the next call. */
struct observation *observer_find_or_add(struct observer *observer, const char *row);
/* Notes the version that a reply showed, which arrived at now_ns. Returns for how long, in ns, this
 * version has been seen unchanged. */
uint64_t observer_note(struct observation *observation, const char *version, uint64_t now_ns);

/* Reads the observations of an earlier run of this boot (and time namespace); others in the file
 * are ignored. */
void observer_load(struct observer *observer, const char *path);
/* Replaces the file (0600). Returns 0 or -errno. Without the file, the next run only waits
 * longer. */
int observer_save(const struct observer *observer, const char *path);
