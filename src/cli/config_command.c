/* `s3once config`: the settings in force, and where each has its value from. It reads what a run
 * would read, by the same functions, so that it cannot tell another story than the run: src/aws
 * says where each setting of AWS was found, and job.h which line of a job's file sets an option. It
 * sends nothing but what loading the credentials takes, and masks every secret. */
#include "aws/config.h"
#include "aws/settings.h"
#include "base/clock.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/job/job.h"
#include "cli/json.h"
#include "cli/options/values.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct config_view {
	struct output *output;
	bool is_json;
	const struct job *job; /* NULL: none was named */
	/* The options of the job, or of the command, and which of them the environment sets. */
	const struct command *command;
	const struct options_given *variables;
};

static const struct command config_command = {
	.name = "config",
	.operands = "[JOB]",
	.about = "Prints the value of each setting, and which option, environment variable or\n"
		 "file it comes from. Loads the credentials, but does not print them. With a JOB,\n"
		 "as of s3once run, it prints what is in force for that, and which line says it.\n",
	.groups = setup_groups,
	.examples = "  s3once config\n"
		    "  s3once config --profile work --json\n"
		    "  s3once config nginx       (what /etc/s3once/nginx.conf says, too)\n"
		    "\n"
		    "Exit codes: 0 printed; 2 usage; 3 a setting is invalid, or there are no\n"
		    "credentials. More: man s3once-config\n",
};

static void print_row(const struct config_view *view, const struct config_row *row)
{
	struct option_match match;
	const bool is_secret =
		options_find(view->command, row->name, &match) && match.option->is_secret;
	const char *value = is_secret ? "****************" : row->value;
	if (view->is_json) {
		json_t *object = json_event("setting");
		if (view->job)
			json_set_bytes(object, "job", view->job->name);
		json_print(view->output, json_set(object, BYTES("name", row->name),
						 BYTES("value", value), BYTES("from", row->from)));
	} else {
		output_tell(view->output, "%-32s %-39s  %s", row->name, escaped(value).text,
			escaped(row->from).text);
	}
}

static void tell_line(const struct config_view *view, const char *name, const char *value,
	const struct job_line *line)
{
	struct text from = TEXT(1 << 13);
	if (line)
		text_addf(&from, "line %u of ", line->number);
	text_add(&from, view->job->path);
	print_row(view, &(struct config_row){name, (char *)(uintptr_t)value,
				(char *)(uintptr_t)text_string(&from)});
	text_clear(&from);
}

/* The line of the job that sets what the row has from an option, or NULL. */
static const struct job_line *line_of(const struct job *job, const struct config_row *row)
{
	return job && strncmp(row->from, "--", 2) == 0 ? job_line_of(job, row->from + 2) : NULL;
}

/* The variable that sets an option. False: none does. */
static bool find_variable(
	const struct config_view *view, const char *option, struct option_match *ret)
{
	return options_find(view->command, option, ret) && view->variables->is[ret->index];
}

/* Tells what the environment sets and no row has. */
static void tell_variables(const struct config_view *view, const struct config_rows *rows)
{
	struct option_variable from;
	struct option_match match;
	const char *value;
	for (const struct option_group *group = view->command->groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++) {
			bool has_row = !find_variable(view, o->name, &match);
			for (size_t j = 0; j < rows->n && !has_row; j++)
				has_row = strncmp(rows->rows[j].from, "--", 2) == 0 &&
					  strcmp(rows->rows[j].from + 2, o->name) == 0;
			for (unsigned i = 0;
				!has_row && (value = option_variable_value(o, i, &from)); i++)
				print_row(view, &(struct config_row){o->name,
							(char *)(uintptr_t)value, from.name});
		}
}

/* Tells what the file sets and no row has. */
static void tell_job(const struct config_view *view, const struct config_rows *rows)
{
	const struct job_file *file = &view->job->file;
	for (size_t i = 0; i < file->n; i++) {
		const struct job_line *line = &file->lines[i];
		bool has_row = job_is_overridden(view->job, line->name);
		for (size_t j = 0; j < rows->n && !has_row; j++)
			has_row = line_of(view->job, &rows->rows[j]) == line;
		if (!has_row)
			tell_line(view, line->name, line->value, line);
	}
}

/* Tells the options that are set nowhere, and their defaults. */
static void tell_defaults(const struct config_view *view)
{
	const struct job *job = view->job;
	struct option_match match;
	for (const struct option_group *group = job->command.groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++)
			if (o->standard && !job_line_of(job, o->name) &&
				!job_is_overridden(job, o->name) &&
				!find_variable(view, o->name, &match))
				print_row(view, &(struct config_row){o->name,
							(char *)(uintptr_t)o->standard,
							(char[]){"default"}});
}

/* A line for each row. With a job, also for what its file says, and for the options of push that
 * nobody says and that have a default. A row that has its value from an option which the file says
 * names the line. */
static void tell_all(const struct config_view *view, const struct config_rows *rows)
{
	if (view->job) {
		tell_variables(view, rows);
		tell_job(view, rows);
		tell_defaults(view);
	}
	for (size_t i = 0; i < rows->n; i++) {
		const struct config_row *row = &rows->rows[i];
		const struct job_line *line = line_of(view->job, row);
		struct option_match match;
		const bool is_option = strncmp(row->from, "--", 2) == 0;
		if (view->job && strcmp(row->name, "max_attempts") == 0 &&
			(job_line_of(view->job, "retries") ||
				find_variable(view, "retries", &match)))
			continue; /* the job says it by another name */
		if (line)
			tell_line(view, row->name, row->value, line);
		else if (is_option && find_variable(view, row->from + 2, &match))
			print_row(view, &(struct config_row){row->name, row->value,
						option_variable(match.option).name});
		else
			print_row(view, row);
	}
}

