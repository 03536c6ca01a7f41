/* What a watch tells Prometheus of itself and of its passes, over HTTP: a thread with a few
 * connections, each bounded in bytes and time. */
#include "cli/watch/watch_metrics.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/thread.h"
#include "cli/options/values.h"
#include "cli/push/metrics.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* The metrics of a watch over HTTP: a thread with a few connections, each bounded in bytes and
 * time. */
#define CONNECTIONS_MAX 16U
#define OF_AN_ADDRESS   8U /* of these, so that one client does not keep the others out */
/* From its connection, or from the answer before it, until a request is answered. libmicrohttpd
 * limits silence alone, and a client that sends a byte now and then would never be silent. */
#define REQUEST_NS (10 * NS_PER_S)

/* A connection that is open. */
struct client {
	int fd;
	uint64_t end_ns; /* when it is closed; 0: nobody is here */
};

struct metrics_server {
	char *address;
	struct MHD_Daemon *daemon;
	uv_thread_t thread;
	bool runs;
	int stop[2]; /* a pipe: its thread ends once the end to write to is closed */
	/* Of the thread: */
	struct client clients[CONNECTIONS_MAX];
	bool has_room; /* for one of those that wait to be accepted */
	struct {
		uv_mutex_t mutex;
		char *text;
	} locked;
};

static struct MHD_Response *respond(const char *text, const char *header, const char *value)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	if (response)
		MHD_add_response_header(response, header, value);
	return response;
}

static struct MHD_Response *respond_with_metrics(struct metrics_server *server)
{
	uv_mutex_lock(&server->locked.mutex);
	struct MHD_Response *response = respond(server->locked.text, MHD_HTTP_HEADER_CONTENT_TYPE,
		"text/plain; version=0.0.4; charset=utf-8");
	uv_mutex_unlock(&server->locked.mutex);
	return response;
}

/* Called by libmicrohttpd for each request, as its MHD_AccessHandlerCallback. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *body, size_t *body_bytes, void **state)
{
	struct MHD_Response *response;
	unsigned status = MHD_HTTP_OK;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		response = respond(
			"Only GET and HEAD are allowed.\n", MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	} else if (strcmp(url, "/metrics") != 0) {
		status = MHD_HTTP_NOT_FOUND;
		response = respond("The metrics are at /metrics.\n", MHD_HTTP_HEADER_CONTENT_TYPE,
			"text/plain; charset=utf-8");
	} else {
		response = respond_with_metrics(arg);
	}
	if (!response)
		return MHD_NO;
	const enum MHD_Result queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

/* When a connection begins and ends; MHD_NotifyConnectionCallback. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **client,
	enum MHD_ConnectionNotificationCode code)
{
	struct metrics_server *server = arg;
	struct client *at = *client;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && at) {
		at->end_ns = 0;
		server->has_room = true;
	}
	if (code != MHD_CONNECTION_NOTIFY_STARTED)
		return;
	for (at = server->clients; at->end_ns;)
		at++;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*at = (struct client){info->connect_fd, clock_boot_ns() + REQUEST_NS};
	*client = at;
}

/* When a request is answered; MHD_RequestCompletedCallback. */
static void on_answered(void *arg, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct client *client = info->socket_context;
	if (client)
		client->end_ns = clock_boot_ns() + REQUEST_NS;
}

/* Ends the connections whose time has passed. Returns how many ms there are until the next one's,
 * or -1: there is none. */
static int end_late(struct metrics_server *server)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t next_ns = UINT64_MAX;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct client *client = &server->clients[i];
		if (client->end_ns && client->end_ns <= now_ns) {
			shutdown(client->fd, SHUT_RDWR); /* libmicrohttpd closes it */
			client->end_ns = now_ns + REQUEST_NS;
		}
		if (client->end_ns && client->end_ns < next_ns)
			next_ns = client->end_ns;
	}
	return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / NS_PER_MS) + 1;
}

static void serve_metrics(void *arg)
{
	struct metrics_server *server = arg;
	MHD_UNSIGNED_LONG_LONG ms;
	struct pollfd fds[] = {
		{.fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
			.events = POLLIN},
		{.fd = server->stop[0], .events = POLLIN},
	};
	while (!fds[1].revents) {
		const int left_ms = end_late(server);
		const bool has_more = MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms == 0;
		poll(fds, 2, has_more || server->has_room ? 0 : left_ms);
		server->has_room = false;
		MHD_run(server->daemon);
	}
}

/* A descriptor that listens, or -errno. */
static int listen_at(const struct listen_address *at)
{
	const int on = 1;
	const int fd = socket(at->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (!bind(fd, (const struct sockaddr *)&at->address, at->length) && !listen(fd, SOMAXCONN))
		return fd;
	const int error = -errno;
	close(fd);
	return error;
}

/* It owns the descriptor then. */
static int start(struct metrics_server *server, int fd)
{
	if (pipe2(server->stop, O_CLOEXEC))
		return -errno;
	server->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, OF_AN_ADDRESS, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_answered, server,
		MHD_OPTION_END);
	return server->daemon ? 0 : -EAGAIN;
}

