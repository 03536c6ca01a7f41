/* What `s3once verify` finds, told to people or as JSON. */
#pragma once
#include "audit/verify.h"
#include "cli/output.h"

struct verify_view {
	struct output *output;       /* borrowed */
	const char *bucket, *prefix; /* the prefix as it is compared; of one key that */
	bool json, verbose, draws;
	bool of_manifest; /* it compares with a manifest, not with marks */
	enum verify_by by;
	uint64_t until_ns; /* by clock_boot_ns(): nothing is looked at any more; 0: no bound */
};

/* For struct verify_visitor; arg is the view. */
void verify_view_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem);
void verify_view_warned(void *arg, const struct problem *problem);
void verify_view_progress(void *arg, const struct verify_counts *counts);

/* The end of a run: how it ended, and what was sent for it. */
struct verify_told {
	const struct verify_end *end;
	const struct verify *verify;
	const struct problem *problem; /* why it ended early; NULL: nothing failed */
	int code;                      /* the exit code */
};
void verify_view_end(struct verify_view *view, const struct verify_told *told);
