/* File systems that fstab(5) names and that are not mounted. A SOURCE on one of them looks like an
 * empty folder, and so does its folder in a SOURCE. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the nearest mount point at or above the path if `fstab` names it and
 * nothing is mounted there, otherwise 0. The path begins with the mount point; it is absolute and
 * has no links. `mounts` is /proc/self/mounts, or a file in its format. Returns 0 even if one of
 * the files cannot be read. */
size_t mount_missing_above(const char *fstab, const char *mounts, const char *path);
/* Whether this very path is the mount point that is missing. */
bool mount_is_missing_at(const char *fstab, const char *mounts, const char *path);
