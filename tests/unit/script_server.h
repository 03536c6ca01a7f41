/* A fake HTTP server for unit tests: a thread on a loopback port of its own that reads requests and
 * answers each with the next step of a script. It shows what no real server does on demand; how
 * real servers answer is shown by the tests in tests/system. */
#pragma once
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRIPT_STEPS_MAX 16
#define SCRIPT_BYTES_MAX (8U << 20)

struct script_step {
	const char *reply;            /* raw bytes; NULL: none */
	bool close;                   /* then close the connection */
	bool gone;                    /* before that, nobody listens any more */
	void (*meanwhile)(void *arg); /* called before the reply is sent; may be NULL */
	void *arg;
};

struct script_request {
	char *head, *body;
	size_t body_bytes;
	unsigned connection; /* from 1 */
};

struct script_server {
	struct script_step steps[SCRIPT_STEPS_MAX];
	struct script_request requests[SCRIPT_STEPS_MAX];
	size_t n_requests;
	unsigned connections;
	int listener, connection, stop[2];
	char url[64];
	pthread_t thread;
	bool is_running;
};

/* Waits for bytes of the connection. A new connection takes the place of the old one. False at the
 * end of the test. */
static inline bool script_wait(struct script_server *server)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = server->stop[0], .events = POLLIN},
			{.fd = server->listener, .events = POLLIN},
			{.fd = server->connection, .events = POLLIN}};
		poll(fds, 3, -1);
		if (fds[0].revents)
			return false;
		if (server->connection >= 0 && fds[2].revents)
			return true;
		if (fds[1].revents) {
			if (server->connection >= 0)
				close(server->connection);
			server->connection = accept(server->listener, NULL, NULL);
			server->connections++;
		}
	}
}

static inline void script_close(struct script_server *server)
{
	close(server->connection);
	server->connection = -1;
}

/* Reads one request; 1 if there is one, 0 if the connection ended, -1 at the end of the test. */
static inline int script_read(struct script_server *server, struct script_request *ret)
{
	char *bytes = calloc(1, SCRIPT_BYTES_MAX + 1);
	size_t n = 0, head_bytes = 0, body_bytes = 0;
	while (!head_bytes || n < head_bytes + body_bytes) {
		if (!bytes || !script_wait(server) || n == SCRIPT_BYTES_MAX) {
			free(bytes);
			return -1;
		}
		ssize_t got = recv(server->connection, bytes + n, SCRIPT_BYTES_MAX - n, 0);
		if (got <= 0) {
			free(bytes);
			return 0;
		}
		n += (size_t)got;
		char *end = strstr(bytes, "\r\n\r\n");
		if (!end || head_bytes)
			continue;
		head_bytes = (size_t)(end + 4 - bytes);
		char *length = strcasestr(bytes, "\r\ncontent-length:");
		if (length && length < end)
			body_bytes = strtoul(length + 17, NULL, 10);
		if (strcasestr(bytes, "\r\nexpect: 100-continue"))
			send(server->connection, "HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n",
				39, MSG_NOSIGNAL);
	}
	ret->head = strndup(bytes, head_bytes);
	ret->body = malloc(n - head_bytes + 1);
	memcpy(ret->body, bytes + head_bytes, n - head_bytes);
	ret->body[n - head_bytes] = 0;
	ret->body_bytes = n - head_bytes;
	ret->connection = server->connections;
	free(bytes);
	return 1;
}

static inline void *script_run(void *arg)
{
	struct script_server *server = arg;
	while (server->n_requests < SCRIPT_STEPS_MAX) {
		const struct script_step *step = &server->steps[server->n_requests];
		int got = script_read(server, &server->requests[server->n_requests]);
		if (got < 0)
			break;
		if (got == 0) {
			script_close(server);
			continue;
		}
		server->n_requests++;
		if (step->meanwhile)
			step->meanwhile(step->arg);
		if (step->reply)
			send(server->connection, step->reply, strlen(step->reply), MSG_NOSIGNAL);
		if (step->gone) {
			close(server->listener);
			server->listener = -1;
		}
		if (step->close)
			script_close(server);
	}
	return NULL;
}

/* Starts a server that answers by n steps, each used once. server->url is its "http://…". */
static inline bool script_start(
	struct script_server *server, const struct script_step *steps, size_t n)
{
	*server = (struct script_server){.connection = -1};
	for (size_t i = 0; i < n; i++)
		server->steps[i] = steps[i];
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!CHECK(bind(server->listener, (struct sockaddr *)&address, size) == 0 &&
		    listen(server->listener, 16) == 0 &&
		    getsockname(server->listener, (struct sockaddr *)&address, &size) == 0 &&
		    pipe(server->stop) == 0))
		return false;
	snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	server->is_running = CHECK(pthread_create(&server->thread, NULL, script_run, server) == 0);
	return server->is_running;
}

/* Ends the thread; the requests can be read then. A second call does nothing. */
static inline void script_stop(struct script_server *server)
{
	if (!server->is_running)
		return;
	server->is_running = false;
	CHECK_INT(write(server->stop[1], "x", 1), 1);
	pthread_join(server->thread, NULL);
	if (server->connection >= 0)
		script_close(server);
	if (server->listener >= 0)
		close(server->listener);
	close(server->stop[0]);
	close(server->stop[1]);
}

static inline void script_clear(struct script_server *server)
{
	script_stop(server);
	for (size_t i = 0; i < SCRIPT_STEPS_MAX; i++) {
		free(server->requests[i].head);
		free(server->requests[i].body);
	}
}
