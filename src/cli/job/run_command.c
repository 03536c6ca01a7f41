/* `s3once run`: the jobs of files, one after another. */
#include "cli/commands.h"
#include "cli/job/jobs.h"
#include "cli/push/push_command.h"
#include <errno.h>
#include <stdlib.h>

/* push's, with other operands. */
static struct command run_command(
	struct option_group groups[static JOB_GROUPS], struct push_options *options)
{
	struct command command = push_command(groups, options);
	command.name = "run";
	command.operands = "JOB...";
	command.about =
		"Uploads what each JOB says, one after another. A JOB is a NAME, of the file\n"
		"/etc/s3once/NAME.conf, or the path of a file, with a slash in it. The file has\n"
		"lines such as\n"
		"\n"
		"    source = /var/log/nginx\n"
		"    target = s3://my-logs/web1\n"
		"    min-age = 10min\n"
		"\n"
		"and may have every option below, by its name without dashes. Options that are\n"
		"given here win over it. All files are checked before the first job begins.\n";
	command.examples =
		"  s3once run nginx\n"
		"  s3once run --dry-run nginx journal\n"
		"  s3once run ./photos.conf\n"
		"  s3once config nginx       (prints what is in force, and which line says it)\n"
		"\n"
		"Exit codes: those of push; 2 also if a file is invalid, and then nothing was\n"
		"done. Of several jobs it is the first that occurs of 129, 130, 143, 5, 3, 2, 1, 6, 4.\n"
		"More: man s3once-run, man s3once.conf\n";
	return command;
}

/* Only a signal keeps the next jobs from beginning. */
static int run_all(struct job *jobs, size_t n)
{
	int code = S3ONCE_EXIT_OK;
	for (size_t i = 0; i < n && code < S3ONCE_EXIT_STOPPED; i++)
		code = jobs_worse_code(code, push_run(&jobs[i].options));
	return code;
}

static int open_and_run(size_t n, char *const *names, int argc, char *const *argv)
{
	struct job *jobs = calloc(n, sizeof *jobs);
	int error = jobs ? 0 : -ENOMEM;
	for (size_t i = 0; jobs && i < n; i++)
		if (job_open(names[i], argc, argv, &jobs[i]) < 0)
			error = -EINVAL;
	for (size_t i = 0; !error && i < n; i++)
		for (size_t j = 0; !error && j < i; j++)
			error = jobs_share_metrics("run", &jobs[j], &jobs[i]) ? -EINVAL : 0;
	const int code = error ? S3ONCE_EXIT_USAGE : run_all(jobs, n);
	for (size_t i = 0; jobs && i < n; i++)
		job_close(&jobs[i]);
	free(jobs);
	return code;
}

int run_main(int argc, char **argv)
{
	const struct jobs_command command = {run_command, open_and_run};
	return jobs_main(&command, argc, argv);
}
