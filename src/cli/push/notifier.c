/* Reports a run to others. When the run begins, it sends a ping. When the run has ended, it sends a
 * ping in the convention of healthchecks.io, runs a command of the job, and sends the metrics by
 * OTLP/HTTP. The last ping and the command get the same: the summary of --json, with the errors of
 * the run.
 *
 * push_command.c calls notifier_end() once the run has let go of its files and marks, so that a
 * receiver that hangs delays nothing but the end of the process. */
#include "cli/push/notifier.h"
#include "audit/fleet.h"
#include "aws/settings_lookup.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/must_have.h"
#include "base/thread.h"
#include "cli/child.h"
#include "cli/signals.h"
#include "http/http.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_MS           10000 /* limit of time for a message, with all tries */
#define SEND_TRIES        2
#define SEND_AGAIN_MS     1000 /* pause between two tries */
#define REPLY_BYTES_MAX   (64U << 10)
#define URL_BYTES_MAX     (8U << 10)
#define FAILURE_BYTES_MAX (60U << 10)     /* healthchecks.io keeps 100 KB of a ping */
#define COMMAND_MS        60000           /* limit of time for a command, until SIGTERM */
#define COMMAND_TICK_MS   20              /* between two checks whether it has ended */
#define COUNT             "S3ONCE_COUNT_" /* prefix of the variables with counters */

/* The `abandon` of requests. True after a second signal: the user does not want to wait any longer.
 * The argument is unused. */
static bool is_hurried(void *arg)
{
	(void)arg;
	return signals_came() > 1;
}

/* Sends a request once. Returns 0 if the server answered with a status of success, or -errno with a
 * sentence. */
static int send_once(
	const struct http_request *request, const char *ca_bundle, struct problem *ret_problem)
{
	struct http_shared *shared = NULL;
	struct http *http = NULL;
	struct http_reply reply = {0};
	int error = http_shared_new(&(struct http_options){.ca_bundle = ca_bundle}, &shared);
	if (!error)
		error = http_new(shared, &http);
	if (error)
		problem_set(ret_problem, "out of memory");
	else
		error = http_perform(http, request, &reply, ret_problem);
	if (!error && (reply.status < 200 || reply.status > 299))
		error = problem_error(ret_problem, -EBADMSG,
			"the server answered with HTTP status %d", reply.status);
	/* If the request was not abandoned, its deadline has passed. */
	else if (error == -ECANCELED && !is_hurried(NULL))
		problem_set(ret_problem, "no answer within %d seconds", SEND_MS / 1000);
	http_reply_clear(&reply);
	http_free(http);
	http_shared_free(shared);
	return error;
}

/* Sends a message, and retries it after an error. The body is JSON; NULL: there is none, and the
 * request is a GET. If all went well, the sentence is "".
 *
 * The first try trusts the certificates of the system, since --ca-bundle may be only about the S3
 * server. If it fails because of a certificate (-EPROTO), the second try trusts --ca-bundle, or
 * else AWS_CA_BUNDLE. */
static void send_message(const struct notifier *notifier, const char *url, const char *body,
	struct problem *ret_problem)
{
	static const char *const headers[] = {
		"Content-Type: application/json", "User-Agent: s3once"};
	const uint64_t deadline_ns = clock_boot_ns() + SEND_MS * NS_PER_MS; /* of both tries */
	/* A request without a body has no Content-Type. */
	const struct http_request request = {.method = body ? "POST" : "GET",
		.url = url,
		.headers = body ? headers : headers + 1,
		.n_headers = body ? 2 : 1,
		.body = {.memory = body, .bytes = body ? strlen(body) : 0},
		.deadline_ns = deadline_ns,
		.abandon = is_hurried,
		.reply_max_bytes = REPLY_BYTES_MAX};
	const char *given = notifier->options->access.aws.ca_bundle;
	const char *trusted = given ? given : lookup_variable("AWS_CA_BUNDLE");
	int error = 0; /* of the last try */
	if (http_global_init()) {
		problem_set(ret_problem, "libcurl cannot be used");
		return;
	}
	for (int tries = 0; tries < SEND_TRIES; tries++) {
		const char *ca_bundle = error == -EPROTO ? trusted : NULL;
		const bool is_same_again = tries > 0 && !ca_bundle; /* the error may pass */
		if (is_same_again)
			uv_sleep(SEND_AGAIN_MS);
		error = send_once(&request, ca_bundle, ret_problem);
		const bool has_time = clock_boot_ns() + SEND_AGAIN_MS * NS_PER_MS < deadline_ns;
		if (!error || is_hurried(NULL) || !has_time)
			break;
	}
	if (!error)
		ret_problem->text[0] = 0; /* that of the first try, too */
}

