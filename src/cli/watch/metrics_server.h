/* Metrics over HTTP: GET /metrics of a service, answered by a thread of libmicrohttpd. */
#pragma once
#include "base/problem.h"

struct metrics_server;
/* Listens where `address` says (listen_address_parse); the text is empty at first. 0; -EINVAL for
 * what is no address; another -errno, such as -EADDRINUSE; with a sentence. Free it. */
int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem);
/* Closes the port. NULL is fine. */
void metrics_server_free(struct metrics_server *server);
/* As given to metrics_server_new(). */
const char *metrics_server_address(const struct metrics_server *server);
/* What is answered from now on; copied. Out of memory, it stays what it was. */
void metrics_server_set(struct metrics_server *server, const char *text);
