/* Metrics for Prometheus. --metrics-file keeps those of the last run of a job for node_exporter's
 * textfile collector, and `s3once watch` answers with them and its own. docs/operations.md lists
 * them. */
#pragma once
#include "cli/push/push_options.h"

#define METRICS_MAX              16
#define METRICS_BYTES_MAX        (256U << 10) /* of a job's file */
#define METRICS_ANSWER_BYTES_MAX (16U << 20)  /* of all jobs of a service */

struct metric_kind {
	const char *name, *type, *help;
};

/* Metrics with their samples, in the order in which they came. Zero it to start, and clear it. */
struct metrics {
	struct metric {
		const struct metric_kind *kind; /* static, and one for each name */
		struct text samples;
	} all[METRICS_MAX];
	size_t n;
};

/* Adds a sample; printf style. `more` has labels besides, or is "". */
void metrics_add(struct metrics *metrics, const struct metric_kind *kind, const char *labels,
	const char *more, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds all samples. */
void metrics_add_all(struct metrics *metrics, const struct metrics *more);
/* Adds the text that Prometheus reads: each metric is described once, and all its samples follow.
 * If a sample found no room, the text has the error. */
void metrics_text(const struct metrics *metrics, struct text *ret);
/* The body of a request of OTLP/HTTP with all of them, which are gauges, as JSON. The caller frees
 * it; NULL: out of memory. */
char *metrics_otlp(const struct metrics *metrics);
void metrics_clear(struct metrics *metrics);

/* Adds the labels that all metrics of a job have, or of a command line. */
void metrics_add_labels(struct text *t, const struct push_options *options);
/* Replaces the metrics, and the file in one step by one about this run, mode 0644. Processes that
 * do so at the same time take turns. What the file says of the last success is kept, and after a
 * run that did not see all files also what it says of the oldest one that is not in S3, as far as
 * it is of this job and target. Without a file, the metrics say it. `metrics` is where this process
 * keeps them; NULL: only in the file. `push` is the run that has ended; NULL: it never began. 0, or
 * -errno, with a sentence if there is a file: then the file is as it was. */
int metrics_write(const struct push_options *options, struct metrics *metrics,
	const struct s3once_push *push, int exit_code, struct problem *ret_problem);
