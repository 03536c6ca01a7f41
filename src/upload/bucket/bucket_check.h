/* A run believes no mark that says done before S3 has shown one object of such a mark, and no mark
 * of its own says done before the row of the bucket has an object by which the next run is shown
 * this bucket (docs/protocol.md, "The bucket is the one that the marks know"). */
#pragma once
#include "upload/run.h"

/* Asks S3 for the witness of the marks, before the run reads the first mark, and sets
 * run->space.generation. One request, or none if no mark says done. False with a sentence: it is
 * another bucket, or that could not be found out. `marks` is the caller's connection. */
bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem);

/* Whether a mark that says done may be believed. It is asked anew if there was nothing to be shown
 * when the run began. False: the run is over. Thread-safe, and mostly free. */
bool bucket_is_believed(struct run *run, struct store_conn *marks);
/* The same of a file whose mark leaves nothing to do: takes the candidate and reports it as
 * skipped. `version` is what the mark says is done, for the manifest; NULL: there is none. */
bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *candidate,
	const struct version *version);

/* Before a mark of this run says done: if the row has no witness yet, this object becomes it.
 * False: the run is over. Thread-safe, and mostly free. */
bool bucket_keeps_witness(
	struct run *run, struct store_conn *marks, const char *key, const char *etag);
/* The object was proven and its mark says done. Thread-safe. */
void bucket_saw_object(struct run *run, const char *key, const char *etag);
/* The end of a run: the object that was proven last becomes the witness, so that a lifecycle rule
 * meets it as late as can be. What fails is only logged. */
void bucket_keep(struct run *run, struct store_conn *marks);
