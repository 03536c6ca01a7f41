/* A job: its file, and its options as those of a command line. */
#pragma once
#include "cli/push/push_options.h"

/* The text of a job's file has one "name = value" a line, as s3once.conf(5) describes it.
 * job_file_parse() does not check names and values; job_open() does.
 *
 * struct job_line is a line that is neither empty nor a comment. */
struct job_line {
	unsigned number;   /* from 1 */
	const char *name;  /* "" if there is none */
	const char *value; /* without the blanks around it, and without quotes if it had some */
	const char *wrong; /* NULL, or the reason why the line cannot be read: a static sentence */
};

/* Immutable once read. The strings of the lines are in `text`. */
struct job_file {
	char *text;
	struct job_line *lines;
	size_t n;
};

/* Splits a copy of n bytes into lines, in order. It includes lines that cannot be read, with the
 * reason in `wrong`. Pure. Free the result with job_file_clear(). */
void job_file_parse(const char *bytes, size_t n, struct job_file *ret);
/* Likewise for a file of at most 1 MiB. Root refuses a file that belongs to another user, or that
 * other users can write. Returns 0, -ENOENT if there is no such file, or another -errno. Every
 * error has a sentence about the file. */
int job_file_load(const char *path, struct job_file *ret, struct problem *ret_problem);
void job_file_clear(struct job_file *file); /* zeros are fine, too */

/* The variables that NAME.env and NAME.credentials, beside the file of a job, set for its unit. A
 * run outside of the unit may lack them, such as the access keys. */
struct job_variables {
	struct job_variable {
		char *text;  /* "NAME=VALUE", owned; the environment borrows it */
		bool is_set; /* it is set in the environment now, and was not before */
	} * list;
	size_t n;
};
/* Reads those of the two files that this user may read. Returns 0, or -EINVAL after an error that
 * was reported. Call job_variables_clear() in any case. */
int job_variables_read(const char *name, struct job_variables *ret);
void job_variables_clear(struct job_variables *variables);

#define JOB_SUFFIX ".conf"
/* Returns the path of a file of the job NAME: NAME and the ending, in the folder of the job. This
 * folder is S3ONCE_JOBS, if set; otherwise $XDG_CONFIG_HOME/s3once (or ~/.config/s3once), if this
 * user has NAME.conf there; otherwise /etc/s3once. So a job of this user hides a job of the host
 * with the same name. Root has no jobs of its own, only those of the host. The caller frees the
 * path. */
char *job_path(const char *name, const char *ending);
/* Returns the path of this user's own NAME.conf, whether or not it exists. NULL for root, and if
 * S3ONCE_JOBS is set. The caller frees it. */
char *job_own_path(const char *name);
/* Returns the name that is most like a mistyped one, among the jobs that job_path() finds. NULL:
 * none is similar. The caller frees it. */
char *job_nearest(const char *name);

/* A job: the upload described by a file, together with the options of a command line, which
 * override those of the file.
 *
 * It must not move while it is open: `command` has the address of `options`. */
struct job {
	char *name; /* "nginx" of nginx.conf */
	char *path; /* path of the file */
	struct job_file file;
	struct job_variables variables;
	struct push_options options; /* borrows from the file, the variables and argv */
	char **operands;             /* each source, then the target; borrowed strings */
	size_t n_sources;
	const char *target;
	struct command command; /* job_command, with the fields of `options` */
	/* Both by the index of an option (struct option_match): */
	const struct job_line *lines[OPTIONS_MAX]; /* the last line that sets it, or NULL */
	unsigned given[OPTIONS_MAX];               /* where it was set (enum set_in) */
	unsigned errors;                           /* errors reported so far */
};

enum job_use { JOB_ASKED_ABOUT, JOB_RUN };
/* Reads and checks a job. `wanted` is a path if it contains a slash. Otherwise it is the name of a
 * job, and job_path() finds its file. If there is no such file, and S3ONCE_SOURCE and S3ONCE_TARGET
 * are both set, these define the job.
 *
 * argv is a command line in the form of push's. Its options override those of the file, and its
 * operands are ignored. It stays borrowed and is not changed.
 *
 * If the job is given by name, its variables are used, too, but do not replace those in the
 * environment.
 *
 * JOB_ASKED_ABOUT: the job is not run. It becomes a dry run, so that its options may name files
 * that this user cannot write. Its variables stay in the environment until job_close(). JOB_RUN:
 * job_set_variables() sets the variables before each run.
 *
 * Every error is reported on stderr, with its line if it has one. Returns 0 or -EINVAL. Call
 * job_close() in any case. */
int job_open(const char *wanted, enum job_use use, int argc, char *const *argv, struct job *ret);
void job_close(struct job *job);

/* Sets the variables of the job that the environment lacks, or removes them again. Other threads
 * must not read the environment meanwhile. */
void job_set_variables(struct job *job);
void job_unset_variables(struct job *job);

/* Whether the command line has this option, or another one that sets the same thing. */
bool job_is_overridden(const struct job *job, const char *option);
/* Returns the last line of the file that sets the option. NULL: there is no such line, or the
 * command line overrides it. */
const struct job_line *job_line_of(const struct job *job, const char *option);

/* Functions for the commands run and watch, which take names of jobs. */

/* Runs the command for n jobs with these names. argv is the original command line, for job_open().
 * Returns the exit code. */
typedef int jobs_run(size_t n, char *const *names, int argc, char *const *argv);
/* Parses the command line of a command whose values are a struct push_options. Then prints the help
 * or an error, or calls `run`. Returns the exit code. */
int jobs_main(const struct command *command, jobs_run *run, int argc, char **argv);

/* Returns the worse of two exit codes, in the order of s3once-run(1). */
int jobs_worse_code(int a, int b);
/* Logs an error of this command if two jobs would write the same --metrics. Returns whether they
 * would. */
bool jobs_report_shared_metrics(const char *command, const struct job *a, const struct job *b);
/* Logs a warning if two files describe jobs with the same name, such as ./a/logs.conf and
 * ./b/logs.conf. */
void jobs_warn_of_shared_name(const char *command, const struct job *a, const struct job *b);
/* Logs a warning if the first job removes files at once that the second one uploads, too. */
void jobs_warn_of_removal(const char *command, const struct job *remover, const struct job *other);

/* The option --job NAME of the commands about the uploads of a job. It gives them the marks, the
 * services and the target of the job, as in the job's systemd unit.
 *
 * Zero the struct to start, and close its job in any case. The struct must not move while the job
 * is open. */
struct job_asked {
	const char *name; /* the argument of --job; NULL: without --job, and the rest is unused */
	struct job job;
};

/* --job, for the fields of struct job_asked. */
extern const struct option job_asked_options[];

/* Opens the job of --job, after options_parse() has found n operands. Without --job nothing
 * happens. Returns the number of operands, or -EINVAL after an error that was reported. access and
 * operands borrow from *asked.
 *
 * Each field of `access` that is not set gets the value of the job. The job's target becomes the
 * last operand, unless one of the operands is an s3:// URL. `operands` must have room for one more;
 * an argv with --job has. Unless `access` has marks, root gets those of the systemd units if the
 * job has none or `local` (marks_of_units_choose()).
 *
 * The variables of the job are set as well, so call this before there are threads. */
int job_asked_open(struct job_asked *asked, struct access *access, int n, char **operands);

/* Returns the job's value of an option about the storage of objects. NULL: none. Borrowed. */
const char *job_asked_setting(const struct job_asked *asked, const char *option);
