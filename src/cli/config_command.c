/* `s3once config` prints the settings in force, and the source of each value. It uses the functions
 * of a run, so that it shows the values of a run. src/aws has the source of each setting of AWS,
 * and job.h the line of a job's file that sets an option. The command masks every secret. It sends
 * only the requests for loading credentials. */
#include "aws/settings_lookup.h"
#include "base/clock.h"
#include "base/must_have.h"
#include "base/text.h"
#include "cli/commands.h"
#include <stdlib.h>
#include <string.h>

struct config_view {
	struct command_frame *frame;
	const struct job *job; /* NULL: none was named */
	/* The command of the job, or else config itself, with its values and where they were set.
	 */
	const struct command *command;
};

static const struct command config_command = {
	.name = "config",
	.operands = "[JOB]",
	.takes = {0, 1},
	.about = "Prints the value of each setting, and which option, environment variable or\n"
		 "file it comes from. Loads the credentials, but does not print them. With a JOB,\n"
		 "as for s3once run, prints the settings of this job, and the line of each.\n",
	.shares = SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_CHECKSUM | SHARES_JSON,
	.examples = "  s3once config\n"
		    "  s3once config --profile work --json\n"
		    "  s3once config nginx       (with those of /etc/s3once/nginx.conf)\n\n"
		    "Exit codes: 0 printed; 2 usage; 3 a setting is invalid, or no credentials.\n",
};

/* Prints a setting. `line` is the line of the job's file that sets it. If it is NULL, `from` is the
 * source of the value. */
static void print_setting(const struct config_view *view, const char *name, const char *value,
	const struct job_line *line, const char *from)
{
	struct option_match match;
	struct text of_file = TEXT(1 << 13);
	if (line) {
		text_addf(&of_file, "line %u of %s", line->number, view->job->path);
		from = text_string(&of_file);
	}
	if (options_find(view->command, name, &match) && match.option->is_secret)
		value = "****************";
	if (view->frame->json) {
		json_t *object = json_event("setting");
		if (view->job)
			json_set_bytes(object, "job", view->job->name);
		json_print(
			&view->frame->output, json_set(object, BYTES("name", name),
						      BYTES("value", value), BYTES("from", from)));
	} else {
		output_resultf(&view->frame->output, "%-32s %-39s  %s", name, escaped(value).text,
			escaped(from).text);
	}
	text_clear(&of_file);
}

/* Returns the name of the option that sets the value of a row, whose `from` is then "--NAME". NULL:
 * the value comes from elsewhere. */
static const char *option_of_row(const struct setting_row *row)
{
	return strncmp(row->from, "--", 2) == 0 ? row->from + 2 : NULL;
}

/* Returns whether this option sets the value of any row. If so, print_rows() prints that row, and
 * the option needs no line of its own. */
static bool has_row(const struct setting_rows *rows, const char *option)
{
	for (size_t i = 0; i < rows->n; i++) {
		const char *own = option_of_row(&rows->rows[i]);
		if (own && strcmp(own, option) == 0)
			return true;
	}
	return false;
}

/* Prints the options of a job that set no row. First come those that the environment sets, then
 * those that the job's file sets, then the defaults of options that are set nowhere. */
static void print_job(const struct config_view *view, const struct setting_rows *rows)
{
	const struct job *job = view->job;
	struct option_variable from;
	const char *value;
	/* The environment. An option that may be repeated has several variables. */
	for (struct option_match at = {0}; options_next(view->command, &at);) {
		const bool is_set = view->command->given[at.index] & SET_IN_ENVIRONMENT;
		if (!is_set || has_row(rows, at.option->name))
			continue;
		for (unsigned i = 0; (value = option_variable_value(at.option, i, &from)); i++)
			print_setting(view, at.option->name, value, NULL, from.name);
	}
	/* The lines of the job's file. */
	for (size_t i = 0; i < job->file.n; i++) {
		const struct job_line *line = &job->file.lines[i];
		if (!job_is_overridden(job, line->name) && !has_row(rows, line->name))
			print_setting(view, line->name, line->value, line, NULL);
	}
	/* The defaults. */
	const unsigned anywhere = SET_IN_ENVIRONMENT | SET_IN_FILE | SET_IN_WORDS;
	for (struct option_match at = {0}; options_next(view->command, &at);) {
		const bool is_set = option_is_overridden(view->command, &at, anywhere);
		if (at.option->standard && !is_set)
			print_setting(view, at.option->name, at.option->standard, NULL, "default");
	}
}

/* Prints each row, and with a job also the settings that have no row. If the value of a row comes
 * from an option that the job's file or the environment sets, the line or the variable is named. */
static void print_rows(const struct config_view *view, const struct setting_rows *rows)
{
	const struct job *job = view->job;
	if (job)
		print_job(view, rows);
	for (size_t i = 0; i < rows->n; i++) {
		const struct setting_row *row = &rows->rows[i];
		const char *option = option_of_row(row);
		const struct job_line *line = (job && option) ? job_line_of(job, option) : NULL;
		struct option_match match;
		const bool is_variable = option && options_find(view->command, option, &match) &&
					 (view->command->given[match.index] & SET_IN_ENVIRONMENT);
		print_setting(view, row->name, row->value, line,
			is_variable ? option_variable(match.option).name : row->from);
	}
}

