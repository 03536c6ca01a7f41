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
#include "base/thread.h"
#include "cli/child.h"
#include "cli/signals.h"
#include "http/http.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEND_MS            10000 /* for a message, with all tries */
#define SEND_TRIES         2
#define SEND_AGAIN_MS      1000 /* from one try to the next */
#define REPLY_BYTES_MAX    (64U << 10)
#define URL_BYTES_MAX      (8U << 10)
#define FAILURE_BYTES_MAX  (60U << 10) /* healthchecks.io keeps 100 KB of a ping */
#define COMMAND_MS         60000       /* from the start of a command to SIGTERM */
#define COMMAND_END_MS     5000        /* from SIGTERM to SIGKILL */
#define COMMAND_TICK_MS    100         /* from one look at the time and at signals to the next */
#define VARIABLE_BYTES_MAX (64U << 10)

/* Whether a second signal came: the user does not want to wait any longer. It is the `abandon` of
 * requests, whose argument is unused. */
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
	/* If nobody has abandoned the request, its deadline has passed. */
	else if (error == -ECANCELED && !is_hurried(NULL))
		problem_set(ret_problem, "no answer within %d seconds", SEND_MS / 1000);
	http_reply_clear(&reply);
	http_free(http);
	http_shared_free(shared);
	return error;
}

/* Sends a message, and tries it once more after an error. The body is JSON; NULL: there is none,
 * and the request is a GET. If all went well, the sentence is "".
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
		if (tries && !ca_bundle) /* the same request again: the error may pass */
			uv_sleep(SEND_AGAIN_MS);
		error = send_once(&request, ca_bundle, ret_problem);
		/* The last condition: there is no time for one more try. */
		if (!error || is_hurried(NULL) ||
			clock_boot_ns() + SEND_AGAIN_MS * NS_PER_MS >= deadline_ns)
			break;
	}
	if (!error)
		ret_problem->text[0] = 0; /* that of the first try, too */
}

/* Sends a ping to the URL, with `ending` behind its path, which may end with a '/' already. Behind
 * a '?' are settings of the receiver, which stay at the end. */
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

static void start_thread(void *arg)
{
	struct notifier *notifier = arg;
	send_ping(notifier, "/start", NULL, &notifier->start_problem);
}

void notifier_begin(struct notifier *notifier)
{
	if (notifier->options->ping_url && http_global_init() == 0)
		notifier->has_start = thread_start(&notifier->start, start_thread, notifier) == 0;
}

void notifier_event(struct notifier *notifier, const struct s3once_event *event)
{
	/* That another uploader holds a file is no failure, although people read it as an error. */
	if (event->type >= EVENT_SHAPES || event->type == S3ONCE_EVENT_HELD ||
		!(event_shapes[event->type].traits & IS_ERROR))
		return;
	json_t *failure = json_of_event(notifier->options, event);
	char *line = failure ? json_dumps(failure, JSON_COMPACT) : NULL;
	if (!notifier->failures)
		notifier->failures = json_array();
	/* Once an error finds no room, it and all later ones are left out. If there is no line,
	 * memory has run out, and that is as if there were no room. */
	notifier->failure_bytes += line ? strlen(line) : FAILURE_BYTES_MAX;
	if (notifier->failure_bytes > FAILURE_BYTES_MAX ||
		json_array_append(notifier->failures, failure))
		notifier->failures_left_out++;
	json_decref(failure);
	free(line);
}

/* A command of the job while it runs. */
struct command_run {
	uv_process_t process;
	uv_timer_t timer;
	uint64_t end_ns;  /* when it gets SIGTERM, and then when it gets SIGKILL */
	unsigned signals; /* how many signals had come before */
	const char *why;  /* why it was asked to end; NULL: it was not */
	int64_t status;
	int signal;
};

/* Keeps how the command has ended. The loop of run_command() ends once both handles are closed. */
static void on_command_end(uv_process_t *process, int64_t status, int signal)
{
	struct command_run *run = process->data;
	run->status = status;
	run->signal = signal;
	uv_close((uv_handle_t *)process, NULL);
	uv_close((uv_handle_t *)&run->timer, NULL);
}

