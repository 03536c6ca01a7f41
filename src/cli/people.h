/* A run told to people: lines for what happened to files, and the summary. */
#pragma once
#include "cli/output.h"
#include "s3once/push.h"
#include <stdint.h>

struct people {
	struct output *output; /* borrowed */
	const char *bucket, *prefix;
	unsigned verbose;
	bool quiet;       /* errors only */
	bool only_stderr; /* stdout belongs to --json */
	bool dry_run;
	bool skip_changed;      /* --if-changed=skip: a changed file is no error */
	bool gives_up_held;     /* a file that is held is given up */
	bool marks_by_default;  /* nobody chose the marks: say whose they are */
	uint64_t planned_bytes; /* counted here; zero it to start */
	uint64_t n_special;     /* likewise: sockets, pipes and devices that are told by number */
};

/* Any event but PROGRESS and SUMMARY. */
void people_event(struct people *people, const struct s3once_event *event);
/* The last lines: what was told by number only, and, unless quiet or only_stderr, the summary. */
void people_summary(struct people *people, const struct s3once_counts *counts, int exit_code);
