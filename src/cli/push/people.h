/* What people read of a run: lines for what happened to files, and the summary. */
#pragma once
#include "cli/push/run_events.h"

/* Errors that are alike: the first few are printed, the others are only counted. Zero it to start.
 */
#define ALIKE_KINDS 32

struct alike_kind {
	uint64_t hash, count;
	char *sentence; /* of its first error, owned; NULL: out of memory */
};

struct alike {
	struct alike_kind kinds[ALIKE_KINDS];
	size_t n;
};

struct people {
	struct output *output; /* borrowed */
	/* Borrowed: of what is told, and how. Their job precedes what is about all of it. */
	const struct push_options *options;
	/* Of one of many runs of a job: the warnings of the runs before, which are not repeated.
	 * Such a run prints nothing if nothing happened. NULL: this is the only run. */
	struct text *said;
	/* The same for errors. */
	struct text *told;
	/* The marks were not chosen, so the summary says whose they are. */
	bool makes_marks; /* nobody chose the marks, and there are none yet */
	/* Kept here; zero them to start. */
	uint64_t planned_bytes;
	struct alike errors;
	bool has_warned, has_said_waiting;
};

/* Any event but PROGRESS and SUMMARY. */
void people_event(struct people *people, const struct s3once_event *event);
/* The last lines: how many errors were not printed, and, without --json, the summary. */
void people_summary(struct people *people, const struct s3once_push *push, int exit_code);
/* Frees what is kept. */
void people_clear(struct people *people);
