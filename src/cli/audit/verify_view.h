/* What `s3once verify` finds, told to people or as JSON. */
#pragma once
#include "audit/verify.h"
#include "cli/output.h"

struct verify_view {
	struct output *output;       /* borrowed, as all pointers */
	const struct verify *verify; /* the run */
	const char *bucket, *prefix; /* the prefix as it is compared; of one key that */
	bool json, verbose, draws;
	uint64_t until_ns; /* by clock_boot_ns(): nothing is looked at any more; 0: no bound */
};

/* For struct verify_visitor; arg is the view. */
void verify_view_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem);
void verify_view_warned(void *arg, const struct problem *problem);
void verify_view_progress(void *arg, const struct verify_counts *counts);

/* How the run ended, what was sent for it, and with which exit code. `problem` says why it ended
 * early; NULL: nothing failed. */
void verify_view_end(struct verify_view *view, const struct verify_end *end,
	const struct problem *problem, int code);
