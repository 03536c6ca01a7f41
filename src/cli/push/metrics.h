/* What --metrics-file keeps for node_exporter's textfile collector: how the last run of a job
 * ended, and when one succeeded last. docs/operations.md lists the metrics. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include "s3once/push.h"
#include <stdbool.h>

struct metrics_run {
	const char *path;            /* of the file; NULL: only the text is kept */
	struct text *text;           /* where this process keeps what the job's metrics are; NULL:
					only in the file */
	const char *job;             /* whose run it was; NULL: that of a command line */
	const char *bucket, *prefix; /* its target */
	int exit_code;
	bool is_partial; /* it looked at some folders only */
	/* The run that has ended; NULL: it never began. */
	const struct s3once_push *push;
};

/* Whether a file can be made there: its folder exists, and what has its name may be replaced. 0, or
 * -EINVAL with a sentence. */
int metrics_check(const char *path, struct problem *ret_problem);
/* Adds the labels that all metrics of a job have; job may be NULL. */
void metrics_add_labels(struct text *t, const char *job, const char *bucket, const char *prefix);
/* Replaces the text, and the file in one step by one about this run, mode 0644. Processes that do
 * so at the same time take turns. What the file says of the last success is kept, and after a run
 * that did not see all files also what it says of the oldest one that is not in S3, as far as it is
 * of this job and target. Without a file, the text says it. 0, or -errno with a sentence: then the
 * file is as it was. */
int metrics_write(const struct metrics_run *run, struct problem *ret_problem);

/* Adds all samples of the texts, those of a metric together behind its one description. A text
 * consists of lines "# HELP NAME …", each followed by "# TYPE …" and the samples; "" is one. */
void metrics_merge(const char *const *texts, size_t n, struct text *ret);
