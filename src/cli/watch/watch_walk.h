/* The folders of a tree, for whoever watches them. */
#pragma once
#include "scan/filter/filter.h"
#include <stdbool.h>

struct watch_walk_options {
	const char *root; /* the SOURCE, which the filter's paths are relative to */
	const char *from; /* it, or a folder below it; its own path is not filtered if it is it */
	struct filter *filter; /* NULL: all */
	bool follow;           /* symbolic links are */
	/* Called for each folder before its own folders are read, so that none is missed that is
	 * made after it was watched. */
	void (*folder)(void *arg, const char *path);
	void *arg;
};

/* All folders from there on that the filter does not exclude. What cannot be read, or is gone by
 * now, is left out. */
void watch_walk(const struct watch_walk_options *options);

/* What the file system is called if other hosts may change it unnoticed, else NULL. Static. */
const char *watch_walk_remote(const char *path);
