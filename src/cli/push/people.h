/* Prints the report of a run for people: lines for the files, and the summary. */
#pragma once
#include "cli/push/run_events.h"

#define ALIKE_KINDS 32 /* beyond these, all errors are printed */

/* Errors whose sentences differ only in digits. */
struct alike_kind {
	uint64_t hash, count;
	char *sentence; /* the sentence of its first error, owned; NULL: out of memory */
};

/* The kinds of errors so far. The first few errors of each kind are printed, and the others only
 * counted. Zero it to start. */
struct alike {
	struct alike_kind kinds[ALIKE_KINDS];
	size_t n;
};

struct people {
	struct output *output; /* borrowed */
	/* Borrowed: the options of the run and of its output. If they name a job, lines about the
	 * whole run begin with its name. */
	const struct push_options *options;
	/* The warnings and notes that earlier runs of the job have printed, which are not repeated.
	 * A run that has this prints no summary if nothing happened. NULL: this is the only run. */
	struct text *printed_warnings;
	/* The same for errors. */
	struct text *printed_errors;
	/* Set if no option chose the marks and there are none yet. The run then prints at its start
	 * where they will be, and how hosts share them. */
	bool makes_marks;
	/* Internal state; zero it to start. */
	uint64_t planned_bytes;
	struct alike errors;
	bool has_warned, has_said_waiting;
};

/* Prints an event of any type but PROGRESS and SUMMARY. */
void people_event(struct people *people, const struct s3once_event *event);
/* Prints the last lines: the number of errors that were not printed, and, without --json, the
 * summary. */
void people_summary(struct people *people, const struct s3once_push *push, int exit_code);
/* Frees the internal state. */
void people_clear(struct people *people);
