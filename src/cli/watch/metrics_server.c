#include "cli/watch/metrics_server.h"
#include "base/quote.h"
#include "base/thread.h"
#include "cli/options/listen_address.h"
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define CONNECTIONS_MAX 16U
#define SILENCE_S       10U /* of a connection, until it is closed */

struct metrics_server {
	char *address;
	struct MHD_Daemon *daemon;
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

/* The thread gets no signals. It owns the descriptor then. */
static int start(struct metrics_server *server, int fd)
{
	sigset_t all, before;
	sigfillset(&all);
	thread_mask_signals(SIG_SETMASK, &all, &before);
	server->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer,
		server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_END);
	thread_mask_signals(SIG_SETMASK, &before, NULL);
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
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
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
