/* Where an SQLite file may be: in a folder that only we (or root) can write to, a regular file of
 * ours, not a link, on a local disk. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

/* Makes the folder (0700) and an empty file (0600) where they are missing, whatever the umask, and
 * checks both. `name` is the path as messages show it. *ret_path is the path without symlinks; the
 * caller frees it. 0, or -errno with a sentence (not for -ENOMEM). */
int sqlite_path_secure(
	const char *path, const char *name, char **ret_path, struct problem *ret_problem);

/* Whether a statfs(2) type is a file system of the network, where SQLite's locks and shared memory
 * cannot be relied on. */
bool sqlite_path_is_remote(unsigned long type);
