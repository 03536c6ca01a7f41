/* Compares fstab(5) with the current mounts; libc reads both. Nothing is cached, since this is
 * called only for a SOURCE without files (src/upload/feed.c) and for an empty folder below one
 * (src/scan/walk.c). The current mounts, which may be many, are read only if fstab names the
 * path. */
#include "scan/mounts.h"
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns the length of the longest mount point in the table at or above the path; 1 for the root,
 * and 0 if there is none. The table may name it with a slash at its end. */
static size_t nearest_mount_point(const char *table, const char *path)
{
	FILE *file = setmntent(table, "re");
	struct mntent entry;
	char buffer[4 * PATH_MAX];
	size_t longest = 0;
	if (!file)
		return 0;
	while (getmntent_r(file, &entry, buffer, sizeof buffer)) {
		size_t n = strlen(entry.mnt_dir);
		while (n > 1 && entry.mnt_dir[n - 1] == '/')
			n--;
		const bool is_above = strncmp(entry.mnt_dir, path, n) == 0 &&
				      (n == 1 || path[n] == '/' || !path[n]);
		if (is_above && n > longest)
			longest = n;
	}
	endmntent(file);
	return longest;
}

size_t mount_missing_above(const char *fstab, const char *mounts, const char *path)
{
	const size_t named = nearest_mount_point(fstab, path);
	const size_t mounted = nearest_mount_point(mounts, path);
	/* The root is always mounted. If it is not in the table, the table could not be read. */
	return mounted && named > mounted ? named : 0;
}

bool mount_is_missing_at(const char *fstab, const char *mounts, const char *path)
{
	const size_t n = strlen(path);
	return nearest_mount_point(fstab, path) == n &&
	       mount_missing_above(fstab, mounts, path) == n;
}
