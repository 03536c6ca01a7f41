#include "cli/job/jobs.h"
#include "base/log.h"
#include "base/quote.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int jobs_worse_code(int a, int b)
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

bool jobs_share_metrics(const char *command, const struct job *a, const struct job *b)
{
	const char *path = a->options.metrics_file, *other = b->options.metrics_file;
	if (!path || !other || strcmp(path, other) != 0)
		return false;
	log_error("%s: the jobs %s and %s would both write --metrics-file %s: give each job a file "
		  "of its own",
		command, quote(a->name).text, quote(b->name).text, quote(path).text);
	return true;
}

/* Moves the names of the jobs to argv[0…]; prints the help if it is asked for. Returns 0 or -errno
 * as options_parse(). The words are checked by the way, for job_open() to read them again. */
static int find_names(const struct jobs_command *command, int argc, char **argv, int *ret_n,
	struct problem *ret_problem)
{
	struct push_options options;
	struct option_group groups[JOB_GROUPS];
	const struct command table = command->command(groups, &options);
	int n = push_options_init((size_t)argc, &options, ret_problem);
	if (n == 0)
		n = options_parse(&table, argc, argv, ret_problem);
	push_options_clear(&options);
	if (n == -ECANCELED)
		options_help(&table, stdout);
	if (n == 0) {
		problem_set(ret_problem, "name a job, such as NAME of /etc/s3once/NAME.conf");
		n = -EINVAL;
	}
	for (int i = 0; i < n; i++)
		if (!*argv[i]) {
			problem_set(ret_problem, "the name of a JOB is empty: name one, such as "
						 "NAME of /etc/s3once/NAME.conf");
			return -EINVAL;
		}
	*ret_n = n;
	return n < 0 ? n : 0;
}

int jobs_main(const struct jobs_command *command, int argc, char **argv)
{
	struct problem problem = {0};
	int n = 0, code;
	char **names = calloc((size_t)argc + 1, sizeof *names);
	if (!names)
		return S3ONCE_EXIT_SETUP;
	memcpy(names, argv, (size_t)argc * sizeof *names);
	const int r = find_names(command, argc, names, &n, &problem);
	if (r == -ECANCELED)
		code = S3ONCE_EXIT_OK;
	else if (r < 0)
		code = command_fail(argv[0], S3ONCE_EXIT_USAGE, &problem);
	else
		code = command->run((size_t)n, names, argc, argv);
	free(names);
	return code;
}
