/* Whom the end of a run is reported to: which ping is sent and which command is run after which
 * exit status, with which words and variables, and which warnings follow. The receiver is a script,
 * and commands are started by a fake. */
#include "../script_server.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/push/notifier.h"
#include "cli/signals.h"
#include "upload/push_struct.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define ANSWER(status)                                                                             \
	{                                                                                          \
		.reply =                                                                           \
			"HTTP/1.1 " status " X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", \
		.close = true                                                                      \
	}

/* Instead of libuv's: nothing waits. */
static atomic_uint slept_ms;

void uv_sleep(unsigned ms)
{
	slept_ms += ms;
}

/* The behaviour of the fake child, and its recorded arguments. */
static struct {
	int error, status, signal;
	bool hangs; /* until a signal comes for us */
	bool naps;  /* for longer than the first look whether it has ended */
} child;
static struct {
	unsigned n;
	char command[100], variables[4000], input[8000];
	bool has_session;
} started;

int child_start(const struct child_options *options, pid_t *ret)
{
	started.n++;
	CHECK_STRING(options->command[0], "/bin/sh");
	CHECK_STRING(options->command[1], "-c");
	CHECK(!options->command[3]);
	snprintf(started.command, sizeof started.command, "%s", options->command[2]);
	*started.variables = 0;
	for (char *const *at = options->variables; *at; at++) {
		strcat(started.variables, *at);
		strcat(started.variables, "\n");
	}
	CHECK_INT(options->n_fds, 2);
	CHECK_INT(options->fds[0].theirs, STDIN_FILENO);
	CHECK_INT(options->fds[1].ours, STDERR_FILENO);
	CHECK_INT(options->fds[1].theirs, STDOUT_FILENO);
	const ssize_t n = read(options->fds[0].ours, started.input, sizeof started.input - 1);
	started.input[n > 0 ? n : 0] = 0;
	started.has_session = options->has_session;
	if (child.error)
		return child.error;
	*ret = fork();
	if (*ret == 0) {
		if (child.signal)
			kill(getpid(), child.signal);
		if (child.hangs)
			sleep(20);
		if (child.naps)
			poll(NULL, 0, 100);
		_exit(child.status);
	}
	if (child.hangs)
		raise(SIGTERM);
	return 0;
}

bool child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid;
}

/* The lines that were printed. */
static char log_path[] = "/tmp/test_notifier.XXXXXX";
static char printed[8000];

static struct output begin_output(void)
{
	struct output output;
	CHECK_INT(truncate(log_path, 0), 0);
	output_init(&output, &(struct output_options){.log_file = log_path, .end_ms = 1000});
	return output;
}

static void end_output(struct output *output)
{
	CHECK_INT(output_finish(output), 0);
	FILE *file = fopen(log_path, "r");
	printed[file ? fread(printed, 1, sizeof printed - 1, file) : 0] = 0;
	if (file)
		fclose(file);
}

