#include "cli/job/job.h"
#include "base/log.h"
#include "base/quote.h"
#include "cli/job/job_lines.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/etc/s3once"
#define SUFFIX ".conf"

/* Reads the options of the command line into `ret`. They were read once before this and are known
 * to be right. */
static int read_words(const struct command *command, int argc, char *const *argv)
{
	struct problem problem;
	char **copy = calloc((size_t)argc + 1, sizeof *copy); /* since the words are rearranged */
	if (!copy)
		return -ENOMEM;
	memcpy(copy, argv, (size_t)argc * sizeof *copy);
	const int n = options_parse(command, argc, copy, &problem);
	free(copy);
	return n < 0 ? n : 0;
}

const char *job_folder(void)
{
	const char *folder = getenv("S3ONCE_JOBS");
	return folder && *folder ? folder : FOLDER;
}

static int find_file(const char *wanted, struct job *job)
{
	const char *slash = strrchr(wanted, '/');
	if (slash)
		job->path = strdup(wanted);
	else if (asprintf(&job->path, "%s/%s" SUFFIX, job_folder(), wanted) < 0)
		job->path = NULL;
	job->name = strdup(slash ? slash + 1 : wanted);
	if (!job->path || !job->name)
		return -ENOMEM;
	const size_t n = strlen(job->name);
	if (slash && n > strlen(SUFFIX) && strcmp(job->name + n - strlen(SUFFIX), SUFFIX) == 0)
		job->name[n - strlen(SUFFIX)] = 0;
	return 0;
}

/* The source and target of the environment, for a job without a file. */
static int read_environment(struct job *job)
{
	static const char text[] = "source =\ntarget =\n";
	const char *source = getenv("S3ONCE_SOURCE"), *target = getenv("S3ONCE_TARGET");
	if (!source || !*source || !target || !*target)
		return -ENOENT;
	const int error = job_file_parse(text, strlen(text), &job->file);
	if (error)
		return error;
	job->file->lines[0] = (struct job_line){.name = "source", .value = source};
	job->file->lines[1] = (struct job_line){.name = "target", .value = target};
	free(job->path);
	job->path = strdup("S3ONCE_SOURCE and S3ONCE_TARGET");
	return job->path ? 0 : -ENOMEM;
}

static int load_job(const char *wanted, struct job *job, struct problem *problem)
{
	int error = job_file_load(job->path, &job->file, problem);
	const bool is_name = !strchr(wanted, '/');
	if (error == -ENOENT && is_name)
		error = read_environment(job);
	if (error == -ENOENT && is_name)
		problem_set(problem,
			"there is no such file; name a job of another folder by its path, such as "
			"./%s" SUFFIX,
			quote(wanted).text);
	return error;
}

/* The line of the option that a sentence begins with, "--heartbeat is more than …"; 0: none. */
static unsigned line_of_sentence(const struct job *job, const char *sentence)
{
	char name[64] = "";
	if (sscanf(sentence, "--%63[a-z0-9-]", name) != 1)
		return 0;
	const struct job_line *line = job_line_of(job, name);
	return line ? line->number : 0;
}

/* Checks what a file does not say at all, and what its lines mean together. */
static void check_whole(struct job *job)
{
	struct problem problem;
	if (!job->n_sources)
		job_tell(job, 0, "nothing to upload: add a line source = /PATH");
	if (!job->target)
		job_tell(
			job, 0, "it does not say where to: add a line target = s3://BUCKET/PREFIX");
	if (job->errors)
		return;
	job->operands[job->n_sources] = (char *)(uintptr_t)job->target;
	if (push_options_complete(&job->options, (int)job->n_sources + 1, job->operands, &problem) <
			0 ||
		job_check_whole(&job->options.run, &problem) < 0)
		job_tell(job, line_of_sentence(job, problem.text), problem.text);
}

static int read_lines(struct job *job, int argc, char *const *argv)
{
	struct push_options overridden;
	struct option_group groups[JOB_GROUPS];
	struct command command = job_command(groups, &overridden);
	struct job_reading reading = {.overridden = &command};
	const size_t n = job->file->n + (size_t)argc;
	struct problem problem;
	command.given = &job->given;
	int error = push_options_init(n, &overridden, &problem);
	if (!error)
		error = read_words(&command, argc, argv);
	if (!error)
		error = push_options_init(n, &job->options, &problem);
	if (!error)
		error = job_check_new(&reading.check);
	if (!error) {
		job_read_lines(job, &reading);
		job_check_conflicts(job);
		error = read_words(&job->command, argc, argv);
	}
	job_check_free(reading.check);
	push_options_clear(&overridden);
	return error;
}

int job_open(const char *wanted, int argc, char *const *argv, struct job *ret)
{
	struct problem problem = {0};
	*ret = (struct job){0};
	ret->command = job_command(ret->groups, &ret->options);
	int error = find_file(wanted, ret);
	if (!error)
		error = load_job(wanted, ret, &problem);
	if (error && problem.text[0]) {
		job_tell(ret, 0, problem.text);
		return -EINVAL;
	}
	if (!error)
		ret->operands = calloc(ret->file->n + 2, sizeof *ret->operands);
	if (!error)
		error = ret->operands ? read_lines(ret, argc, argv) : -ENOMEM;
	if (error)
		log_error("%s: out of memory", quote(wanted).text);
	else
		check_whole(ret);
	ret->options.job = ret->name;
	return error || ret->errors ? -EINVAL : 0;
}

void job_close(struct job *job)
{
	push_options_clear(&job->options);
	job_file_free(job->file);
	free(job->operands);
	free(job->name);
	free(job->path);
}
