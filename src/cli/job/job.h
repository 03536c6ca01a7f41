/* A job is what a file says is to be pushed, and the options of a command line, which win over it.
 */
#pragma once
#include "cli/job/job_file.h"
#include "cli/push/push_options.h"

/* It must not move while it is open: the options are found by their address. */
struct job {
	char *name; /* "nginx" of /etc/s3once/nginx.conf */
	char *path; /* of the file */
	struct job_file *file;
	struct push_options options; /* borrows from the file and from argv */
	char **operands;             /* each source, then the target; borrowed strings */
	size_t n_sources;
	const char *target;
	struct option_group groups[JOB_GROUPS];
	struct command command; /* job_command(), with the fields of `options` */
	/* By the option's index: */
	const struct job_line *lines[OPTIONS_MAX]; /* the last line that sets it, or NULL */
	struct options_given given;                /* what the command line says */
	unsigned errors;                           /* told so far */
};

/* Reads and checks a job. `wanted` is a path if there is a slash in it, else the name of a file
 * NAME.conf in the folder S3ONCE_JOBS, which is /etc/s3once. If there is no such file, the job is
 * what S3ONCE_SOURCE and S3ONCE_TARGET say, as long as both are set. argv is a command line that
 * push could read: its options win over the file's, its operands are not looked at, and it stays
 * borrowed and as it is. Every error of the file is told on stderr, with its line. Returns 0 or
 * -EINVAL; job_close() in any case. */
int job_open(const char *wanted, int argc, char *const *argv, struct job *ret);
void job_close(struct job *job);

/* Where jobs are found by their names: S3ONCE_JOBS, or /etc/s3once. */
const char *job_folder(void);
/* Whether the command line has this option, or one that takes its place. */
bool job_is_overridden(const struct job *job, const char *option);
/* The last line that says the option's value, or NULL if there is none or the command line wins. */
const struct job_line *job_line_of(const struct job *job, const char *option);
