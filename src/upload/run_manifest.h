/* The manifest of a run (--manifest): a line for each file that is in S3, and at the end of the run
 * one object of them. */
#pragma once
#include "marks/mark.h"
#include "s3once/push.h"
#include <stdbool.h>

struct candidate;
struct run;

/* Call it once the services and the session are open. Returns true also without --manifest and in a
 * dry run, or false with a sentence. */
bool run_manifest_open(struct run *run, struct problem *ret_problem);
void run_manifest_free(struct run *run); /* frees run->manifest; NULL is fine */

/* A file that is in S3. Borrowed. */
struct in_s3 {
	const struct candidate *file;
	/* the version of its mark, present or future; NULL: not known */
	const struct version *version;
	const struct sums *sums;      /* more checksums of its object; NULL: not known */
	enum s3once_event_type event; /* UPLOADED, ADOPTED, REFRESHED or SKIPPED */
};
/* Reports a file of `bytes` bytes that is in S3, and adds its line to the manifest if there is one.
 * The reported key is that of the object, whose suffix may differ from the one that this run would
 * give it. Thread-safe. */
void run_report_in_s3(struct run *run, const struct in_s3 *file, uint64_t bytes);

/* Call it after the last worker has ended. Stores the object and reports it. Returns false if that
 * failed, which was reported. A dry run reports where the object would be. */
bool run_manifest_put(struct run *run);
