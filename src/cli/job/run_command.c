/* `s3once run` runs the jobs that files describe, one after another. job.h reads and checks a job,
 * and push_run() runs it. The files of all jobs are checked before the first job begins.
 * `s3once watch` uses the functions jobs_*(), too. */
#include "base/files.h"
#include "base/log.h"
#include "base/must_have.h"
#include "cli/commands.h"
#include "cli/job/job.h"
#include "cli/other_tools.h"
#include "cli/push/push_command.h"
#include "scan/open.h"
#include <stdlib.h>
#include <string.h>

int jobs_worse_code(int a, int b)
{
	/* From the worst on, without the codes of signals, which are worse than all others. */
	static const int order[] = {S3ONCE_EXIT_FENCED, S3ONCE_EXIT_SETUP, S3ONCE_EXIT_USAGE,
		S3ONCE_EXIT_FILES, S3ONCE_EXIT_LIMIT, S3ONCE_EXIT_HELD};
	if (a >= S3ONCE_EXIT_STOPPED || b >= S3ONCE_EXIT_STOPPED)
		return a > b ? a : b;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return S3ONCE_EXIT_OK;
}

bool jobs_report_shared_metrics(const char *command, const struct job *a, const struct job *b)
{
	const char *path = a->options.metrics_file, *other = b->options.metrics_file;
	if (!path || !other || strcmp(path, other) != 0)
		return false;
	log_error("%s: the jobs %s and %s both write --metrics %s: give each its own", command,
		quote(a->name).text, quote(b->name).text, quote(path).text);
	return true;
}

void jobs_warn_of_shared_name(const char *command, const struct job *a, const struct job *b)
{
	if (strcmp(a->name, b->name) == 0 && !same_file(a->path, b->path))
		log_warning(
			"%s: %s and %s are jobs of one name, so that fleet and status show only "
			"the one that ended last: rename one of the files",
			command, quote(a->path).text, quote(b->path).text);
}

/* Returns the SOURCE of `job` that is below one of the other's, or is one; NULL: there is none. */
static const char *find_source_below(const struct job *other, const struct job *job)
{
	for (size_t i = 0; i < other->n_sources; i++)
		for (size_t j = 0; j < job->n_sources; j++)
			if (path_below(other->operands[i], job->operands[j]))
				return job->operands[j];
	return NULL;
}

/* Whether all files of its SOURCEs are files of the job, as far as its options say. */
static bool takes_all(const struct job *job)
{
	return !job->options.run.n_rules && !job->options.run.files_from;
}

void jobs_warn_of_removal(const char *command, const struct job *remover, const struct job *other)
{
	const struct s3once_options *run = &remover->options.run;
	if (!run->removes || run->remove_after_s || !takes_all(remover) || !takes_all(other))
		return;
	const char *source = find_source_below(remover, other);
	if (!source)
		source = find_source_below(other, remover);
	if (source)
		log_warning("%s: the job %s removes each file of %s at once, and the job %s "
			    "uploads only those that it finds there before: let only the job that "
			    "runs last remove files, or give --delete-after an age",
			command, quote(remover->name).text, quote(source).text,
			quote(other->name).text);
}

int jobs_main(const struct command *command, jobs_run *run, int argc, char **argv)
{
	static const char example[] = "such as NAME of /etc/s3once/NAME.conf";
	struct push_options options;
	struct command_frame frame = {
		.command = command, .values = &options, .has_own_output = true};
	push_options_init(&options);
	/* The words are only checked here: job_open() reads them again, and `options` is unused. */
	const bool goes_on = frame_begin(&frame, argc, argv);
	push_options_clear(&options);
	if (goes_on && frame.n_operands == 0)
		problem_set(&frame.problem, "name a job, %s", example);
	for (int i = 0; i < frame.n_operands; i++)
		if (!*frame.operands[i])
			problem_set(&frame.problem, "the name of a JOB is empty: name one, %s",
				example);
	push_options_warn_of_variables();
	if (goes_on && !*frame.problem.text)
		frame.code = run((size_t)frame.n_operands, frame.operands, argc, frame.words);
	return frame_end(&frame);
}

