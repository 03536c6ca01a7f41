/* Metrics and probes over HTTP: GET /metrics, /-/healthy and /-/ready of a service, answered by a
 * thread of libmicrohttpd. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

struct metrics_server;
/* Starts a server that listens at `address`, which listen_address_parse() reads. /metrics is empty
 * at first. Returns 0, or -errno with a sentence: -EINVAL if it is no address, or another error,
 * such as -EADDRINUSE. Free the server with metrics_server_free(). */
int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem);
/* Closes the port. NULL is fine. */
void metrics_server_free(struct metrics_server *server);
/* Returns the address as it was given to metrics_server_new(). */
const char *metrics_server_address(const struct metrics_server *server);
/* Sets the answers to probes from now on: whether the service is ready, and the
 * clock_monotonic_ns() until which it is healthy. Call it again before that time. Thread-safe. */
void metrics_server_set_probes(
	struct metrics_server *server, bool is_ready, uint64_t healthy_until_ns);
/* Sets the content of /metrics from now on. It is copied. If memory runs out, the earlier text
 * stays. */
void metrics_server_set(struct metrics_server *server, const char *text);
