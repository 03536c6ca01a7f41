#include "store/state_folder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The mode is set again because the umask may have taken bits. */
static int make_folder(const char *path)
{
	if (mkdir(path, 0700))
		return errno == EEXIST ? 0 : -errno;
	return chmod(path, 0700) ? -errno : 0;
}

int state_make_folders(const char *path)
{
	char *copy = strdup(path);
	int r = copy ? 0 : -ENOMEM;
	char *slash = copy && *copy ? strchr(copy + 1, '/') : NULL;

	for (; slash && !r; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_folder(copy);
		*slash = '/';
	}
	free(copy);
	return r;
}

int state_path(const char *name, char *ret, size_t size)
{
	const char *directory = getenv("STATE_DIRECTORY"), *below = "", *several = ":";
	if (!directory || *directory != '/') {
		directory = getenv("XDG_STATE_HOME");
		below = "/s3once";
		several = "";
	}
	if (!directory || *directory != '/') { /* XDG: a relative path is none */
		directory = getenv("HOME");
		below = "/.local/state/s3once";
	}
	if (!directory || *directory != '/') /* each folder it ran in would have marks of its own */
		return -ENOENT;
	/* systemd separates several by colons: the first is ours. */
	int n = snprintf(
		ret, size, "%.*s%s/%s", (int)strcspn(directory, several), directory, below, name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int state_file(const char *name, char *ret, size_t size)
{
	int error = state_path(name, ret, size);
	return error ? error : state_make_folders(ret);
}
