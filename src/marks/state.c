#include "marks/state.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		int error = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (error)
			return error;
	}
	return 0;
}

int state_file(const char *name, char *ret, size_t size)
{
	const char *directory = getenv("STATE_DIRECTORY");
	const char *below = "";
	if (!directory || *directory != '/') {
		directory = getenv("XDG_STATE_HOME");
		below = "/s3once";
	}
	if (!directory || *directory != '/') { /* XDG: a relative path is none */
		directory = getenv("HOME");
		below = "/.local/state/s3once";
	}
	if (!directory || !*directory)
		return -ENOENT;
	/* systemd separates several by colons: the first is ours. */
	int n = snprintf(
		ret, size, "%.*s%s/%s", (int)strcspn(directory, ":"), directory, below, name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : make_parents(ret);
}