/* Which ping and which command follow from the exit status. */
static void test_end(void)
{
	static const struct {
		int code;
		uint64_t repeats_age_s; /* 0: the run has read its pipe, or had none */
		const char *path, *command;
	} rows[] = {
		{S3ONCE_EXIT_OK, 0, "/p/id?a=b", "good"},
		{S3ONCE_EXIT_OK, 3600, "/p/id?a=b", "good"},
		{S3ONCE_EXIT_OK, 12 * 3600 - 1, "/p/id?a=b", "good"},
		{S3ONCE_EXIT_OK, 12 * 3600, "/p/id/log?a=b", ""},
		{S3ONCE_EXIT_FILES, 0, "/p/id/fail?a=b", "bad"},
		{S3ONCE_EXIT_FILES, 24 * 3600, "/p/id/fail?a=b", "bad"},
		{S3ONCE_EXIT_USAGE, 0, "/p/id/fail?a=b", "bad"},
		{S3ONCE_EXIT_SETUP, 0, "/p/id/fail?a=b", "bad"},
		{S3ONCE_EXIT_HELD, 0, "/p/id/log?a=b", ""},
		{S3ONCE_EXIT_FENCED, 0, "/p/id/fail?a=b", "bad"},
		{S3ONCE_EXIT_LIMIT, 0, "/p/id/log?a=b", ""},
		{S3ONCE_EXIT_STOPPED + 15, 0, "/p/id/log?a=b", ""},
	};
	const struct script_step ok = ANSWER("200");
	struct s3once_push *push = calloc(1, sizeof *push);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_server server;
		char url[100], variable[60], line[100];
		if (!script_start(&server, &ok, 1))
			break;
		snprintf(url, sizeof url, "%s/p/id?a=b", server.url);
		const struct push_options options = {.ping_url = url,
			.on_success = "good",
			.on_failure = "bad",
			.job = i % 2 ? "nightly" : NULL,
			.run = {.bucket = "bkt", .prefix = "pre"}};
		struct output output = begin_output();
		struct notifier notifier = {.options = &options, .output = &output};
		memset(&started, 0, sizeof started);
		memset(&child, 0, sizeof child);
		push->counts = (struct s3once_counts){.uploaded = 3,
			.failed = 4,
			.links = 5,
			.bytes_uploaded = 6,
			.found = 7,
			.repeats_s = rows[i].repeats_age_s ? 1000 : 0,
			.repeats_age_s = rows[i].repeats_age_s};
		notifier_event(&notifier, &(struct s3once_event){.type = S3ONCE_EVENT_FAILED,
						  .path = "/t/broken",
						  .key = "k",
						  .text = "t",
						  .code = "",
						  .request_id = ""});
		notifier.failures_left_out = i;
		setenv("S3ONCE_COUNT_OF_OLD", "9", 1);
		notifier_end(&notifier, push, NULL, rows[i].code);
		notifier_clear(&notifier);
		end_output(&output);
		script_stop(&server);
		bool good = CHECK_INT(server.n_requests, 1);
		snprintf(line, sizeof line, "POST %s HTTP/1.1\r\n", rows[i].path);
		if (good) {
			const struct script_request *request = &server.requests[0];
			good &= CHECK(strncmp(request->head, line, strlen(line)) == 0);
			good &= CHECK(strstr(request->head, "Content-Type: application/json\r\n") !=
				      NULL);
			good &= CHECK(strstr(request->body, "\"bucket\": \"bkt\"") != NULL);
			good &= CHECK(strstr(request->body, "\"prefix\": \"pre\"") != NULL);
			good &= CHECK(strstr(request->body, "\"/t/broken\"") != NULL);
			snprintf(line, sizeof line, "\"failures_left_out\": %zu", i);
			good &= CHECK(strstr(request->body, line) != NULL);
			snprintf(line, sizeof line, "\"exit\": %d", rows[i].code);
			good &= CHECK(strstr(request->body, line) != NULL);
			if (*rows[i].command)
				good &= CHECK_STRING(started.input, request->body);
		}
		good &= CHECK_INT(started.n, *rows[i].command != 0);
		good &= CHECK_STRING(started.command, rows[i].command);
		if (started.n) {
			snprintf(variable, sizeof variable, "S3ONCE_STATUS=%d\nS3ONCE_JOB%s\n",
				rows[i].code, options.job ? "=nightly" : "");
			good &= CHECK(strncmp(started.variables, variable, strlen(variable)) == 0);
			static const char *const lines[] = {"\nS3ONCE_COUNT_UPLOADED=3\n",
				"\nS3ONCE_COUNT_FAILED=4\n", "\nS3ONCE_COUNT_LINKS=5\n",
				"\nS3ONCE_COUNT_BYTES=6\n", "\nS3ONCE_COUNT_FILES=7\n",
				"\nS3ONCE_COUNT_OF_OLD\n"};
			for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
				good &= CHECK(strstr(started.variables, lines[k]) != NULL);
			good &= CHECK(started.has_session);
		}
		good &= CHECK_STRING(printed, "");
		script_clear(&server);
		if (!good)
			fprintf(stderr, "\trow %zu: exit status %d\n", i, rows[i].code);
	}
	free(push);
}

