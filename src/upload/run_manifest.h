/* The manifest of a run (--manifest): a line for each file that is in S3, and at the end of the run
 * one object of them. */
#pragma once
#include "upload/run.h"

struct run_manifest;
/* To be called once the services and the session are open. Returns true also without --manifest and
 * in a dry run, or false with a sentence. */
bool run_manifest_open(struct run *run, struct problem *ret_problem);
void run_manifest_free(struct run *run); /* frees run->manifest */

/* A file that is in S3. Borrowed. */
struct in_s3 {
	const struct candidate *file;
	const struct version *version; /* what its mark says, or will say; NULL: it was not kept */
	const struct sums *sums;       /* more of what its object holds; NULL: nothing is known */
	enum s3once_event_type event;  /* UPLOADED, ADOPTED, REFRESHED or SKIPPED */
};
/* Reports a file of so many bytes under the key that its object has, which may have another suffix
 * than this run would give it, and adds its line if there is a manifest. Thread-safe. */
void run_tell_in_s3(struct run *run, const struct in_s3 *file, uint64_t bytes);

/* To be called after the last worker has ended. Stores the object and reports it. Returns false if
 * that failed, which was reported. A dry run reports where the object would be. */
bool run_manifest_put(struct run *run);
/* Its key, "" if there is none or it was not stored (yet). Borrowed. */
const char *run_manifest_key(const struct run *run);
