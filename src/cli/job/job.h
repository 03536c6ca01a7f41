/* A job: its file, and its options as the command line has them. */
#pragma once
#include "cli/push/push_options.h"

/* The text of a job's file: one "name = value" a line, as s3once.conf(5) describes it. What names
 * there are and what values they take is the concern of job.h.
 *
 * A line that is neither empty nor a comment. */
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
 * Copies the bytes. Pure. Free with job_file_clear. */
void job_file_parse(const char *bytes, size_t n, struct job_file *ret);
/* The same of a file of at most 1 MiB. Root is refused a file that others may write, since root
 * would do what they say. Returns 0; -ENOENT if there is no such file; another -errno; always with
 * a sentence about the file. */
int job_file_load(const char *path, struct job_file *ret, struct problem *ret_problem);
void job_file_clear(struct job_file *file); /* zeros are fine, too */

/* A job is what a file says is to be pushed, and the options of a command line, which win over it.

 *
 * It must not move while it is open: the options are found by their address. */
struct job {
	char *name; /* "nginx" of /etc/s3once/nginx.conf */
	char *path; /* of the file */
	struct job_file file;
	struct push_options options; /* borrows from the file and from argv */
	char **operands;             /* each source, then the target; borrowed strings */
	size_t n_sources;
	const char *target;
	struct command command; /* job_command, with the fields of `options` */
	/* By the option's index: */
	const struct job_line *lines[OPTIONS_MAX]; /* the last line that sets it, or NULL */
	unsigned given[OPTIONS_MAX];
	unsigned errors; /* told so far */
};

/* Reads and checks a job. `wanted` is a path if there is a slash in it, else the name of a file
 * NAME.conf in the folder S3ONCE_JOBS, which is /etc/s3once. If there is no such file, the job is
 * what S3ONCE_SOURCE and S3ONCE_TARGET say, as long as both are set. argv is a command line that
 * push could read: its options win over the file's, its operands are not looked at, and it stays
 * borrowed and as it is. Every error of the file is told on stderr, with its line. Returns 0 or
 * -EINVAL; job_close() in any case. */
int job_open(const char *wanted, int argc, char *const *argv, struct job *ret);
void job_close(struct job *job);

/* Whether the command line has this option, or one that takes its place. */
bool job_is_overridden(const struct job *job, const char *option);
/* The last line that says the option's value, or NULL if there is none or the command line wins. */
const struct job_line *job_line_of(const struct job *job, const char *option);

/* What the commands share that take the names of jobs: run and watch.
 *
 * Does it for n jobs, of these names; argv is that of jobs_main(), for job_open(). Returns the exit
 * code. */
typedef int jobs_run(size_t n, char *const *names, int argc, char *const *argv);
/* Reads the command line, prints --help or what is wrong with it, and runs the command, whose
 * values are a struct push_options. */
int jobs_main(const struct command *command, jobs_run *run, int argc, char **argv);

/* The worse one of two exit codes, as s3once-run(1) orders them. */
int jobs_worse_code(int a, int b);
/* Whether two jobs would write the same --metrics-file, which is said as an error of the command.
 */
bool jobs_share_metrics(const char *command, const struct job *a, const struct job *b);

/* The option --job NAME of the commands that ask about what a job has uploaded: whose marks, which
 * services and which target, as the unit that runs the job finds them.
 *
 * Zero it to start, and close its job in any case. It must not move while that is open. */
struct job_asked {
	const char *name; /* of --job; NULL: none was given, and the rest is unused */
	struct job job;
};

/* --job, for the fields of struct job_asked. */
extern const struct option job_asked_options[];

/* After options_parse() has found n operands. Without --job nothing happens. Else what `access`
 * leaves open becomes what the job says, and its target becomes the last operand, unless one of
 * them is an s3:// URL. There has to be room for one operand more, as there is in the argv that had
 * --job. Root is led to the marks of the systemd units, if the job keeps its marks on this host and
 * the units keep some.
 *
 * The job's environment is set where it is not set yet: by /etc/s3once/NAME.env, and by
 * NAME.credentials, as far as this user may read them. So call it before there are threads. What
 * S3ONCE_OPTIONS says is not looked at. Returns the number of operands, or -EINVAL with a sentence;
 * access and operands borrow from *asked. */
int job_asked_open(struct job_asked *asked, struct access *access, int n, char **operands,
	struct problem *ret_problem);

/* What the job says of an option that says how objects are stored; NULL: nothing. Borrowed. */
const char *job_asked_setting(const struct job_asked *asked, const char *option);