/* Only targets named by options are notified, and a failed command is a warning. */
static void test_commands(void)
{
	static const struct {
		const char *on_success, *on_failure;
		int code, error, status, signal;
		unsigned n;
		const char *says;
	} rows[] = {
		{"good", NULL, 0, 0, 0, 0, 1, ""},
		{"good", NULL, 1, 0, 0, 0, 0, ""},
		{NULL, "bad", 0, 0, 0, 0, 0, ""},
		{NULL, "bad", 3, 0, 0, 0, 1, ""},
		{NULL, NULL, 3, 0, 0, 0, 0, ""},
		{"good", NULL, 0, 0, 3, 0, 1,
			"warning: --on-success: the command ended with exit status 3"},
		{NULL, "bad", 1, 0, 127, 0, 1,
			"warning: --on-failure: the command ended with exit status 127"},
		{NULL, "bad", 1, 0, 0, SIGKILL, 1,
			"warning: --on-failure: the command was ended by signal 9"},
		{"good", NULL, 0, -EAGAIN, 0, 0, 1,
			"warning: --on-success: the command cannot be started: "},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct push_options options = {.on_success = rows[i].on_success,
			.on_failure = rows[i].on_failure,
			.run = {.bucket = "b", .prefix = ""}};
		struct output output = begin_output();
		struct notifier notifier = {.options = &options, .output = &output};
		memset(&started, 0, sizeof started);
		child.error = rows[i].error;
		child.status = rows[i].status;
		child.signal = rows[i].signal;
		notifier_begin(&notifier);
		notifier_end(&notifier, NULL, NULL, rows[i].code);
		notifier_clear(&notifier);
		end_output(&output);
		bool good = CHECK_INT(started.n, rows[i].n);
		good &= CHECK(*rows[i].says ? strstr(printed, rows[i].says) != NULL : !*printed);
		/* The run never began: each counter is there, and is 0. */
		good &= CHECK(!started.n ||
			      strstr(started.variables, "\nS3ONCE_COUNT_UPLOADED=0\n") != NULL);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, printed);
	}
}

/* The ping at the beginning, where its ending goes, and the warnings if one does not arrive. */
static void test_begin(void)
{
	static const struct {
		const char *behind, *start, *end;
		struct script_step steps[4];
		unsigned n_start, n, slept_ms;
		const char *says;
	} rows[] = {
		{"/p", "GET /p/start ", "POST /p ", {ANSWER("200"), ANSWER("200")}, 1, 2, 0, ""},
		{"/p/", "GET /p/start ", "POST /p/ ", {ANSWER("204"), ANSWER("299")}, 1, 2, 0, ""},
		{"/p/?x=/", "GET /p/start?x=/ ", "POST /p/?x=/ ", {ANSWER("200"), ANSWER("200")}, 1,
			2, 0, ""},
		{"", "GET /start ", "POST / ", {ANSWER("200"), ANSWER("200")}, 1, 2, 0, ""},
		/* Once more after an error, a second later. */
		{"/p", "GET /p/start ", "POST /p ",
			{ANSWER("302"), ANSWER("200"), ANSWER("503"), ANSWER("200")}, 2, 4, 2000,
			""},
		{"/p", "GET /p/start ", "POST /p ", {ANSWER("500"), ANSWER("501"), ANSWER("200")},
			2, 3, 1000,
			"warning: --ping-url: nobody was told that the run began: the server "
			"answered with HTTP status 501"},
		{"/p", "GET /p/start ", "POST /p ", {ANSWER("200"), ANSWER("404"), ANSWER("300")},
			1, 3, 1000,
			"warning: --ping-url: nobody was told how the run ended: the server "
			"answered with HTTP status 300"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_server server;
		char url[100];
		if (!script_start(&server, rows[i].steps, rows[i].n))
			break;
		snprintf(url, sizeof url, "%s%s", server.url, rows[i].behind);
		const struct push_options options = {
			.ping_url = url, .run = {.bucket = "b", .prefix = ""}};
		struct output output = begin_output();
		struct notifier notifier = {.options = &options, .output = &output};
		slept_ms = 0;
		notifier_begin(&notifier);
		notifier_end(&notifier, NULL, NULL, 0);
		notifier_clear(&notifier);
		end_output(&output);
		script_stop(&server);
		bool good = CHECK_INT(server.n_requests, rows[i].n);
		for (size_t k = 0; k < server.n_requests; k++) {
			const struct script_request *request = &server.requests[k];
			const bool is_start = k < rows[i].n_start;
			const char *want = is_start ? rows[i].start : rows[i].end;
			good &= CHECK(strncmp(request->head, want, strlen(want)) == 0);
			good &= CHECK_INT(request->body_bytes == 0, is_start);
			good &= CHECK_INT(!strstr(request->head, "Content-Type"), is_start);
		}
		good &= CHECK_INT(slept_ms, rows[i].slept_ms);
		good &= CHECK(*rows[i].says ? strstr(printed, rows[i].says) != NULL : !*printed);
		script_clear(&server);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, printed);
	}
}

