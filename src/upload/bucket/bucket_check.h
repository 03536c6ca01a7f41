/* Makes sure that this is the bucket of these marks (docs/protocol.md, "The bucket is the one that
 * the marks know"). Before a run trusts a mark that says done, S3 has to show one object of such a
 * mark, the witness. Before a mark of this run says done, the row of the bucket has to name a
 * witness for the next run. */
#pragma once
#include "upload/run.h"

/* Checks the witness of the marks, before the run reads the first mark, and sets
 * run->space.generation. This is one request, or none if no mark says done. Returns false with a
 * sentence if it is another bucket, or if that could not be found out. `marks` is the caller's
 * connection. */
bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem);

/* Call it before a mark that says done is trusted. Checks the bucket if there was no such mark when
 * the run began. Returns whether such marks may be trusted. If not, the run fails or is over
 * already. Thread-safe, and mostly without a request. */
bool bucket_ensure_trusted(struct run *run, struct store_conn *marks);
/* Calls bucket_ensure_trusted() for a file whose mark leaves nothing to do. If the mark is trusted,
 * the file is reported as skipped. Frees the candidate in any case. `version` is the mark's done
 * version, for the manifest; NULL: unknown. */
bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *candidate,
	const struct version *version);

/* Call it before a mark of this run says done. If the row of the bucket has no witness yet, this
 * object becomes the witness. Returns false if the run is over. Thread-safe, and mostly without a
 * request. */
bool bucket_ensure_witness(
	struct run *run, struct store_conn *marks, const char *key, const char *etag);
/* Notes an object that was proven and whose mark says done, for bucket_save_witness(). Thread-safe.
 */
void bucket_note_object(struct run *run, const char *key, const char *etag);
/* At the end of a run, makes the object that was proven last the witness, so that a lifecycle rule
 * deletes it as late as possible. Errors are only logged. */
void bucket_save_witness(struct run *run, struct store_conn *marks);
