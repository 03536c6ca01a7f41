#include "cli/job/job_lines.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/options/option_value.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An error of the file; line 0: of the file as a whole. */
void job_tell(struct job *job, unsigned line, const char *sentence)
{
	char number[16] = "";
	if (line)
		snprintf(number, sizeof number, ":%u", line);
	log_error("%s%s: %s", quote(job->path).text, number, sentence);
	job->errors++;
}

static bool is_list(const struct option *option)
{
	return option->type == OPTION_EXCLUDE || option->type == OPTION_INCLUDE ||
	       option->type == OPTION_SETTING;
}

/* Whether the command line has the option, or what takes its place. */
static bool is_overridden(const struct job *job, const struct option_match *match)
{
	const char *name = match->option->name;
	if (is_list(match->option))
		return false;
	if (job->given.is[match->index])
		return true;
	for (const struct option_conflict *c = job->command.conflicts; c && c->a; c++) {
		const char *other = strcmp(c->a, name) == 0   ? c->b
				    : strcmp(c->b, name) == 0 ? c->a
							      : NULL;
		if (other && !c->why && options_has(&job->command, &job->given, other))
			return true;
	}
	return false;
}

static void add_source(struct job *job, const struct job_line *line)
{
	struct problem problem;
	job->operands[job->n_sources++] = (char *)(uintptr_t)line->value;
	if (*line->value == '/')
		return;
	problem_set(&problem,
		"source: '%s' is not an absolute path; a job may be started from any folder",
		quote(line->value).text);
	job_tell(job, line->number, problem.text);
}

static void set_target(struct job *job, const struct job_line *line)
{
	struct problem problem;
	struct s3_url url;
	if (job->target)
		problem_set(&problem, "target: there is one before; a job has one target");
	else if (url_parse(line->value, &url, &problem) == 0)
		problem.text[0] = 0;
	else
		problem_prefix(&problem, "target");
	if (problem.text[0])
		job_tell(job, line->number, problem.text);
	job->target = line->value;
}

static void tell_unknown(struct job *job, const struct job_line *line)
{
	static const char *const own[] = {"source", "target"};
	struct problem problem;
	const char *nearest = nearest_name(line->name, own, 2);
	if (!nearest)
		nearest = options_nearest(&job->command, line->name);
	if (nearest && strcmp(nearest, "help") != 0)
		problem_set(&problem, "unknown name '%s'; did you mean %s?", quote(line->name).text,
			nearest);
	else
		problem_set(&problem,
			"unknown name '%s'; there are source, target and the options of "
			"s3once push --help without their dashes",
			quote(line->name).text);
	job_tell(job, line->number, problem.text);
}

static bool is_no(const char *value)
{
	return strcmp(value, "no") == 0 || strcmp(value, "false") == 0;
}

/* "wait = no" is "no-wait = yes", and the other way round. */
static const char *find_opposite(
	const struct command *command, struct option_match *match, const char *value)
{
	struct option_match opposite;
	char name[64];
	const char *own = match->option->name;
	if (match->option->type != OPTION_FLAG || !is_no(value))
		return value;
	if (strncmp(own, "no-", 3) == 0)
		snprintf(name, sizeof name, "%s", own + 3);
	else
		snprintf(name, sizeof name, "no-%s", own);
	if (!options_find(command, name, &opposite))
		return value;
	*match = opposite;
	return "yes";
}

static void set_option(
	struct job *job, const struct job_reading *reading, const struct job_line *line)
{
	struct option_match match;
	struct problem problem = {0};
	if (!options_find(&job->command, line->name, &match) || match.option->type == OPTION_HELP) {
		tell_unknown(job, line);
		return;
	}
	const char *value = find_opposite(&job->command, &match, line->value);
	const struct job_line *before = job->lines[match.index];
	job->lines[match.index] = line;
	if (is_overridden(job, &match))
		options_find(reading->overridden, match.option->name, &match);
	int error = option_set(match.option, match.field, value, &problem);
	if (error)
		problem_prefix(&problem, "%s", line->name);
	else
		error = job_check_value(reading->check, match.option, value, &problem);
	if (!error && before && !is_list(match.option)) {
		problem_set(&problem, "%s: line %u says it already", line->name, before->number);
		error = -EINVAL;
	}
	if (error)
		job_tell(job, line->number, problem.text);
}

void job_read_lines(struct job *job, const struct job_reading *reading)
{
	for (size_t i = 0; i < job->file->n; i++) {
		const struct job_line *line = &job->file->lines[i];
		if (line->wrong)
			job_tell(job, line->number, line->wrong);
		else if (strcmp(line->name, "source") == 0)
			add_source(job, line);
		else if (strcmp(line->name, "target") == 0)
			set_target(job, line);
		else
			set_option(job, reading, line);
	}
}

bool job_is_overridden(const struct job *job, const char *option)
{
	struct option_match match;
	return options_find(&job->command, option, &match) && is_overridden(job, &match);
}

const struct job_line *job_line_of(const struct job *job, const char *option)
{
	struct option_match match;
	if (!options_find(&job->command, option, &match) || is_overridden(job, &match))
		return NULL;
	return job->lines[match.index];
}

/* The line that sets an option to a value with an effect. "quiet = no" contradicts nothing. */
static const struct job_line *effective_line(const struct job *job, const char *option)
{
	struct option_match match;
	if (!options_find(&job->command, option, &match))
		return NULL;
	const struct job_line *line = job_line_of(job, option);
	const enum option_type type = match.option->type;
	if ((type == OPTION_FLAG || type == OPTION_COUNT) && !*(const int *)match.field)
		return NULL;
	return type == OPTION_AGE && line && is_no(line->value) ? NULL : line;
}

void job_check_conflicts(struct job *job)
{
	for (const struct option_conflict *c = job->command.conflicts; c && c->a; c++) {
		const struct job_line *a = effective_line(job, c->a),
				      *b = effective_line(job, c->b);
		const bool has_a = a || options_has(&job->command, &job->given, c->a);
		const bool has_b = b || options_has(&job->command, &job->given, c->b);
		struct problem problem;
		if ((!a && !b) || !has_a || !has_b)
			continue;
		problem_set(&problem, "%s%s and %s%s contradict each other: %s", a ? "" : "--",
			c->a, b ? "" : "--", c->b, c->why ? c->why : "choose one");
		const unsigned line_a = a ? a->number : 0, line_b = b ? b->number : 0;
		job_tell(job, line_a > line_b ? line_a : line_b, problem.text);
	}
}