/* Which events are failures, and how many there is room for. */
static void test_failures(void)
{
	static const struct push_options options = {.run = {.bucket = "b", .prefix = ""}};
	char text[5001];
	struct s3once_event event = {.path = "p",
		.key = "k",
		.text = text,
		.code = "c",
		.request_id = "r",
		.version_id = "",
		.etag = "",
		.checksum = ""};
	memset(text, 't', sizeof text - 1);
	text[sizeof text - 1] = 0;
	for (int type = 0; type < S3ONCE_EVENT_SUMMARY; type++) {
		struct s3once_counts counts = {0};
		struct notifier notifier = {.options = &options};
		event.type = (enum s3once_event_type)type;
		event.counts = &counts;
		notifier_event(&notifier, &event);
		const bool is_failure =
			type == S3ONCE_EVENT_CHANGED || type == S3ONCE_EVENT_FAILED ||
			type == S3ONCE_EVENT_NOT_REMOVED || type == S3ONCE_EVENT_MANIFEST_FAILED ||
			type == S3ONCE_EVENT_FATAL;
		if (!CHECK_INT(json_array_size(notifier.failures), is_failure))
			fprintf(stderr, "\tevent %d\n", type);
		notifier_clear(&notifier);
	}
	struct notifier notifier = {.options = &options};
	event.type = S3ONCE_EVENT_SUMMARY;
	notifier_event(&notifier, &event);
	CHECK(!notifier.failures);
	event.type = S3ONCE_EVENT_FAILED;
	for (unsigned i = 1; i <= 20; i++) {
		notifier_event(&notifier, &event);
		CHECK_INT(json_array_size(notifier.failures), i < 12 ? i : 12);
	}
	/* Once one found no room, later ones have none, however short. */
	const size_t kept = json_array_size(notifier.failures);
	CHECK_INT(notifier.failures_left_out, 20 - kept);
	text[1] = 0;
	notifier_event(&notifier, &event);
	CHECK_INT(json_array_size(notifier.failures), kept);
	CHECK_INT(notifier.failures_left_out, 21 - kept);
	notifier_clear(&notifier);
}