/* Adds a row. If memory has run out, the process ends. */
static void add_row(
	struct setting_rows *rows, const char *name, const char *value, const char *from)
{
	must_have(setting_rows_add(rows, name, value, from) ? NULL : rows);
}

/* Adds the URL of a proxy. Stars replace the user and password between "://" and the last "@". */
static void add_masked_url(struct text *t, const char *url)
{
	const char *at_sign = strrchr(url, '@'), *scheme_end = strstr(url, "://");
	if (!at_sign) {
		text_add(t, url);
		return;
	}
	if (scheme_end)
		text_add_bytes(t, url, (size_t)(scheme_end - url) + strlen("://"));
	text_addf(t, "****%s", at_sign);
}

#define VARIABLES_MAX 4 /* variables of one proxy */

/* Returns the name of the first of these variables that is set and not empty, and sets *ret_value
 * to its value; NULL: none is. */
static const char *first_set_variable(
	const char *const names[static VARIABLES_MAX], const char **ret_value)
{
	for (size_t i = 0; i < VARIABLES_MAX && names[i]; i++) {
		*ret_value = getenv(names[i]);
		if (*ret_value && **ret_value)
			return names[i];
	}
	return NULL;
}

/* Adds the proxies. Variables are looked for in the order of libcurl, and the first one that is set
 * counts. */
static void add_proxies(struct setting_rows *rows)
{
	/* The name of each row, and its variables. NULL: there are no more. */
	static const struct {
		const char *row, *variables[VARIABLES_MAX];
	} proxies[] = {
		{"proxy_of_https", {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}},
		{"proxy_of_http", {"http_proxy", "all_proxy", "ALL_PROXY"}},
		{"no_proxy", {"no_proxy", "NO_PROXY"}},
	};
	for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
		const char *url;
		const char *variable = first_set_variable(proxies[i].variables, &url);
		if (!variable)
			continue;
		struct text shown = TEXT(4096);
		add_masked_url(&shown, url);
		add_row(rows, proxies[i].row, text_string(&shown), variable);
		text_clear(&shown);
	}
}

/* Loads the credentials, and adds the parts that may be shown. Returns 0, or -errno with a
 * sentence. */
static int add_credentials(
	struct setting_rows *rows, struct credentials_chain *chain, struct problem *ret_problem)
{
	struct credentials credentials = {0};
	unsigned generation;
	const int error = credentials_get(chain, NULL, &credentials, &generation, ret_problem);
	if (error < 0)
		return error;
	char key[32], until[21];
	const size_t n = strlen(credentials.access_key);
	/* Behind the stars, a key of more than eight characters shows its last four. */
	const char *shown = n > 8 ? credentials.access_key + n - 4 : "";
	snprintf(key, sizeof key, "****************%s", shown);
	add_row(rows, "access_key", key, credentials.from);
	add_row(rows, "secret_key", "****************", credentials.from);
	if (credentials.session_token)
		add_row(rows, "session_token", "****************", credentials.from);
	if (credentials.expires_s) {
		clock_format_iso(credentials.expires_s, until);
		add_row(rows, "credentials_expire", until, credentials.from);
	}
	credentials_wipe(&credentials);
	return 0;
}

/* Prints all settings. If there are no credentials, it prints the others all the same, and
 * frame->problem has the reason. Returns the exit code. */
static int print_config(struct command_frame *frame, const struct config_view *view)
{
	struct problem *problem = &frame->problem;
	if (services_open(&frame->access, &frame->services, problem) < 0)
		return S3ONCE_EXIT_SETUP;
	const struct aws_settings *aws = frame->services.aws;
	const char *marks = frame->access.marks, *locks = getenv("S3ONCE_LOCKS");
	const bool has_locks = locks && *locks;
	struct text timeout = TEXT(64);
	struct setting_rows *rows =
		&frame->services.aws->found; /* already contains the rows of src/aws */
	value_show_duration(&timeout, aws->request_timeout_ms);
	add_row(rows, "request_timeout", text_string(&timeout),
		frame->access.aws.request_timeout_ms ? "--request-timeout" : "default");
	text_clear(&timeout);
	add_row(rows, "marks", marks ? marks : "local", marks ? "--marks" : "default");
	add_row(rows, "locks", has_locks ? locks : "local", has_locks ? "S3ONCE_LOCKS" : "default");
	add_proxies(rows);
	const int error = add_credentials(rows, aws->credentials, problem);
	print_rows(view, rows);
	return error < 0 ? S3ONCE_EXIT_SETUP : S3ONCE_EXIT_OK;
}

int config_main(int argc, char **argv)
{
	struct command_frame frame = {.command = &config_command};
	struct config_view view = {.frame = &frame, .command = &frame.parsed};
	struct job *job = &frame.job.job; /* which frame_end() closes */
	const bool goes_on = frame_begin(&frame, argc, argv);
	push_options_warn_of_variables();
	/* If job_open() fails, it has reported the error, and the code stays S3ONCE_EXIT_USAGE. */
	if (goes_on && frame.n_operands == 0)
		frame.code = print_config(&frame, &view);
	else if (goes_on && job_open(argv[0], JOB_ASKED_ABOUT, argc, frame.words, job) == 0) {
		view.job = job;
		view.command = &job->command;
		frame.access = job->options.access;
		frame.code = print_config(&frame, &view);
	}
	return frame_end(&frame);
}