/* Sends a ping to the URL, with `ending` after its path, which may end with a '/' already. Behind a
 * '?' are settings of the receiver, which stay at the end. */
static void send_ping(const struct notifier *notifier, const char *ending, const char *body,
	struct problem *ret_problem)
{
	const char *base = notifier->options->ping_url;
	const size_t n = strcspn(base, "?");
	struct text url = TEXT(URL_BYTES_MAX);
	text_add_bytes(&url, base, (n && base[n - 1] == '/' && *ending) ? n - 1 : n);
	text_add(&url, ending);
	text_add(&url, base + n);
	if (url.error)
		problem_set(ret_problem, "the URL is too long");
	else
		send_message(notifier, text_string(&url), body, ret_problem);
	text_clear(&url);
}

/* The thread that sends the first ping. */
static void send_first_ping(void *arg)
{
	struct notifier *notifier = arg;
	send_ping(notifier, "/start", NULL, &notifier->start_problem);
}

void notifier_begin(struct notifier *notifier)
{
	if (notifier->options->ping_url && http_global_init() == 0)
		notifier->has_start =
			thread_start(&notifier->start, send_first_ping, notifier) == 0;
}

void notifier_event(struct notifier *notifier, const struct s3once_event *event)
{
	const bool is_error =
		event->type < EVENT_SHAPES && (event_shapes[event->type].traits & IS_ERROR);
	/* A file that another uploader holds is printed as an error, but is not a failure. */
	if (!is_error || event->type == S3ONCE_EVENT_HELD)
		return;
	json_t *failure = json_of_event(notifier->options, event);
	char *line = failure ? json_dumps(failure, JSON_COMPACT) : NULL;
	if (!notifier->failures)
		notifier->failures = json_array();
	/* Once there is no room for an error, it and all later ones are omitted. If there is no
	 * line, memory has run out, which is treated in the same way. */
	notifier->failure_bytes += line ? strlen(line) : FAILURE_BYTES_MAX;
	const bool has_room = notifier->failure_bytes <= FAILURE_BYTES_MAX;
	if (!has_room || json_array_append(notifier->failures, failure) < 0)
		notifier->failures_left_out++;
	json_decref(failure);
	free(line);
}

/* Waits for the end of a command, and ends it if it takes too long or a signal comes. `signals` is
 * the number of signals that came before. Returns the reason for which it was ended, or NULL if it
 * ended by itself. Then *ret_status is its status, as waitpid() returns it. */
static const char *wait_for_command(pid_t child, unsigned signals, int *ret_status)
{
	/* After a signal, the user waits for the process to end. */
	const uint64_t end_ns = clock_boot_ns() + (signals ? SEND_MS : COMMAND_MS) * NS_PER_MS;
	while (waitpid(child, ret_status, WNOHANG) == 0) {
		const bool is_late = clock_boot_ns() >= end_ns;
		if (is_late || signals_came() != signals) {
			child_end(child);
			return is_late ? "it took too long" : "a signal came";
		}
		poll(NULL, 0, COMMAND_TICK_MS);
	}
	return NULL;
}

/* Runs a command, which reads `body`, and waits for its end. *ret_status and *ret_why become the
 * results of wait_for_command(). Returns 0, or -errno if the command was not started. */
