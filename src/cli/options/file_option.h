/* An option that names a file which the program makes. */
#pragma once
#include "base/problem.h"

/* All strings are borrowed. */
struct file_option {
	const char *name, *path;
	const char *example; /* a name for a file, for somebody who named a directory */
	const char *other;   /* what to do instead of making the directory: "name ..." */
};

/* Refuses a path that is a directory, and one whose directory does not exist. 0, or -EINVAL with a
 * sentence. */
int file_option_check(const struct file_option *option, struct problem *ret_problem);
