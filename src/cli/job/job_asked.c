/* The option --job of the commands that ask about what a job has uploaded. commands.c opens the job
 * before the command begins, and closes it behind it. What the unit of the job would find in its
 * environment is set here, so this comes before there are threads. The command line wins over the
 * job, and the job over nothing that was set already. */
#include "cli/job/job_asked.h"
#include "base/log.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "cli/open_marks.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct option job_asked_options[] = {
	VALUE("job", STRING, offsetof(struct job_asked, name), "JOB",
		"ask about this job: the marks, the services and the\n"
		"target are those of /etc/s3once/JOB.conf"),
	{NULL},
};

/* The path beside a job's file, "/etc/s3once/NAME" and the ending. */
static char *path_beside(const char *name, const char *ending)
{
	char *path;
	const int n = asprintf(&path, "%s/%s%s", job_folder(), name, ending);
	return must_have(n < 0 ? NULL : path);
}

/* Sets what the unit's EnvironmentFile= and its credentials set. */
static int read_environment(const char *name, struct problem *ret_problem)
{
	char *variables = path_beside(name, ".env");
	char *credentials = path_beside(name, ".credentials");
	struct job_file file = {0};
	const bool is_there = access(variables, R_OK) == 0;
	const int error = is_there ? job_file_load(variables, &file, ret_problem) : 0;
	if (error)
		problem_prefix(ret_problem, "%s", quote(variables).text);
	for (size_t i = 0; i < file.n; i++) {
		const struct job_line *line = &file.lines[i];
		if (line->wrong)
			log_warning("%s:%u: %s", quote(variables).text, line->number, line->wrong);
		else
			setenv(line->name, line->value, 0);
	}
	if (is_there && !error && getenv("S3ONCE_OPTIONS"))
		log_warning("%s: S3ONCE_OPTIONS is for runs alone; what it says is not looked at",
			quote(variables).text);
	if (!error && access(credentials, R_OK) == 0)
		setenv("AWS_SHARED_CREDENTIALS_FILE", credentials, 0);
	job_file_clear(&file);
	free(variables);
	free(credentials);
	return error ? -EINVAL : 0;
}

static void choose(const char **ret, const char *of_job)
{
	if (!*ret)
		*ret = of_job;
}

static void choose_access(struct access *access, const struct access *job)
{
	const char *chosen = access->marks;
	choose(&access->marks, job->marks);
	choose(&access->aws.endpoint_url, job->aws.endpoint_url);
	choose(&access->aws.dynamodb_endpoint_url, job->aws.dynamodb_endpoint_url);
	choose(&access->aws.region, job->aws.region);
	choose(&access->aws.profile, job->aws.profile);
	choose(&access->aws.ca_bundle, job->aws.ca_bundle);
	choose(&access->aws.checksum, job->aws.checksum);
	if (!access->aws.request_timeout_ms)
		access->aws.request_timeout_ms = job->aws.request_timeout_ms;
	if (!chosen)
		marks_of_units_choose(&access->marks);
}

int job_asked_open(struct job_asked *asked, struct access *access, int n, char **operands,
	struct problem *ret_problem)
{
	static char self[] = "run";
	char *const argv[] = {self, NULL};
	if (!asked->name)
		return n;
	if (!strchr(asked->name, '/') && read_environment(asked->name, ret_problem) < 0)
		return -EINVAL;
	if (job_open(asked->name, 1, argv, &asked->job) < 0)
		return problem_error(
			ret_problem, -EINVAL, "the job %s cannot be read", quote(asked->name).text);
	choose_access(access, &asked->job.options.access);
	for (int i = 0; i < n; i++)
		if (url_is_s3(operands[i]))
			return n;
	operands[n] = (char *)(uintptr_t)asked->job.target;
	return n + 1;
}

const char *job_asked_setting(const struct job_asked *asked, const char *option)
{
	const struct option_settings *settings = &asked->job.options.settings;
	const char *value = NULL;
	for (size_t i = 0; asked->name && i < settings->n; i++)
		if (strcmp(settings->settings[i].name, option) == 0)
			value = settings->settings[i].value;
	return value;
}
