/* A run told to people: lines for what happened to files, and the summary. */
#pragma once
#include "base/text.h"
#include "cli/alike.h"
#include "cli/output.h"
#include "s3once/push.h"
#include <stdint.h>

struct people {
	struct output *output; /* borrowed */
	const char *job; /* whose run it is: it stands before what is about the run as a whole;
			    NULL: that of a command line */
	const char *bucket, *prefix;
	unsigned verbose;
	bool quiet;       /* errors, warnings, and one line at the end if there were any */
	bool only_stderr; /* stdout belongs to --json */
	bool dry_run;
	bool skip_changed;     /* --if-changed=skip: a changed file is not an error */
	bool gives_up_held;    /* a file that is held is given up */
	struct text *said;     /* of one of many runs of a job: what they have said before and need
				  not say again; nothing is said where nothing happened; NULL: this
				  run stands alone */
	bool marks_by_default; /* nobody chose the marks: say whose they are */
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
