/* Notifications of a run beside its output: --ping-url, --on-success and --on-failure, and
 * --metrics with a URL. None of them changes how a run ends: a failure is only a warning, and each
 * has a limit of time. */
#pragma once
#include "cli/push/metrics.h"
#include "cli/push/run_events.h"
#include <uv.h>

struct notifier {
	const struct push_options *options; /* borrowed, as is the output */
	struct output *output;
	/* The errors of the run, as far as there is room for them, as events of --json. */
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
/* Keeps the event for notifier_end() if it is an error. One call at a time. */
void notifier_event(struct notifier *notifier, const struct s3once_event *event);
/* Reports how the run ended. That may take a minute and a half, or less after a signal. `push` is
 * NULL if the run never began, and `metrics` if there are none. */
void notifier_end(struct notifier *notifier, const struct s3once_push *push,
	const struct metrics *metrics, int code);
/* Frees what is kept. */
void notifier_clear(struct notifier *notifier);