/* Ends the command if its time is over or a signal came, first by SIGTERM and then by SIGKILL. The
 * command leads a process group. */
static void on_command_tick(uv_timer_t *timer)
{
	struct command_run *run = timer->data;
	const uint64_t now_ns = clock_boot_ns();
	const bool is_over = now_ns >= run->end_ns, is_stopped = signals_came() != run->signals;
	if (!run->why && (is_over || is_stopped)) {
		run->why = is_over ? "it took too long" : "a signal came";
		run->end_ns = now_ns + COMMAND_END_MS * NS_PER_MS;
		uv_kill(-run->process.pid, SIGTERM);
	} else if (is_over) { /* the time after SIGTERM is over, too */
		uv_kill(-run->process.pid, SIGKILL);
	}
}

extern char **environ;

/* Returns our environment with these variables, each of which ends with a NUL. Those that an
 * earlier s3once has set are left out. No string is copied; the caller frees the array. NULL: out
 * of memory. */
static char **make_environment(const struct text *variables)
{
	/* At first the most strings that there may be, and later those that there are. */
	size_t n = 0;
	while (environ[n])
		n++;
	for (size_t i = 0; i < variables->len; i++)
		n += variables->data[i] == '\0';
	char **made = variables->error ? NULL : calloc(n + 1, sizeof *made);
	n = 0;
	for (char **at = environ; made && *at; at++)
		if (strncmp(*at, "S3ONCE_JOB=", 11) != 0 &&
			strncmp(*at, "S3ONCE_STATUS=", 14) != 0 &&
			strncmp(*at, "S3ONCE_COUNT_", 13) != 0)
			made[n++] = *at;
	for (size_t i = 0; made && i < variables->len; i += strlen(variables->data + i) + 1)
		made[n++] = variables->data + i;
	return made;
}

/* Runs a command and waits for its end. After that, run->status and run->signal tell how it ended,
 * and run->why whether it was asked to. Returns 0, or -errno if it was not started. */