/* A proxy's URL with what may be a password left out. */
static int add_proxy(struct config_rows *rows, const char *row, const char *variable)
{
	const char *value = getenv(variable);
	if (!value || !*value)
		return 0;
	const char *host = strrchr(value, '@'), *scheme = strstr(value, "://");
	struct text shown = TEXT(4096);
	if (host) {
		text_add_bytes(&shown, value, scheme ? (size_t)(scheme + 3 - value) : 0);
		text_addf(&shown, "****%s", host);
	} else {
		text_add(&shown, value);
	}
	int error = shown.error;
	if (error == 0)
		error = config_rows_add(rows, row, text_string(&shown), variable);
	text_clear(&shown);
	return error ? -ENOMEM : 1;
}

/* In the order in which libcurl looks for them. The first one that is set counts. */
static int add_proxies(struct config_rows *rows)
{
	static const struct {
		const char *row, *variables[4];
	} proxies[] = {
		{"proxy_of_https", {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}},
		{"proxy_of_http", {"http_proxy", "all_proxy", "ALL_PROXY"}},
		{"no_proxy", {"no_proxy", "NO_PROXY"}},
	};
	for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
		int added = 0;
		for (size_t j = 0; j < 4 && proxies[i].variables[j] && !added; j++)
			added = add_proxy(rows, proxies[i].row, proxies[i].variables[j]);
		if (added < 0)
			return added;
	}
	return 0;
}

static int add_access(struct config_rows *rows, const struct access *access, uint64_t timeout_ms)
{
	const char *marks = access->marks, *locks = getenv("S3ONCE_LOCKS");
	struct text timeout = TEXT(64);
	value_show_duration(&timeout, timeout_ms);
	int error = config_rows_add(rows, "request_timeout", text_string(&timeout),
		access->aws.request_timeout_ms ? "--request-timeout" : "default");
	text_clear(&timeout);
	if (error == 0)
		error = config_rows_add(
			rows, "marks", marks ? marks : "local", marks ? "--marks" : "default");
	const bool has_locks = locks && *locks;
	if (error == 0)
		error = config_rows_add(rows, "locks", has_locks ? locks : "local",
			has_locks ? "S3ONCE_LOCKS" : "default");
	return error;
}

static int add_credentials(
	struct config_rows *rows, struct credentials_chain *chain, struct problem *ret_problem)
{
	struct credentials credentials = {0};
	unsigned generation;
	int error = credentials_get(chain, NULL, &credentials, &generation, ret_problem);
	if (error < 0)
		return error;
	char key[32] = "****************", until[21];
	size_t n = strlen(credentials.access_key);
	memcpy(key + 16, credentials.access_key + (n > 8 ? n - 4 : n), n > 8 ? 5 : 1);
	error = config_rows_add(rows, "access_key", key, credentials.from);
	if (error == 0)
		error = config_rows_add(rows, "secret_key", "****************", credentials.from);
	if (error == 0 && credentials.session_token)
		error = config_rows_add(
			rows, "session_token", "****************", credentials.from);
	if (error == 0 && credentials.expires_s) {
		clock_format_iso(credentials.expires_s, until);
		error = config_rows_add(rows, "credentials_expire", until, credentials.from);
	}
	credentials_wipe(&credentials);
	if (error < 0)
		problem_set(ret_problem, "out of memory");
	return error;
}

/* Without credentials, everything else is still told. */
static int config_of(struct command_frame *frame, const struct config_view *view)
{
	struct problem *problem = &frame->problem;
	if (services_open(frame->access, &frame->services, problem) < 0)
		return S3ONCE_EXIT_SETUP;
	struct config_rows *rows = &frame->services.aws->found;
	int error = add_access(rows, frame->access, frame->services.aws->request_timeout_ms);
	if (error == 0)
		error = add_proxies(rows);
	if (error < 0)
		problem_set(problem, "out of memory");
	else
		error = add_credentials(rows, frame->services.aws->credentials, problem);
	tell_all(view, rows);
	return error < 0 ? S3ONCE_EXIT_SETUP : S3ONCE_EXIT_OK;
}

static int config_of_job(
	struct command_frame *frame, struct config_view *view, int argc, char **argv)
{
	struct job job;
	int code = S3ONCE_EXIT_USAGE;
	if (job_open(frame->operands[0], argc, argv, &job) == 0) {
		view->job = &job;
		view->command = &job.command;
		view->variables = &job.variables;
		frame->access = &job.options.access;
		code = config_of(frame, view);
		view->job = NULL;
		view->command = NULL;
		view->variables = NULL;
	}
	job_close(&job);
	return code;
}

int config_main(int argc, char **argv)
{
	struct setup_options options = {0};
	struct command_frame frame = {
		.command = &config_command, .values = &options, .access = &options.access};
	struct config_view view = {
		.output = &frame.output, .command = &config_command, .variables = &frame.variables};
	/* job_open() reads argv again */
	char **words = must_have(calloc((size_t)argc + 1, sizeof *words));
	memcpy(words, argv, (size_t)argc * sizeof *words);
	const bool goes_on = frame_begin(&frame, argc, words);
	view.is_json = options.json;
	push_options_check_variables();
	if (goes_on && frame.n > 1)
		problem_set(&frame.problem, "'%s': config shows one job at a time",
			quote(words[1]).text);
	else if (goes_on)
		frame.code = frame.n ? config_of_job(&frame, &view, argc, argv)
				     : config_of(&frame, &view);
	const int code = frame_end(&frame);
	free(words);
	return code;
}
