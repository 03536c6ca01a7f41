/* What people read of a run: lines for what happened to files, and the summary. */
#pragma once
#include "base/text.h"
#include "cli/output.h"
#include "cli/push/alike.h"
#include "s3once/push.h"
#include <stdint.h>

struct people {
	struct output *output; /* borrowed */
	/* The job, whose name precedes what is about the run as a whole. NULL: the run is that of a
	 * command line. */
	const char *job;
	const char *bucket, *prefix;
	unsigned verbose;
	bool quiet;       /* only errors and warnings, and a last line if there were any */
	bool only_stderr; /* stdout belongs to --json */
	bool dry_run;
	bool skip_changed;  /* --if-changed=skip: a changed file is not an error */
	bool gives_up_held; /* a file that is held is given up */
	/* Of one of many runs of a job: the warnings of the runs before, which are not repeated.
	 * Such a run prints nothing if nothing happened. NULL: this is the only run. */
	struct text *said;
	/* The marks were not chosen, so the summary says whose they are. */
	bool makes_marks; /* nobody chose the marks, and there are none yet */
	/* Kept here; zero them to start. */
	uint64_t planned_bytes;
	struct alike errors;
	bool has_warned, has_said_waiting;
};

/* Any event but PROGRESS and SUMMARY. */
void people_event(struct people *people, const struct s3once_event *event);
/* How a run has ended. */
struct people_end {
	const struct s3once_counts *counts;
	const char *manifest; /* the key of the one that was stored, or "" */
	int exit_code;
};
/* The last lines: how many errors were not printed, and, unless only_stderr, the summary. Frees
 * what is kept. */
void people_summary(struct people *people, const struct people_end *end);

/* Internal to people.c and people_summary.c. */
#define PEOPLE_LINE_BYTES_MAX (32U << 10)
/* Adds "JOB: " if the run is that of a job. */
void people_add_job(struct text *t, const struct people *people);
