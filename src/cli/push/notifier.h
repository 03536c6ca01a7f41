/* Notifications of a run beside its output: --ping-url, --on-success and --on-failure, and
 * --metrics with a URL. None of them changes the exit status: a failure is only a warning, and each
 * has a time limit. */
#pragma once
#include "cli/push/metrics.h"
#include "cli/push/run_events.h"
#include <uv.h>

struct notifier {
	const struct push_options *options; /* borrowed, as is the output */
	struct output *output;
	/* The errors of the run, as events of --json, as far as there is room. */
	json_t *failures;
	size_t failure_bytes;
	uint64_t failures_left_out;
	uv_thread_t start; /* sends the first ping */
	bool has_start;
	struct problem start_problem; /* why the first ping did not arrive, or "" */
};

/* With --ping-url, starts a thread that reports the beginning of a run. Zero *notifier, and set its
 * first two members. */
void notifier_begin(struct notifier *notifier);
/* Keeps errors for notifier_end(), and ignores other events. One call at a time. */
void notifier_event(struct notifier *notifier, const struct s3once_event *event);
/* Reports the end of the run. This may take a minute and a half, or less after a signal. `push` is
 * NULL if the run never began, and `metrics` is NULL without metrics. */
void notifier_end(struct notifier *notifier, const struct s3once_push *push,
	const struct metrics *metrics, int code);
/* Frees the kept errors. */
void notifier_clear(struct notifier *notifier);