static int run_command(const char *command, char *const *variables, const char *body,
	int *ret_status, const char **ret_why)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	/* The body is in a file without a name, since a command that reads a pipe slowly would hold
	 * us up. It is in memory, so these calls fail only for lack of memory. */
	const int input = memfd_create("s3once", MFD_CLOEXEC);
	const unsigned signals = signals_came();
	const bool has_input = input >= 0 && write_all(input, body, strlen(body)) == 0 &&
			       lseek(input, 0, SEEK_SET) == 0;
	sigset_t none;
	pid_t child;
	sigemptyset(&none);
	const struct child_options options = {
		.command = (char *[]){shell, option, (char *)(uintptr_t)command, NULL},
		.variables = variables,
		.mask = &none,
		/* The output of the command goes to standard error, since standard output may be
		 * that of --json. */
		.fds = {{input, STDIN_FILENO}, {STDERR_FILENO, STDOUT_FILENO}},
		.n_fds = 2,
		.has_session = true};
	const int error = has_input ? child_start(&options, &child) : -ENOMEM;
	if (!error)
		*ret_why = wait_for_command(child, signals, ret_status);
	if (input >= 0)
		close(input);
	return error;
}

/* Prints a warning if the problem has a sentence. */
static void warn(const struct notifier *notifier, const char *what, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	if (*problem->text) /* else all went well */
		output_message(notifier->output, "warning: %s: %s", what, sentence);
}

/* Returns a variable for a command, which the caller frees. */
__attribute__((format(printf, 1, 2))) static char *format_variable(const char *format, ...)
{
	char *variable;
	va_list ap;
	va_start(ap, format);
	const int n = vasprintf(&variable, format, ap);
	va_end(ap);
	return must_have(n < 0 ? NULL : variable);
}

/* Returns the variables for a command, as child_start() takes them: S3ONCE_STATUS, S3ONCE_JOB and
 * the counters. Those that an earlier s3once has set are removed. The caller frees each string and
 * the array. */
static char **make_variables(
	const struct notifier *notifier, const struct s3once_counts *counts, int code)
{
	const char *job = notifier->options->job;
	size_t n = 0, max_variables = 3; /* the status, the job, and the NULL at the end */
	for (char **at = environ; *at; at++)
		max_variables++;
	for (const struct counter *c = run_counters; c->name; c++)
		max_variables++;
	char **made = must_have(calloc(max_variables, sizeof *made));
	made[n++] = format_variable("S3ONCE_STATUS=%d", code);
	made[n++] = format_variable("S3ONCE_JOB%s%s", job ? "=" : "", job ? job : "");
	for (char **at = environ; *at; at++) /* a name without a value removes the variable */
		if (strncmp(*at, COUNT, strlen(COUNT)) == 0)
			made[n++] = format_variable("%.*s", (int)strcspn(*at, "="), *at);
	for (const struct counter *c = run_counters; c->name; c++, n++) {
		made[n] = format_variable(COUNT "%s=%" PRIu64, c->name, counter_value(c, counts));
		for (char *name = made[n]; *name != '='; name++)
			*name = (char)toupper((unsigned char)*name);
	}
	return made;
}

/* Waits until the first ping was sent, and warns if it was not. */
static void end_first_ping(struct notifier *notifier)
{
	if (!notifier->has_start)
		return;
	uv_thread_join(&notifier->start);
	notifier->has_start = false;
	warn(notifier, "--ping-url: nobody was told that the run began", &notifier->start_problem);
}

/* Sends the metrics to the URL of --metrics, and warns if that fails. */
static void send_metrics(const struct notifier *notifier, const struct metrics *metrics)
{
	struct problem problem = {0};
	char *request = metrics_otlp(metrics);
	if (!request)
		problem_set(&problem, "out of memory");
	else
		send_message(notifier, notifier->options->metrics_otlp, request, &problem);
	warn(notifier, "--metrics: the metrics of the run are lost", &problem);
	free(request);
}

