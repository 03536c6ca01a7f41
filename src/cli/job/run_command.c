/* `s3once run`: the jobs of files, one after another. */
#include "base/log.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/job/job.h"
#include "cli/push_command.h"
#include "cli/signals.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* push's, with other operands. */
static struct command run_command(
	struct option_group groups[static PUSH_GROUPS], struct push_options *options)
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

/* The worse one of two exit codes, as s3once-run(1) orders them. */
static int worse(int a, int b)
{
	static const int order[] = {S3ONCE_EXIT_FENCED, S3ONCE_EXIT_SETUP, S3ONCE_EXIT_USAGE,
		S3ONCE_EXIT_FILES, S3ONCE_EXIT_LIMIT, S3ONCE_EXIT_HELD};
	if (a >= S3ONCE_EXIT_STOPPED || b >= S3ONCE_EXIT_STOPPED)
		return a > b ? a : b;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return S3ONCE_EXIT_OK;
}

/* What keeps the jobs after this one from beginning is a signal alone. */
static int run_all(struct job *jobs, size_t n)
{
	int code = S3ONCE_EXIT_OK;
	for (size_t i = 0; i < n && code < S3ONCE_EXIT_STOPPED; i++)
		code = worse(code, push_run(&jobs[i].options));
	return code;
}

/* The second of two jobs would replace what the first one wrote. */
static int refuse_shared_metrics(const struct job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			const char *a = jobs[i].options.metrics_file;
			const char *b = jobs[j].options.metrics_file;
			if (!a || !b || strcmp(a, b) != 0)
				continue;
			log_error(
				"run: the jobs %s and %s would both write --metrics-file %s: give "
				"each job a file of its own",
				quote(jobs[j].name).text, quote(jobs[i].name).text, quote(a).text);
			return -EINVAL;
		}
	return 0;
}

static int open_and_run(size_t n, char *const *names, int argc, char *const *argv)
{
	struct job *jobs = calloc(n, sizeof *jobs);
	int error = jobs ? 0 : -ENOMEM;
	for (size_t i = 0; jobs && i < n; i++)
		if (job_open(names[i], argc, argv, &jobs[i]) < 0)
			error = -EINVAL;
	if (!error)
		error = refuse_shared_metrics(jobs, n);
	const int code = error ? S3ONCE_EXIT_USAGE : run_all(jobs, n);
	for (size_t i = 0; jobs && i < n; i++)
		job_close(&jobs[i]);
	free(jobs);
	return code;
}

/* Moves the names of the jobs to argv[0…]; prints the help if it is asked for. Returns 0 or -errno
 * as options_parse(). The words are checked by the way, for job_open() to read them again. */
static int find_names(int argc, char **argv, int *ret_n, struct problem *ret_problem)
{
	struct push_options options;
	struct option_group groups[PUSH_GROUPS];
	const struct command command = run_command(groups, &options);
	int n = push_options_init((size_t)argc, &options, ret_problem);
	if (n == 0)
		n = options_parse(&command, argc, argv, ret_problem);
	push_options_clear(&options);
	if (n == -ECANCELED)
		options_help(&command, stdout);
	if (n == 0) {
		problem_set(ret_problem, "name a job, such as NAME of /etc/s3once/NAME.conf");
		n = -EINVAL;
	}
	*ret_n = n;
	return n < 0 ? n : 0;
}

int run_main(int argc, char **argv)
{
	struct problem problem = {0};
	int n = 0, code;
	char **names = calloc((size_t)argc + 1, sizeof *names);
	if (!names)
		return S3ONCE_EXIT_SETUP;
	memcpy(names, argv, (size_t)argc * sizeof *names);
	const int r = find_names(argc, names, &n, &problem);
	if (r == -ECANCELED)
		code = S3ONCE_EXIT_OK;
	else if (r < 0)
		code = command_fail("run", S3ONCE_EXIT_USAGE, &problem);
	else
		code = open_and_run((size_t)n, names, argc, argv);
	free(names);
	return code;
}
