/* The options of `s3once verify`. */
#pragma once
#include "audit/verify.h"
#include "cli/job/job_asked.h"
#include "cli/options/access.h"
#include "cli/options/options.h"

struct verify_options {
	struct access access;
	struct job_asked job;
	struct option_settings reports; /* values of --batch-report */
	const char *after, *subset, *id_object, *key_file, *manifest, *public_key;
	int head, download, json, no_progress;
	unsigned workers, verbose;
	uint64_t max_duration_ms, give_up_after_ms, keep_marks_ms;
};

/* What there is, and its --help. Fills the groups with the fields of *options. */
enum { VERIFY_GROUPS = 3 + ACCESS_GROUPS };
struct command verify_command(
	struct option_group groups[static VERIFY_GROUPS], struct verify_options *options);
/* The value of --subset. 0, or -EINVAL with a sentence. */
int verify_subset_read(const char *given, struct verify_subset *ret, struct problem *ret_problem);
