/* Prints the report of a run for people: lines for the files, and the summary. */
#pragma once
#include "cli/push/run_events.h"

#define ALIKE_KINDS 32 /* errors of any further kind are all printed */

/* The errors whose sentences are the same but for digits. */
struct alike_kind {
	uint64_t hash, count;
	char *sentence; /* of its first error, owned; NULL: out of memory */
};

/* The kinds of errors so far. Of each, the first few errors are printed, and the others are only
 * counted. Zero it to start. */
struct alike {
	struct alike_kind kinds[ALIKE_KINDS];
	size_t n;
};

struct people {
	struct output *output; /* borrowed */
	/* Borrowed: the options of the run and of what is printed about it. If they name a job,
	 * lines about the whole run begin with its name. */
	const struct push_options *options;
	/* The warnings and notes that earlier runs of the job have printed, which are not repeated.
	 * A run that has this prints no summary if nothing happened. NULL: this is the only run. */
	struct text *printed_warnings;
	/* The same for errors. */
	struct text *printed_errors;
	/* No option chose the marks, and there are none yet. Then the start of the run prints where
	 * they will be, and how hosts share them. */
	bool makes_marks;
	/* Kept here; zero them to start. */
	uint64_t planned_bytes;
	struct alike errors;
	bool has_warned, has_said_waiting;
};

/* Prints an event, which is any but PROGRESS and SUMMARY. */
void people_event(struct people *people, const struct s3once_event *event);
/* Prints the last lines: how many errors were not printed, and, without --json, the summary. */
void people_summary(struct people *people, const struct s3once_push *push, int exit_code);
/* Frees what is kept. */
void people_clear(struct people *people);
