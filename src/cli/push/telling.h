/* Tells others than those who read the output how a run goes: --ping-url, --on-success and
 * --on-failure, and --metrics. None of these changes how a run ends: a failure is only a
 * warning, and each has a time by which it ends. */
#pragma once
#include "cli/push/metrics.h"
#include "cli/push/run_events.h"
#include <uv.h>

struct telling {
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

/* With --ping-url, starts a thread that tells that a run begins. Zero *telling, and set its first
 * two members. */
void telling_begin(struct telling *telling);
/* Keeps the event for telling_end() if it is an error. One call at a time. */
void telling_event(struct telling *telling, const struct s3once_event *event);
/* Tells how the run ended. That may take a minute and a half, or less after a signal. `push` is
 * NULL if the run never began, and `metrics` if there are none. */
void telling_end(struct telling *telling, const struct s3once_push *push,
	const struct metrics *metrics, int code);
/* Frees what is kept. */
void telling_clear(struct telling *telling);
