/* Metrics for Prometheus. --metrics has the metrics of the last run of a job, for
 * node_exporter's textfile collector. `s3once watch` serves them too, together with its own.
 * docs/operations.md lists all metrics. */
#pragma once
#include "cli/push/push_options.h"

#define METRICS_MAX       16           /* the most kinds */
#define METRICS_BYTES_MAX (256U << 10) /* size limit of a job's file */
#define METRICS_ANSWER_BYTES_MAX                                                                   \
	(16U << 20) /* size limit of the metrics of all jobs of a service */

struct metric_kind {
	const char *name, *type, *help;
};

/* Metrics with their samples, in the order in which they were added. Zero it to start, and clear
 * it. */
struct metrics {
	struct metric {
		const struct metric_kind *kind; /* static, and one for each name */
		struct text samples;
	} all[METRICS_MAX];
	size_t n;
};

/* Adds a sample. The value is formatted as by printf(). `labels` are those of the run, as
 * metrics_add_labels() makes them, and `more` those of the sample: name="value",name="value".
 * Either may be "", but `more` only follows labels. */
void metrics_add(struct metrics *metrics, const struct metric_kind *kind, const char *labels,
	const char *more, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds all samples of `more`. */
void metrics_add_all(struct metrics *metrics, const struct metrics *more);
/* Adds the text that Prometheus reads: each metric is described once, and all its samples follow.
 * If there was no room for a sample, ret->error is set. */
void metrics_text(const struct metrics *metrics, struct text *ret);
/* Returns the body of an OTLP/HTTP request with all metrics, as gauges in JSON. The caller frees
 * it. NULL: out of memory. */
char *metrics_otlp(const struct metrics *metrics);
void metrics_clear(struct metrics *metrics);

/* Adds the labels of a run: target="s3://BUCKET/PREFIX", preceded by job="NAME" if the options name
 * a job. */
void metrics_add_labels(struct text *t, const struct push_options *options);
/* Writes the metrics of a run to *metrics, unless it is NULL, and to --metrics, if there is one.
 * The file is replaced in one step, and has mode 0644. Concurrent processes replace it one after
 * the other. `push` is the ended run; NULL: it never began. Returns 0 or -errno. After an error
 * with a file, there is a sentence, and the file is unchanged.
 *
 * After a run without success, the time of the last success is kept. After a run that did not see
 * all files, the time of the oldest file that is not in S3 is kept, unless this run knows an older
 * one. Both are read from the file, or without a file from *metrics, and only if they have the
 * labels of this job and target. */
int metrics_write(const struct push_options *options, struct metrics *metrics,
	const struct s3once_push *push, int exit_code, struct problem *ret_problem);
