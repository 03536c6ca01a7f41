/* The observer's side of a lease: for how long a row's version has not changed, by our own elapsed
 * time. Observations are kept on disk between runs of one boot, so that runs that are short do not
 * begin to wait anew.
 *
 * The whole row is judged elsewhere: whether a session is over in marks/session.c, and whether a
 * lock may be taken over in lock/lock_acquire.c. */
#pragma once
#include "base/random.h"
#include <stdbool.h>
#include <stdint.h>

#define OBSERVATIONS_MAX 256 /* of more, those of the rows unchanged for longest are kept */

struct observation {
	char row[ID_CHARS + 1]; /* a session's id, or what lock_acquire.c calls a lock's row */
	char version[ID_CHARS + 1];
	uint64_t since_ns; /* clock_boot_ns() after the reply that first showed this version */
	uint64_t asked_ns; /* when the store was last asked; not kept on disk */
	bool over;         /* ended for good: never asked again */
};

/* Not thread-safe: the caller guards it with a mutex. */
struct observer {
	struct observation list[OBSERVATIONS_MAX];
	unsigned n;
};

/* Returns the observation of a session or of a lock's row, and adds it if there is none. Valid
 * until the next call. */
struct observation *observer_of(struct observer *observer, const char *row);
/* Notes the version that a reply showed, which arrived at now_ns. Returns for how long, in ns, this
 * version has been seen unchanged. */
uint64_t observer_note(struct observation *observation, const char *version, uint64_t now_ns);

/* Reads what an earlier run of this boot (and time namespace) kept; anything else in the file is
 * ignored. */
void observer_load(struct observer *observer, const char *path);
/* Replaces the file (0600). Best effort: without it the next run only waits longer. */
void observer_save(const struct observer *observer, const char *path);
