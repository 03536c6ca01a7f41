/* Where an SQLite file may be: in a folder that only its owner (or root) can write to, a regular
 * file of ours, not a link, on a local disk. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

struct sqlite_path {
	char *real;       /* without symlinks; the caller frees it */
	bool is_anothers; /* the file of another user, which root may read and not write */
};
/* Makes the folder (0700) and an empty file (0600) where they are missing, whatever the umask, and
 * checks both. With `only_read` root may have a file of another user. `name` is the path as
 * messages show it. 0, or -errno with a sentence (not for -ENOMEM). */
int sqlite_path_secure(const char *path, bool only_read, const char *name, struct sqlite_path *ret,
	struct problem *ret_problem);

/* Whether a statfs(2) type is a file system of the network, where SQLite's locks and shared memory
 * cannot be relied on. */
bool sqlite_path_is_remote(unsigned long type);
