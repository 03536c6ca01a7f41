/* Metrics and probes over HTTP: GET /metrics, /-/healthy and /-/ready of a service, answered by a
 * thread of libmicrohttpd. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

struct metrics_server;
/* Listens where `address` says (listen_address_parse); the text is empty at first. 0; -EINVAL for
 * what is no address; another -errno, such as -EADDRINUSE; with a sentence. Free it. */
int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem);
/* Closes the port. NULL is fine. */
void metrics_server_free(struct metrics_server *server);
/* As given to metrics_server_new(). */
const char *metrics_server_address(const struct metrics_server *server);
/* What the probes are answered: whether the service is ready from now on, and until when
 * (clock_monotonic_ns()) it is healthy, unless it is said again by then. Of any thread. */
void metrics_server_probe(struct metrics_server *server, bool is_ready, uint64_t healthy_until_ns);
/* What is answered from now on; copied. Out of memory, it stays what it was. */
void metrics_server_set(struct metrics_server *server, const char *text);