static int open_server(struct metrics_server *server, struct problem *problem)
{
	struct listen_address at;
	int error = listen_address_parse(server->address, &at, problem);
	if (error)
		return error;
	const int fd = listen_at(&at);
	error = fd < 0 ? fd : start(server, fd);
	if (error && fd >= 0)
		close(fd);
	error = error ? error : thread_start(&server->thread, serve_metrics, server);
	server->runs = error == 0;
	if (error == -EADDRINUSE)
		problem_set(problem,
			"--metrics-listen: another program listens at %s; end it, or choose another port",
			quote(server->address).text);
	else if (error)
		problem_set(problem, "--metrics-listen: cannot listen at %s: %s",
			quote(server->address).text, strerror(-error));
	return error;
}

int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem)
{
	struct metrics_server *server = calloc(1, sizeof *server);
	char *copy = strdup(address), *empty = strdup("");
	if (!server || !copy || !empty) {
		free(server);
		free(copy);
		free(empty);
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	server->address = copy;
	server->stop[0] = server->stop[1] = -1;
	server->locked.text = empty;
	uv_mutex_init(&server->locked.mutex);
	const int error = open_server(server, ret_problem);
	if (error)
		metrics_server_free(server);
	else
		*ret = server;
	return error;
}

void metrics_server_free(struct metrics_server *server)
{
	if (!server)
		return;
	if (server->stop[1] >= 0)
		close(server->stop[1]);
	if (server->runs)
		uv_thread_join(&server->thread);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	if (server->stop[0] >= 0)
		close(server->stop[0]);
	uv_mutex_destroy(&server->locked.mutex);
	free(server->locked.text);
	free(server->address);
	free(server);
}

const char *metrics_server_address(const struct metrics_server *server)
{
	return server->address;
}

void metrics_server_set(struct metrics_server *server, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return;
	uv_mutex_lock(&server->locked.mutex);
	char *before = server->locked.text;
	server->locked.text = copy;
	uv_mutex_unlock(&server->locked.mutex);
	free(before);
}

#define LABELS_BYTES_MAX 8192
#define JOB_BYTES_MAX    (512U << 10)

static void add_metric(struct text *t, const char *name, const char *type, const char *help)
{
	text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_labels(const struct job *job, struct text *ret)
{
	const struct s3once_options *o = &job->options.run;
	metrics_add_labels(ret, job->name, o->bucket, o->prefix);
}

static void add_passes(const struct watched_sums *sums, const char *labels, struct text *ret)
{
	static const char name[] = "s3once_watch_passes_total";
	add_metric(ret, name, "counter",
		"Passes since the service began, over all files or over some folders.");
	text_addf(ret, "%s{%s,over=\"all\"} %" PRIu64 "\n", name, labels, sums->whole);
	text_addf(ret, "%s{%s,over=\"some\"} %" PRIu64 "\n", name, labels,
		sums->passes - sums->whole);
}

static void add_sums(const struct watched *job, struct text *ret)
{
	struct watched_sums sums = {0};
	struct text labels = TEXT(LABELS_BYTES_MAX);
	watched_add(job, &sums);
	add_labels(watched_job(job), &labels);
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} metrics[] = {
		{"s3once_watch_folders", "gauge", "Folders whose changes the kernel tells of.",
			sums.folders},
		{"s3once_watch_failed_passes_total", "counter",
			"Passes since the service began that ended with another exit status than 0.",
			sums.failed},
		{"s3once_watch_uploaded_files_total", "counter",
			"Files that were uploaded since the service began.", sums.files},
		{"s3once_watch_uploaded_bytes_total", "counter", "Bytes of these files.",
			sums.bytes},
	};
	add_passes(&sums, text_string(&labels), ret);
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		add_metric(ret, metrics[i].name, metrics[i].type, metrics[i].help);
		text_addf(ret, "%s{%s} %" PRIu64 "\n", metrics[i].name, text_string(&labels),
			metrics[i].value);
	}
	text_clear(&labels);
}

void watch_metrics(struct watched *const *jobs, size_t n, struct text *ret)
{
	struct text *texts = calloc(n, sizeof *texts);
	const char **strings = calloc(n, sizeof *strings);
	for (size_t i = 0; texts && strings && i < n; i++) {
		texts[i] = TEXT(JOB_BYTES_MAX);
		text_add(&texts[i], watched_metrics(jobs[i]));
		add_sums(jobs[i], &texts[i]);
		strings[i] = text_string(&texts[i]);
	}
	if (texts && strings)
		metrics_merge(strings, n, ret);
	for (size_t i = 0; texts && i < n; i++)
		text_clear(&texts[i]);
	free(strings);
	free(texts);
}

bool watch_metrics_clash(const struct job *a, const struct job *b)
{
	struct text labels = TEXT(LABELS_BYTES_MAX), others = TEXT(LABELS_BYTES_MAX);
	add_labels(a, &labels);
	add_labels(b, &others);
	const bool clash = strcmp(text_string(&labels), text_string(&others)) == 0;
	if (clash)
		log_error(
			"watch: --metrics-listen: two jobs are called %s and have the same target, so "
			"that their metrics could not be told from each other: rename one of the files",
			quote(a->name).text);
	text_clear(&labels);
	text_clear(&others);
	return clash;
}