/* Returns the summary of the run with its bucket, prefix and errors, which the caller frees. It is
 * indented, since people read it in mails. NULL: out of memory. */
static char *make_body(struct notifier *notifier, const struct s3once_push *push, int code)
{
	json_t *object = json_set(json_summary(notifier->options, push, code),
		BYTES("bucket", notifier->options->run.bucket),
		BYTES("prefix", notifier->options->run.prefix),
		NODE("failures", notifier->failures ? notifier->failures : json_array()),
		NUMBER("failures_left_out", notifier->failures_left_out));
	notifier->failures = NULL; /* the JSON object owns the reference now */
	char *body = json_dumps(object, JSON_INDENT(1));
	json_decref(object);
	return body;
}

/* The result of a run, as its receivers distinguish it. */
enum run_result {
	RUN_SUCCEEDED,
	RUN_FAILED,
	/* The run was stopped by a signal or a limit, left files to others, or did not read its
	 * pipe because an earlier run had stored the object. The ping has the ending /log, and no
	 * command is run. */
	RUN_WAS_NEITHER,
};

static enum run_result judge_run(const struct s3once_push *push, int code)
{
	const bool repeats = push && counts_repeat_a_night(s3once_push_counts(push));
	if (code == S3ONCE_EXIT_OK && !repeats)
		return RUN_SUCCEEDED;
	return fleet_is_failure(code) ? RUN_FAILED : RUN_WAS_NEITHER;
}

/* Sends the last ping, once the first one has arrived. Warns if one of them fails. */
static void ping_at_end(struct notifier *notifier, enum run_result result, const char *body)
{
	static const char *const endings[] = {
		[RUN_SUCCEEDED] = "", [RUN_FAILED] = "/fail", [RUN_WAS_NEITHER] = "/log"};
	struct problem problem = {0};
	end_first_ping(notifier);
	if (!notifier->options->ping_url)
		return;
	send_ping(notifier, endings[result], body, &problem);
	warn(notifier, "--ping-url: nobody was told how the run ended", &problem);
}

/* Runs the command of --on-success or --on-failure, and warns if the command fails. */
static void notify_by_command(const struct notifier *notifier, enum run_result result,
	const struct s3once_counts *counts, const char *body, int code)
{
	const struct push_options *options = notifier->options;
	const char *command = result == RUN_SUCCEEDED ? options->on_success
			      : result == RUN_FAILED  ? options->on_failure
						      : NULL;
	const char *why = NULL;
	int status = 0;
	struct problem problem = {0};
	if (!command)
		return;
	char **variables = make_variables(notifier, counts, code);
	const int error = run_command(command, variables, body, &status, &why);
	for (char **at = variables; *at; at++)
		free(*at);
	free(variables);
	if (error)
		problem_set(&problem, "the command cannot be started: %s", strerror(-error));
	else if (why)
		problem_set(&problem, "the command was ended: %s", why);
	else if (WIFSIGNALED(status))
		problem_set(&problem, "the command was ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		problem_set(&problem, "the command ended with exit status %d", WEXITSTATUS(status));
	warn(notifier, result == RUN_SUCCEEDED ? "--on-success" : "--on-failure", &problem);
}

void notifier_end(struct notifier *notifier, const struct s3once_push *push,
	const struct metrics *metrics, int code)
{
	static const struct s3once_counts none;
	const enum run_result result = judge_run(push, code);
	char *body = make_body(notifier, push, code);
	if (body)
		ping_at_end(notifier, result, body);
	else /* the first ping may be under way: notifier_clear() waits for it */
		output_message(
			notifier->output, "warning: nobody is told of the run: out of memory");
	if (metrics && notifier->options->metrics_otlp)
		send_metrics(notifier, metrics);
	if (body)
		notify_by_command(
			notifier, result, push ? s3once_push_counts(push) : &none, body, code);
	free(body);
}

void notifier_clear(struct notifier *notifier)
{
	if (notifier->has_start)
		uv_thread_join(&notifier->start);
	json_decref(notifier->failures);
}
