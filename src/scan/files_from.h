/* A list of paths below one directory, as a stream in byte order of the paths. */
#pragma once
#include "scan/scan.h"

struct files_from;
/* Reads the whole list of options->files_from: one path a line, or NUL-terminated. Empty lines are
 * left out, "./", "//" and repeated paths collapse; CR is a byte like others. directory_fd stays
 * open and options are borrowed until files_from_close. 0, -EINVAL for a list that is none, or
 * another -errno, with a sentence. */
int files_from_open(int directory_fd, const struct scan_options *options, struct files_from **ret,
	struct problem *ret_problem);
/* As walk_next. A path that is absolute, holds "..", is not there or is not a file is a PROBLEM; so
 * is one that leads through a symlink, unless links are followed. */
int files_from_next(struct files_from *list, struct scan_entry *ret, struct problem *ret_problem);
void files_from_close(struct files_from *list);