static int run_command(
	const char *command, char **environment, const char *body, struct command_run *run)
{
	static char shell[] = "sh", option[] = "-c";
	/* The body is in a file without a name, so that nobody waits for a command that reads it
	 * slowly. */
	const int input = memfd_create("s3once", MFD_CLOEXEC);
	/* What the command prints goes to standard error, since standard output may be that of
	 * --json. */
	uv_stdio_container_t stdio[] = {{.flags = UV_INHERIT_FD, .data.fd = input},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
	const uv_process_options_t options = {.file = "/bin/sh",
		.args = (char *[]){shell, option, (char *)(uintptr_t)command, NULL},
		.env = environment,
		.exit_cb = on_command_end,
		.flags = UV_PROCESS_DETACHED,
		.stdio = stdio,
		.stdio_count = 3};
	uv_loop_t loop;
	/* The file is in memory, so these calls fail only for lack of memory. */
	int error = (input < 0 || write_all(input, body, strlen(body)) || lseek(input, 0, SEEK_SET))
			    ? -ENOMEM
			    : uv_loop_init(&loop);
	if (!error) {
		uv_timer_init(&loop, &run->timer);
		run->timer.data = run->process.data = run;
		run->signals = signals_came();
		/* After a signal, somebody waits for the end of this process. */
		run->end_ns = clock_boot_ns() + (run->signals ? SEND_MS : COMMAND_MS) * NS_PER_MS;
		error = child_spawn(&loop, &run->process, &options);
		if (error) /* no process will end, so the handles are closed here */
			on_command_end(&run->process, 0, 0);
		else
			uv_timer_start(
				&run->timer, on_command_tick, COMMAND_TICK_MS, COMMAND_TICK_MS);
		uv_run(&loop, UV_RUN_DEFAULT);
		uv_loop_close(&loop);
	}
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
		output_say(notifier->output, "warning: %s: %s", what, sentence);
}

/* Runs the command of --on-success or --on-failure, and warns if the command fails. */
static void tell_command(const struct notifier *notifier, const char *option, const char *command,
	const struct s3once_counts *counts, const char *body, int code)
{
	/* "NAME=value", with a NUL behind each. */
	struct text variables = TEXT(VARIABLE_BYTES_MAX);
	struct command_run run = {0};
	struct problem problem = {0};
	text_addf(&variables, "S3ONCE_STATUS=%d%c", code, 0);
	if (notifier->options->job)
		text_addf(&variables, "S3ONCE_JOB=%s%c", notifier->options->job, 0);
	for (const struct counter *c = run_counters; c->name; c++) {
		text_add(&variables, "S3ONCE_COUNT_");
		for (const char *name = c->name; *name; name++)
			text_add_char(&variables, (char)toupper((unsigned char)*name));
		text_addf(&variables, "=%" PRIu64 "%c", counter_value(c, counts), 0);
	}
	char **environment = make_environment(&variables);
	const int error = environment ? run_command(command, environment, body, &run) : -ENOMEM;
	free(environment);
	text_clear(&variables);
	if (error)
		problem_set(&problem, "the command cannot be started: %s", uv_strerror(error));
	else if (run.why)
		problem_set(&problem, "the command was ended: %s", run.why);
	else if (run.signal)
		problem_set(&problem, "the command was ended by signal %d", run.signal);
	else if (run.status)
		problem_set(&problem, "the command ended with exit status %d", (int)run.status);
	warn(notifier, option, &problem);
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
	notifier->failures = NULL; /* the object has the reference now */
	char *body = json_dumps(object, JSON_INDENT(1));
	json_decref(object);
	return body;
}

void notifier_end(struct notifier *notifier, const struct s3once_push *push,
	const struct metrics *metrics, int code)
{
	static const struct s3once_counts none;
	const struct push_options *options = notifier->options;
	/* Both are false if the run was stopped by a signal or a limit, left files to others, or
	 * found the object of another night in place of reading its pipe. Then the ping has the
	 * ending /log, and no command is run. */
	const bool repeats = push && counts_repeat_a_night(s3once_push_counts(push));
	const bool is_success = code == S3ONCE_EXIT_OK && !repeats,
		   is_failure = fleet_is_failure(code);
	char *body = make_body(notifier, push, code);
	const char *option = is_success ? "--on-success" : "--on-failure";
	const char *command = is_success   ? options->on_success
			      : is_failure ? options->on_failure
					   : NULL;
	if (!body)
		output_say(notifier->output, "warning: nobody is told of the run: out of memory");
	/* The first ping arrives before the last one is sent. Without a body there is no last one,
	 * and notifier_clear() waits for the thread. */
	if (notifier->has_start && body) {
		uv_thread_join(&notifier->start);
		notifier->has_start = false;
		warn(notifier, "--ping-url: nobody was told that the run began",
			&notifier->start_problem);
	}
	if (body && options->ping_url) {
		struct problem problem = {0};
		const char *ending = is_success ? "" : is_failure ? "/fail" : "/log";
		send_ping(notifier, ending, body, &problem);
		warn(notifier, "--ping-url: nobody was told how the run ended", &problem);
	}
	if (metrics && options->metrics_otlp) {
		struct problem problem = {0};
		char *request = metrics_otlp(metrics);
		if (!request)
			problem_set(&problem, "out of memory");
		else
			send_message(notifier, options->metrics_otlp, request, &problem);
		warn(notifier, "--metrics: the metrics of the run are lost", &problem);
		free(request);
	}
	if (body && command)
		tell_command(notifier, option, command, push ? s3once_push_counts(push) : &none,
			body, code);
	free(body);
}

void notifier_clear(struct notifier *notifier)
{
	if (notifier->has_start)
		uv_thread_join(&notifier->start);
	json_decref(notifier->failures);
}
