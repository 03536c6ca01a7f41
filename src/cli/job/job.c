/* Reads a job's file. The table of options is the one of the command line, and an option of the
 * command line overrides that of the file.
 *
 * For --job, it also finds where the job keeps its marks. */
#include "cli/job/job.h"
#include "base/log.h"
#include "base/must_have.h"
#include "base/text.h"
#include "cli/open_marks.h"
#include "s3/s3_headers.h"
#include "scan/filter/filter.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Throwaway objects that check the values of patterns and of settings. Only the functions that add
 * a value to a filter or to headers can tell whether it is valid, so each value is added to these.
 * The run makes its own. */
struct checker {
	struct filter *filter;
	struct s3_headers *headers;
};

/* Reports an error of the file, and counts it. If `line` is 0, it is about the file as a whole. */
__attribute__((format(printf, 3, 4))) static void add_error(
	struct job *job, unsigned line, const char *format, ...)
{
	char number[16] = "", sentence[PROBLEM_SENTENCE_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(sentence, sizeof sentence, format, ap);
	va_end(ap);
	if (line)
		snprintf(number, sizeof number, ":%u", line);
	log_error("%s%s: %s", quote(job->path).text, number, sentence);
	job->errors++;
}

/* Reports an unknown name, with a similar known name. --help is not for files. */
static void explain_unknown(struct job *job, const struct job_line *line)
{
	static const char *const own[] = {"source", "target"};
	const char *where = options_elsewhere(&job->command, line->name);
	const char *nearest = nearest_name(line->name, own, 2);
	if (!nearest)
		nearest = options_nearest(&job->command, line->name);
	if (where)
		add_error(job, line->number, "there is no %s: %s", line->name, where);
	else if (nearest && strcmp(nearest, "help") != 0)
		add_error(job, line->number, "unknown name '%s'; did you mean %s?",
			quote(line->name).text, nearest);
	else
		add_error(job, line->number,
			"unknown name '%s'; there are source, target and the options of "
			"s3once push --help all without their dashes, but for those of pipes",
			quote(line->name).text);
}

/* Checks a pattern or a setting, which option_set() takes without a look at it. `field` is the list
 * to which option_set() has added the value. Returns 0, or -errno with a sentence. */
static int check_list_value(struct checker *checker, const struct option *option, const void *field,
	const char *value, struct problem *ret_problem)
{
	if (option->type == OPTION_SETTING)
		return s3_headers_set(checker->headers, option->name, value, ret_problem);
	const struct option_rules *added = field;
	const int error =
		filter_add_rule(checker->filter, &added->rules[added->n - 1], ret_problem);
	if (error == -EINVAL)
		problem_prefix(ret_problem, "%s", option->name);
	return error;
}

/* Notes the line in job->lines, and sets the option that it names, unless the command line
 * overrides the option. An overridden value is checked all the same. */
static void set_option(struct job *job, struct checker *checker, const struct job_line *line)
{
	struct option_match match;
	struct problem problem = {0};
	/* Receives an overridden value, which is only checked. It has room for any type of field:
	 * options that add to a list are never overridden. */
	union {
		int yes;
		unsigned number;
		uint64_t quantity;
		const char *string;
	} unused = {.quantity = 0};
	if (!options_find(&job->command, line->name, &match) || match.option->type == OPTION_HELP) {
		explain_unknown(job, line);
		return;
	}
	const bool is_list = option_is_list(match.option);
	const bool is_overridden = option_is_overridden(&job->command, &match, SET_IN_WORDS);
	void *field = is_overridden ? &unused : match.field;
	const struct job_line *before = job->lines[match.index];
	job->lines[match.index] = line;
	job->given[match.index] |= SET_IN_FILE;
	int error = option_set(match.option, field, line->value, &problem);
	/* Only option_set() leaves it to its caller to name the option in the sentence. */
	if (error)
		option_name_problem(&job->command, match.option, line->name, &problem);
	else if (is_list)
		error = check_list_value(checker, match.option, field, line->value, &problem);
	if (error)
		add_error(job, line->number, "%s", problem.text);
	else if (before && !is_list)
		add_error(job, line->number, "%s: line %u says it already", line->name,
			before->number);
}

/* Reads the options of the command line. There can be no error: the command has read them once
 * before, and would have ended with it. */
static void read_words(struct job *job, int argc, char *const *argv)
{
	struct problem problem;
	/* options_parse() rearranges the words, which are the caller's. */
	char **copy = must_have(calloc((size_t)argc + 1, sizeof *copy));
	memcpy(copy, argv, (size_t)argc * sizeof *copy);
	options_parse(&job->command, argc, copy, &problem);
	free(copy);
}

/* Notes the line of the job's target, of which there is one. */
static void set_target(struct job *job, const struct job_line *line)
{
	struct s3_url url;
	struct problem problem;
	if (job->target)
		add_error(job, line->number, "target: there is one before; a job has one target");
	else if (url_parse_target(line->value, &url, &problem) < 0)
		add_error(job, line->number, "target: %s", problem.text);
	job->target = line->value;
}

/* Takes one line of the file. */
static void read_line_of_job(struct job *job, struct checker *checker, const struct job_line *line)
{
	if (line->wrong) {
		add_error(job, line->number, "%s", line->wrong);
	} else if (strcmp(line->name, "source") == 0) {
		job->operands[job->n_sources++] = (char *)(uintptr_t)line->value;
		if (*line->value != '/')
			add_error(job, line->number, "source: '%s' is not an absolute path",
				quote(line->value).text);
	} else if (strcmp(line->name, "target") == 0) {
		set_target(job, line);
	} else {
		set_option(job, checker, line);
	}
}

/* Reads the options of the command line, of the file and of the environment. The command line is
 * read twice: first to know which lines it overrides, and again after the file, so that its values
 * are the ones that stay. Lines of the file override the environment. Reading goes on after an
 * error, so that all errors of the file are reported. */
static void read_options(struct job *job, int argc, char *const *argv)
{
	struct checker checker = {0};
	struct problem problem;
	push_options_init(&job->options);
	/* This sets job->given, which stays. The values are set again later. */
	read_words(job, argc, argv);
	push_options_clear(&job->options);
	push_options_init(&job->options);
	const bool has_memory =
		filter_new(&checker.filter) == 0 && s3_headers_new(&checker.headers) == 0;
	must_have(has_memory ? job : NULL);
	options_take_list_variables(&job->command);
	for (size_t i = 0; i < job->file.n; i++)
		read_line_of_job(job, &checker, &job->file.lines[i]);
	read_words(job, argc, argv);
	if (options_take_variables(&job->command, &problem) < 0)
		add_error(job, 0, "%s", problem.text);
	filter_free(checker.filter);
	s3_headers_free(checker.headers);
}

bool job_is_overridden(const struct job *job, const char *option)
{
	struct option_match match;
	return options_find(&job->command, option, &match) &&
	       option_is_overridden(&job->command, &match, SET_IN_WORDS);
}

const struct job_line *job_line_of(const struct job *job, const char *option)
{
	struct option_match match;
	if (!options_find(&job->command, option, &match) || job_is_overridden(job, option))
		return NULL;
	return job->lines[match.index];
}

/* Returns the name of an option in the form in which it was given: the variable of the environment,
 * the name in a line of the file, or the option of the command line, with its dashes. */
static struct option_variable name_as_given(const struct job *job, const char *option)
{
	struct option_match match;
	struct option_variable as;
	if (options_find(&job->command, option, &match) &&
		(job->given[match.index] & SET_IN_ENVIRONMENT))
		return option_variable(match.option);
	snprintf(as.name, sizeof as.name, "%s%s", job_line_of(job, option) ? "" : "--", option);
	return as;
}

/* Adds an error of the run's options. If the sentence begins with an option, the error is reported
 * with the line that sets this option. Without such a line, a variable or the command line has set
 * it, and the sentence names the option as it was given there.
 */
static void add_option_error(struct job *job, const char *sentence)
{
	char name[OPTION_NAME_MAX + 1];
	const char *rest = option_skip_in_sentence(sentence, name);
	const struct job_line *line = job_line_of(job, name);
	if (!line && *name)
		add_error(job, 0, "%s%s", name_as_given(job, name).name, rest);
	else
		add_error(job, line ? line->number : 0, "%s", sentence);
}

/* Reports all options that contradict each other, each pair with the later one of its lines. */
static void report_conflicts(struct job *job)
{
	const struct option_conflict *c = job->command.conflicts;
	for (; (c = options_next_conflict(&job->command, c)); c++) {
		const struct job_line *a = job_line_of(job, c->a), *b = job_line_of(job, c->b);
		const unsigned line_a = a ? a->number : 0, line_b = b ? b->number : 0;
		add_error(job, line_a > line_b ? line_a : line_b,
			"%s and %s contradict each other: %s", name_as_given(job, c->a).name,
			name_as_given(job, c->b).name, c->why ? c->why : "choose one");
	}
}

/* Checks the options by making a run of them, which never begins. This reads the files that the
 * options name, but not the list of --files-from, which may be standard input. Returns 0, or -errno
 * with a sentence. */
static int check_by_run(const struct job *job, struct problem *ret_problem)
{
	struct s3once_options checked = job->options.run;
	struct s3once_push *push;
	checked.files_from = NULL;
	checked.dry_run = 1; /* a dry run makes neither marks nor other files */
	const int error =
		s3once_push_new(&checked, &push, ret_problem->text, sizeof ret_problem->text);
	if (!error)
		s3once_push_free(push);
	else if (error != -EINVAL)
		problem_set(ret_problem, "out of memory");
	return error;
}

/* Checks that the job is complete, fills in its options, and checks their combination, as a run
 * does when it begins. */
static void check_whole(struct job *job)
{
	struct problem problem;
	report_conflicts(job);
	if (!job->n_sources)
		add_error(job, 0, "nothing to upload: add a line source = /PATH");
	if (!job->target)
		add_error(
			job, 0, "it does not say where to: add a line target = s3://BUCKET/PREFIX");
	if (job->errors)
		return;
	job->operands[job->n_sources] = (char *)(uintptr_t)job->target; /* it is never changed */
	int error = push_options_complete(
		&job->options, (int)job->n_sources + 1, job->operands, &problem);
	if (!error)
		error = check_by_run(job, &problem);
	if (error)
		add_option_error(job, problem.text);
}

/* Sets ret->file to the two lines of a file that would have these values. They come from variables,
 * and count as they are, with quotes and blanks. The lines have no numbers, and the path names the
 * variables, so that errors do. */
static void make_file_of_variables(const char *source, const char *target, struct job *ret)
{
	const struct job_line lines[] = {
		{.name = "source", .value = source}, {.name = "target", .value = target}};
	ret->file = (struct job_file){.lines = must_have(malloc(sizeof lines)), .n = 2};
	memcpy(ret->file.lines, lines, sizeof lines);
	free(ret->path);
	ret->path = must_have(strdup("S3ONCE_SOURCE and S3ONCE_TARGET"));
}

/* Says that the job has no file, where else this was looked for, and which job is meant perhaps. */
static void explain_lack_of_file(const struct job *job, struct problem *ret_problem)
{
	char *own = job_own_path(job->name), *nearest = job_nearest(job->name);
	const bool is_root = geteuid() == 0;
	const char *elsewhere = ""; /* where else the file was looked for, or why nowhere else */
	if (own)
		elsewhere = ", nor ";
	else if (is_root && !getenv("S3ONCE_JOBS"))
		elsewhere = ", and root has no jobs in ~/.config";
	problem_set(ret_problem,
		"there is no such file%s%s; %s%s%sname a job of another folder by its "
		"path, such as ./%s" JOB_SUFFIX,
		elsewhere, own ? quote(own).text : "", nearest ? "did you mean " : "",
		nearest ? quote(nearest).text : "", nearest ? "? Otherwise, " : "",
		quote(job->name).text);
	free(own);
	free(nearest);
}

/* Finds the file of the job, or the variables that stand in for one, and reads its lines. Returns
 * 0, or -EINVAL after an error that was reported. */
static int read_file(const char *wanted, struct job *ret)
{
	const bool has_slash = strchr(wanted, '/') != NULL;
	struct problem problem = {0};
	ret->path = has_slash ? must_have(strdup(wanted)) : job_path(ret->name, JOB_SUFFIX);
	int error = job_file_load(ret->path, &ret->file, &problem);
	const char *source = getenv("S3ONCE_SOURCE"), *target = getenv("S3ONCE_TARGET");
	struct stat st;
	const bool is_dangling = error == -ENOENT && lstat(ret->path, &st) == 0;
	const bool lacks_file = error == -ENOENT && !has_slash && !is_dangling;
	const bool has_variables = source && *source && target && *target;
	if (lacks_file && has_variables) {
		make_file_of_variables(source, target, ret);
		error = 0;
	} else if (lacks_file) {
		explain_lack_of_file(ret, &problem);
	} else if (is_dangling) {
		problem_set(&problem, "it is a symbolic link to a file that does not exist");
	}
	if (error)
		add_error(ret, 0, "%s", problem.text);
	return error ? -EINVAL : 0;
}

/* Reads the options of the job, and checks them. Errors are reported, and counted in
 * ret->errors. */
static void read_job(enum job_use use, int argc, char *const *argv, struct job *ret)
{
	/* There is room for each line as a source, for the target, and for a NULL at the end. */
	ret->operands = must_have(calloc(ret->file.n + 2, sizeof *ret->operands));
	read_options(ret, argc, argv);
	ret->options.run.dry_run |= use == JOB_ASKED_ABOUT;
	check_whole(ret);
	ret->options.job = ret->name;
}

/* Warns of variables of NAME.env that set no option. */
static void warn_of_variables(const struct job *job)
{
	char *file = job_path(job->name, ".env");
	for (size_t i = 0; i < job->variables.n; i++)
		if (job->variables.list[i].is_set)
			push_options_warn_of_variable(file, job->variables.list[i].text);
	free(file);
}

/* Returns the name of the job whose name or path was given: "nginx" of "./nginx.conf". The caller
 * frees it. */
static char *name_of_job(const char *wanted)
{
	const char *slash = strrchr(wanted, '/');
	char *name = must_have(strdup(slash ? slash + 1 : wanted));
	const size_t n = strlen(name), n_suffix = strlen(JOB_SUFFIX);
	if (n > n_suffix && strcmp(name + n - n_suffix, JOB_SUFFIX) == 0)
		name[n - n_suffix] = '\0';
	return name;
}

int job_open(const char *wanted, enum job_use use, int argc, char *const *argv, struct job *ret)
{
	const bool is_by_name = !strchr(wanted, '/'); /* only such a job has variables */
	*ret = (struct job){0};
	ret->command = job_command;
	ret->command.values = &ret->options;
	ret->command.given = ret->given;
	ret->name = name_of_job(wanted);
	if (is_by_name && job_variables_read(ret->name, &ret->variables) < 0)
		return -EINVAL;
	job_set_variables(ret);
	warn_of_variables(ret);
	const int error = read_file(wanted, ret);
	if (!error)
		read_job(use, argc, argv, ret);
	if (use == JOB_RUN)
		job_unset_variables(ret);
	return error || ret->errors ? -EINVAL : 0;
}

void job_close(struct job *job)
{
	push_options_clear(&job->options);
	job_unset_variables(job);
	job_variables_clear(&job->variables);
	job_file_clear(&job->file);
	free(job->operands);
	free(job->name);
	free(job->path);
}

/* The option --job of the commands about the uploads of a job. commands.c opens the job before the
 * command begins, and closes it after the command. proven does both by itself. */
const struct option job_asked_options[] = {
	VALUE("job", STRING, offsetof(struct job_asked, name), "JOB",
		"use the marks, services and target of this job, from its file JOB.conf",
		.only_once = true),
	{NULL},
};

/* Sets *value to the job's value if the command line has none. */
static void set_if_unset(const char **value, const char *of_job)
{
	if (!*value)
		*value = of_job;
}

/* Takes from the job the values that the command line does not set. */
static void choose_access(struct access *access, const struct access *job)
{
	const char *given_marks = access->marks;
	set_if_unset(&access->marks, job->marks);
	set_if_unset(&access->aws.endpoint_url, job->aws.endpoint_url);
	set_if_unset(&access->aws.region, job->aws.region);
	set_if_unset(&access->aws.profile, job->aws.profile);
	set_if_unset(&access->aws.ca_bundle, job->aws.ca_bundle);
	set_if_unset(&access->aws.checksum, job->aws.checksum);
	if (!access->aws.request_timeout_ms)
		access->aws.request_timeout_ms = job->aws.request_timeout_ms;
	/* A job whose marks are `local` is run by a systemd unit as a rule, and the local marks of
	 * the unit are not those of root. So root, too, uses those of the unit, unless --marks was
	 * given. */
	if (!given_marks)
		marks_of_units_choose(&access->marks);
}

int job_asked_open(struct job_asked *asked, struct access *access, int n, char **operands)
{
	/* A command line without options, so that nothing overrides the file. */
	static char self[] = "run";
	char *const argv[] = {self, NULL};
	if (!asked->name)
		return n;
	if (job_open(asked->name, JOB_ASKED_ABOUT, 1, argv, &asked->job) < 0)
		return -EINVAL; /* job_open() has reported it */
	choose_access(access, &asked->job.options.access);
	for (int i = 0; i < n; i++)
		if (url_is_s3(operands[i]))
			return n; /* the operand replaces the job's target */
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
