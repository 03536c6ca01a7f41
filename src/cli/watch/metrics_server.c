/* The HTTP server by which `s3once watch` answers Prometheus and probes. It is one thread with a
 * few connections, each limited in bytes and time. watch_command.c makes the answers. */
#include "cli/watch/metrics_server.h"
#include "base/clock.h"
#include "base/must_have.h"
#include "base/thread.h"
#include "cli/options/values.h"
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16U /* the most connections at once, from all addresses */
#define PER_ADDRESS_MAX 8U  /* the most from one address, so that others get in as well */
/* A connection is closed after its answer, and after this time at the latest. libmicrohttpd itself
 * limits only the time in which a client is silent, and a client that sends a byte now and then is
 * never silent for long. */
#define REQUEST_NS (10 * NS_PER_S)

/* A connection that is open. */
struct client {
	int fd;
	/* The clock_boot_ns() at which the connection is ended. 0: this place is free. */
	uint64_t end_ns;
};

struct metrics_server {
	char *address;
	struct MHD_Daemon *daemon;
	uv_thread_t thread;
	bool runs; /* the thread was started */
	_Atomic uint64_t healthy_until_ns;
	atomic_bool is_ready;
	int stop; /* an eventfd; the thread ends once it is written */
	/* Used by the thread alone: */
	struct client clients[CONNECTIONS_MAX];
	bool has_room; /* a connection was closed, so one that waits may be accepted */
	struct {
		uv_mutex_t mutex;
		char *text;
	} locked;
};

/* Called by libmicrohttpd for each request, as its MHD_AccessHandlerCallback. The mutex is held
 * until the text is copied, since the one of /metrics is freed when the next one is set. MHD_NO
 * closes the connection without an answer. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *body, size_t *body_bytes, void **state)
{
	struct metrics_server *server = arg;
	const char *header = MHD_HTTP_HEADER_CONTENT_TYPE, *value = "text/plain; charset=utf-8";
	const char *text;
	unsigned status = MHD_HTTP_OK;
	uv_mutex_lock(&server->locked.mutex);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		text = "Only GET and HEAD are allowed.\n";
		header = MHD_HTTP_HEADER_ALLOW;
		value = "GET, HEAD";
	} else if (strcmp(url, "/metrics") == 0) {
		text = server->locked.text;
		value = "text/plain; version=0.0.4; charset=utf-8";
	} else if (strcmp(url, "/-/healthy") == 0) {
		const bool lives = clock_monotonic_ns() < atomic_load(&server->healthy_until_ns);
		status = lives ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
		text = lives ? "The service is alive.\n"
			     : "The service has given no sign of life for too long.\n";
	} else if (strcmp(url, "/-/ready") == 0) {
		const bool is_ready = atomic_load(&server->is_ready);
		status = is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
		text = is_ready ? "All jobs have reached S3 and their marks.\n"
				: "Some job has not reached S3 and its marks.\n";
	} else {
		status = MHD_HTTP_NOT_FOUND;
		text = "The metrics are at /metrics.\n";
	}
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	uv_mutex_unlock(&server->locked.mutex);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, header, value);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	const enum MHD_Result queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

/* Called by libmicrohttpd when a connection begins or ends, as its MHD_NotifyConnectionCallback.
 * libmicrohttpd keeps *socket_context for us as long as the connection lasts. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct metrics_server *server = arg;
	struct client *client = *socket_context;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && client) {
		client->end_ns = 0;
		server->has_room = true;
	}
	if (code != MHD_CONNECTION_NOTIFY_STARTED)
		return;
	/* A place whose end_ns is 0 is free. There is one, since there are as many places as
	 * connections. */
	for (client = server->clients; client->end_ns;)
		client++;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*client = (struct client){.fd = info->connect_fd, .end_ns = clock_boot_ns() + REQUEST_NS};
	*socket_context = client;
}

/* Ends the connections whose time has passed. Returns how many milliseconds are left until the next
 * one ends, rounded up; -1: there is none. */
static int end_late_clients(struct metrics_server *server)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t next_ns = UINT64_MAX;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct client *client = &server->clients[i];
		if (client->end_ns && client->end_ns <= now_ns) {
			/* libmicrohttpd notices the shutdown, and closes the connection. The place
			 * stays taken until then. Its new time only keeps the loop of the thread
			 * from running without a pause. */
			shutdown(client->fd, SHUT_RDWR);
			client->end_ns = now_ns + REQUEST_NS;
		}
		if (client->end_ns && client->end_ns < next_ns)
			next_ns = client->end_ns;
	}
	return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / NS_PER_MS) + 1;
}

/* The thread of the server: the loop around libmicrohttpd, which also ends connections in time. */
static void serve_metrics(void *arg)
{
	struct metrics_server *server = arg;
	MHD_UNSIGNED_LONG_LONG ms;
	struct pollfd fds[] = {
		{.fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
			.events = POLLIN},
		{.fd = server->stop, .events = POLLIN},
	};
	while (!fds[1].revents) { /* until server->stop is written */
		const int left_ms = end_late_clients(server);
		/* libmicrohttpd has more to do at once. */
		const bool has_more = MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms == 0;
		/* There is no event for a waiting connection that now has room. */
		poll(fds, 2, (has_more || server->has_room) ? 0 : left_ms);
		server->has_room = false;
		MHD_run(server->daemon);
	}
}

/* Returns a descriptor that listens at this address, or -errno. */
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

/* Starts libmicrohttpd at this address, and the thread. Returns 0 or -errno. After an error,
 * metrics_server_free() stops and closes whatever was begun. */
static int start_server(struct metrics_server *server, const struct listen_address *at)
{
	server->stop = eventfd(0, EFD_CLOEXEC);
	if (server->stop < 0)
		return -errno;
	const int fd = listen_at(at);
	if (fd < 0)
		return fd;
	/* The daemon owns the descriptor once it has started. */
	server->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, PER_ADDRESS_MAX, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, server, MHD_OPTION_END);
	if (!server->daemon) {
		close(fd);
		return -EAGAIN; /* libmicrohttpd gives no reason */
	}
	const int error = thread_start(&server->thread, serve_metrics, server);
	server->runs = error == 0;
	return error;
}

int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem)
{
	struct metrics_server *server = must_have(calloc(1, sizeof *server));
	struct listen_address at;
	server->address = must_have(strdup(address));
	server->locked.text = must_have(strdup(""));
	server->stop = -1;
	uv_mutex_init(&server->locked.mutex);
	int error = listen_address_parse(address, &at, ret_problem);
	if (error) {
		metrics_server_free(server);
		return error;
	}
	error = start_server(server, &at);
	if (error == -EADDRINUSE)
		problem_set(ret_problem,
			"--metrics-listen: another program listens at %s; end it, or choose another port",
			quote(address).text);
	else if (error)
		problem_set(ret_problem, "--metrics-listen: cannot listen at %s: %s",
			quote(address).text, strerror(-error));
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
	if (server->runs) {
		eventfd_write(server->stop, 1);
		uv_thread_join(&server->thread);
	}
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	if (server->stop >= 0)
		close(server->stop);
	uv_mutex_destroy(&server->locked.mutex);
	free(server->locked.text);
	free(server->address);
	free(server);
}

const char *metrics_server_address(const struct metrics_server *server)
{
	return server->address;
}

void metrics_server_set_probes(
	struct metrics_server *server, bool is_ready, uint64_t healthy_until_ns)
{
	atomic_store(&server->is_ready, is_ready);
	atomic_store(&server->healthy_until_ns, healthy_until_ns);
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
