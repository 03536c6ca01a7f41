/* `s3once config`: the settings in force and where each has its value from; secrets masked. */
#include "aws/settings.h"
#include "base/clock.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/config_view.h"
#include "cli/open_marks.h"
#include "cli/options/access.h"
#include "cli/options/setup_options.h"
#include "cli/options/values.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct command config_command(
	struct option_group groups[static SETUP_GROUPS], struct setup_options *options)
{
	struct command command = setup_command(groups, options);
	command.name = "config";
	command.operands = "[JOB]";
	command.about =
		"Prints the value of each setting, and which option, environment variable or file\n"
		"it comes from. Loads the credentials, but does not print them. With a JOB, as of\n"
		"s3once run, it prints what is in force for that, and which line says it.\n";
	command.examples =
		"  s3once config\n"
		"  s3once config --profile work --json\n"
		"  s3once config nginx       (what /etc/s3once/nginx.conf says, too)\n"
		"\n"
		"Exit codes: 0 printed; 2 usage; 3 a setting is invalid, or there are no credentials.\n"
		"More: man s3once-config\n";
	return command;
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
	const char *marks = access_marks(access), *locks = getenv("S3ONCE_LOCKS");
	struct text timeout = TEXT(64);
	value_show_duration(&timeout, timeout_ms);
	int error = config_rows_add(rows, "request_timeout", text_string(&timeout),
		access->request_timeout_ms ? "--request-timeout" : "default");
	text_clear(&timeout);
	if (error == 0)
		error = config_rows_add(rows, "marks", marks ? marks : "local",
			access->marks ? "--marks"
			: marks       ? "S3ONCE_MARKS"
				      : "default");
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
static int config_of(const struct access *access, struct config_view *view)
{
	struct services services = {0};
	struct problem problem = {0};
	int error = services_open(access, &services, &problem);
	output_init(&view->output);
	if (error == 0) {
		struct config_rows *rows = &services.aws->found;
		error = add_access(rows, access, services.aws->request_timeout_ms);
		if (error == 0)
			error = add_proxies(rows);
		if (error < 0)
			problem_set(&problem, "out of memory");
		else
			error = add_credentials(rows, services.aws->credentials, &problem);
		config_view_tell(view, rows);
	}
	int code = output_finish(&view->output) < 0 ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
	services_close(&services);
	return error < 0 ? command_fail("config", S3ONCE_EXIT_SETUP, &problem) : code;
}

static int config_of_job(const char *name, int argc, char **argv, struct config_view *view)
{
	struct job job;
	int code = S3ONCE_EXIT_USAGE;
	if (job_open(name, argc, argv, &job) == 0) {
		view->job = &job;
		code = config_of(&job.options.access, view);
	}
	job_close(&job);
	return code;
}

int config_main(int argc, char **argv)
{
	struct setup_options options = {0};
	struct option_group groups[SETUP_GROUPS];
	struct command command = config_command(groups, &options);
	struct problem problem = {0};
	char **words = calloc((size_t)argc + 1, sizeof *words);
	if (!words)
		return S3ONCE_EXIT_SETUP;
	memcpy(words, argv, (size_t)argc * sizeof *words);
	const int n = options_parse(&command, argc, words, &problem);
	struct config_view view = {.is_json = options.json};
	int code = S3ONCE_EXIT_OK;
	if (n > 1)
		problem_set(&problem, "'%s': config shows one job at a time", quote(words[1]).text);
	if (n == -ECANCELED)
		options_help(&command, stdout);
	else if (n < 0 || n > 1)
		code = command_fail("config", S3ONCE_EXIT_USAGE, &problem);
	else if (n == 1)
		code = config_of_job(words[0], argc, argv, &view);
	else
		code = config_of(&options.access, &view);
	free(words);
	return code;
}