/* The options of push, with jobs as the operands. */
static const struct command run_command = {
	.name = "run",
	.has_first_screen = true,
	.operands = "JOB...",
	.about = "Uploads the files of each JOB, one job after another. A JOB is the NAME of a\n"
		 "file /etc/s3once/NAME.conf (or your own ~/.config/s3once/NAME.conf), or a path\n"
		 "with a slash in it. The file has lines such as\n\n"
		 "    source = /var/log/nginx\n"
		 "    target = s3://my-logs/web1\n"
		 "    min-age = 10min\n\n"
		 "and may set every option below, by its name without dashes. Options on the\n"
		 "command line take precedence. All files are checked before the first job\n"
		 "begins.\n",
	.groups = push_groups,
	.conflicts = push_conflicts,
	.elsewhere = other_tools_options,
	.examples =
		"  s3once run nginx\n"
		"  s3once run --dry-run nginx journal\n"
		"  s3once run ./photos.conf\n"
		"  s3once config nginx       (prints each setting, and the line of the file)\n\n"
		"Exit codes: those of push; 2 also if a file is invalid: no job was begun then.\n"
		"With several jobs, the first that occurs of 129, 130, 143, 5, 3, 2, 1, 6, 4.\n"
		"For the lines of a file, see man s3once.conf\n",
};

/* Whether the job reads its list of files from standard input. */
static bool reads_standard_input(const struct job *job)
{
	const char *list = job->options.run.files_from;
	return list && strcmp(list, "-") == 0;
}

/* Opens all jobs, even after an error, so that all errors are reported. Returns whether there was
 * none. */
static bool open_all(
	size_t n, char *const *names, int argc, char *const *argv, struct job *ret_jobs)
{
	bool is_wrong = false;
	for (size_t i = 0; i < n; i++) {
		is_wrong |= job_open(names[i], JOB_RUN, argc, argv, &ret_jobs[i]) < 0;
		if (n > 1 && !is_wrong && reads_standard_input(&ret_jobs[i])) {
			log_error("run: --files-from - is for one job: the first would read it "
				  "all");
			is_wrong = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; !is_wrong && j < i; j++)
			is_wrong = jobs_report_shared_metrics("run", &ret_jobs[j], &ret_jobs[i]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; !is_wrong && j < i; j++) {
			jobs_warn_of_shared_name("run", &ret_jobs[j], &ret_jobs[i]);
			jobs_warn_of_removal("run", &ret_jobs[j], &ret_jobs[i]);
		}
	return !is_wrong;
}

/* Runs the jobs one after another, and returns the worst exit code. A failed job does not keep the
 * next ones from running; only a signal does. */
static int run_all(struct job *jobs, size_t n)
{
	int code = S3ONCE_EXIT_OK;
	for (size_t i = 0; i < n && code < S3ONCE_EXIT_STOPPED; i++) {
		job_set_variables(&jobs[i]);
		code = jobs_worse_code(code, push_run(&jobs[i].options, NULL));
		job_unset_variables(&jobs[i]);
	}
	return code;
}

/* Opens all jobs, and then runs them. If one of them has an error, none is run. */
static int open_and_run(size_t n, char *const *names, int argc, char *const *argv)
{
	struct job *jobs = must_have(calloc(n, sizeof *jobs));
	const bool may_run = open_all(n, names, argc, argv, jobs);
	const int code = may_run ? run_all(jobs, n) : S3ONCE_EXIT_USAGE;
	for (size_t i = 0; i < n; i++)
		job_close(&jobs[i]);
	free(jobs);
	return code;
}

int run_main(int argc, char **argv)
{
	return jobs_main(&run_command, open_and_run, argc, argv);
}
