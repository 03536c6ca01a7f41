/* What the commands share that take the names of jobs: run and watch. */
#pragma once
#include "cli/job/job.h"

struct jobs_command {
	/* The options of the command, for push's fields. */
	struct command (*command)(
		struct option_group groups[static JOB_GROUPS], struct push_options *options);
	/* Does it for n jobs, of these names; argv is that of jobs_main(), for job_open(). Returns
	 * the exit code. */
	int (*run)(size_t n, char *const *names, int argc, char *const *argv);
};

/* Reads the command line, prints --help or what is wrong with it, and runs the command. */
int jobs_main(const struct jobs_command *command, int argc, char **argv);

/* The worse one of two exit codes, as s3once-run(1) orders them. */
int jobs_worse_code(int a, int b);
/* Whether two jobs would write the same --metrics-file, which is said as an error of the command.
 */
bool jobs_share_metrics(const char *command, const struct job *a, const struct job *b);
