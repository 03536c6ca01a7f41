/* The file of --log-file. Lines are appended to it, each with one write, so that several processes
 * can share it. It is opened by the first line, and looked for before each line: after logrotate
 * has renamed or removed it, the next line goes to a new file of its name. One thread at a time. */
#pragma once
#include "base/problem.h"
#include <stddef.h>

struct log_file;

/* Whether lines can be appended to the file, as far as that is known without making it. 0, or
 * -EINVAL with a sentence. */
int log_file_check(const char *path, struct problem *ret_problem);

/* Copies the path. */
struct log_file *log_file_new(const char *path);
/* Returns 0, or -errno of the first line that could not be written. NULL is fine. */
int log_file_free(struct log_file *file);
/* Appends a line with its '\n'; it begins as a line of its own even after one that failed. 0 or
 * -errno. The first error of a row of errors is said on standard error. */
int log_file_write(struct log_file *file, const char *line, size_t n);