/* The metrics go to their own URL, whatever the exit status, if there are some. */
static void test_metrics(void)
{
	static const struct metric_kind kind = {"m", "gauge", "An m."};
	static const struct {
		bool has_url, has_metrics;
		struct script_step steps[2];
		unsigned n;
		const char *says;
	} rows[] = {
		{true, true, {ANSWER("200")}, 1, ""},
		{true, false, {ANSWER("200")}, 0, ""},
		{false, true, {ANSWER("200")}, 0, ""},
		{true, true, {ANSWER("503"), ANSWER("400")}, 2,
			"warning: --metrics: the metrics of the run are lost: the server answered "
			"with HTTP status 400"},
	};
	struct metrics metrics = {0};
	metrics_add(&metrics, &kind, "job=\"j\",target=\"s3://b\"", "x=\"a\\\"b\\n\"", "%d", 7);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_server server;
		char url[100];
		if (!script_start(&server, rows[i].steps, 2))
			break;
		snprintf(url, sizeof url, "%s/v1/metrics", server.url);
		const struct push_options options = {.metrics_otlp = rows[i].has_url ? url : NULL,
			.run = {.bucket = "b", .prefix = ""}};
		struct output output = begin_output();
		struct notifier notifier = {.options = &options, .output = &output};
		notifier_end(&notifier, NULL, rows[i].has_metrics ? &metrics : NULL, (int)i);
		notifier_clear(&notifier);
		end_output(&output);
		script_stop(&server);
		bool good = CHECK_INT(server.n_requests, rows[i].n);
		for (size_t k = 0; k < server.n_requests; k++) {
			static const char *const parts[] = {"\"name\":\"m\"", "An m.",
				"{\"key\":\"exported_job\",\"value\":{\"stringValue\":\"j\"}}",
				"{\"key\":\"target\",\"value\":{\"stringValue\":\"s3://b\"}}",
				"{\"key\":\"x\",\"value\":{\"stringValue\":\"a\\\"b\\n\"}}",
				"\"asDouble\":7.0"};
			const struct script_request *request = &server.requests[k];
			good &= CHECK(strncmp(request->head, "POST /v1/metrics ", 17) == 0);
			for (size_t m = 0; m < sizeof parts / sizeof *parts; m++)
				good &= CHECK(strstr(request->body, parts[m]) != NULL);
			if (!good)
				fprintf(stderr, "\t%s\n", request->body);
		}
		good &= CHECK(*rows[i].says ? strstr(printed, rows[i].says) != NULL : !*printed);
		script_clear(&server);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, printed);
	}
	metrics_clear(&metrics);
}

/* A signal ends a command that hangs. */
static void test_signal(void)
{
	const struct push_options options = {
		.on_success = "good", .run = {.bucket = "b", .prefix = ""}};
	struct output output = begin_output();
	struct notifier notifier = {.options = &options, .output = &output};
	memset(&child, 0, sizeof child);
	child.hangs = true;
	signals_count("");
	notifier_end(&notifier, NULL, NULL, 0);
	CHECK_INT(signals_restore(), SIGTERM);
	end_output(&output);
	CHECK(strstr(printed, "warning: --on-success: the command was ended: a signal came") !=
		NULL);
}

/* After a first signal, the end of the run is reported all the same, and a command has its time. */
static void test_after_signal(void)
{
	const struct script_step ok = ANSWER("200");
	struct script_server server;
	if (!script_start(&server, &ok, 1))
		return;
	const struct push_options options = {
		.ping_url = server.url, .on_success = "good", .run = {.bucket = "b", .prefix = ""}};
	struct output output = begin_output();
	struct notifier notifier = {.options = &options, .output = &output};
	memset(&started, 0, sizeof started);
	memset(&child, 0, sizeof child);
	child.naps = true;
	CHECK_INT(signals_came(), 1);
	notifier_end(&notifier, NULL, NULL, 0);
	notifier_clear(&notifier);
	end_output(&output);
	script_stop(&server);
	CHECK_INT(server.n_requests, 1);
	CHECK_INT(started.n, 1);
	CHECK_STRING(printed, "");
	script_clear(&server);
}

int main(void)
{
	const int fd = mkstemp(log_path);
	if (!CHECK(fd >= 0))
		return check_result();
	close(fd);
	test_end();
	test_commands();
	test_begin();
	test_failures();
	test_metrics();
	test_signal();
	test_after_signal();
	unlink(log_path);
	return check_result();
}
