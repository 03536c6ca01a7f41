/* The text of a job's file: one "name = value" a line, as s3once.conf(5) describes it. What names
 * there are and what values they take is the concern of job.h. */
#pragma once
#include "base/problem.h"
#include <stddef.h>

/* A line that is neither empty nor a comment. */
struct job_line {
	unsigned number;   /* from 1 */
	const char *name;  /* "" if there is none */
	const char *value; /* without the blanks around it, and without quotes if it had some */
	const char *wrong; /* NULL, or why the line cannot be read: a static sentence */
};

/* Immutable once read. The strings of the lines are in `text`. */
struct job_file {
	char *text;
	struct job_line *lines;
	size_t n;
};

/* Cuts n bytes into lines, in order. Every line that cannot be read is among them and says why.
 * Copies the bytes. Pure. Returns 0 or -ENOMEM; free with job_file_free. */
int job_file_parse(const char *bytes, size_t n, struct job_file **ret);
/* The same of a file of at most 1 MiB. Root is refused a file that others may write, since root
 * would do what they say. Returns 0; -ENOENT if there is no such file; another -errno; always with
 * a sentence about the file. */
int job_file_load(const char *path, struct job_file **ret, struct problem *ret_problem);
/* NULL is fine. */
void job_file_free(struct job_file *file);
