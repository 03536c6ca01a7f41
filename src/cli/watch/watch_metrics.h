/* What a watch tells Prometheus, and the server that Prometheus asks. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include "cli/watch/watched.h"
#include <stddef.h>

/* Metrics over HTTP: GET /metrics of a service, answered by a thread of libmicrohttpd. */
struct metrics_server;
/* Listens where `address` says (listen_address.h); the text is empty at first. 0; -EINVAL for what
 * is no address; another -errno, such as -EADDRINUSE; with a sentence. Free it. */
int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem);
/* Closes the port. NULL is fine. */
void metrics_server_free(struct metrics_server *server);
/* As given to metrics_server_new(). */
const char *metrics_server_address(const struct metrics_server *server);
/* What is answered from now on; copied. Out of memory, it stays what it was. */
void metrics_server_set(struct metrics_server *server, const char *text);

/* What `s3once watch` answers Prometheus: docs/operations.md lists the metrics. */
/* Adds the metrics of the last pass of each of n jobs, as cli/push/metrics.h makes them, and what
 * all their passes have come to. */
void watch_metrics(struct watched *const *jobs, size_t n, struct text *ret);
/* Whether the metrics of two jobs would have the same labels, which is said as an error. */
bool watch_metrics_clash(const struct job *a, const struct job *b);
