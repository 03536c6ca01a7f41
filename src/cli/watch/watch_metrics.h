/* What `s3once watch` answers Prometheus: docs/operations.md lists the metrics. */
#pragma once
#include "base/text.h"
#include "cli/watch/watched.h"
#include <stddef.h>

/* Adds the metrics of the last pass of each of n jobs, as cli/push/metrics.h makes them, and what
 * all their passes have come to. */
void watch_metrics(struct watched *const *jobs, size_t n, struct text *ret);
/* Whether the metrics of two jobs would have the same labels, which is said as an error. */
bool watch_metrics_clash(const struct job *a, const struct job *b);
