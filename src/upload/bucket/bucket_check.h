/* Makes sure that this is the bucket of these marks (docs/protocol.md, "The bucket is the one that
 * the marks know"). Before a run trusts a done mark, S3 has to show one object of such a mark, the
 * witness. Before the run marks a file done, the row of the bucket has to name a witness for the
 * next run. */
#pragma once
#include "upload/run.h"

/* Checks the witness of the marks, before the run reads the first mark, and sets
 * run->space.generation. This takes one request, or none if there are no done marks. Returns false
 * with a sentence if it is another bucket, or if the check failed. `marks` is the caller's
 * connection. */
bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem);

/* Call it before you trust a done mark. Checks the bucket if there were no done marks when the run
 * began. Returns whether done marks may be trusted. If not, the run fails or is already over.
 * Thread-safe. It usually sends no request. */
bool bucket_ensure_trusted(struct run *run, struct store_conn *marks);
/* Skips a file that is done according to its mark: calls bucket_ensure_trusted(), and if the mark
 * may be trusted, reports the file as skipped, and frees the candidate. Otherwise returns false,
 * and the candidate remains the caller's. `version` is the mark's done version, for the manifest;
 * NULL: unknown. */
bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *candidate,
	const struct version *version);

/* Call it before you mark a file done. If the row of the bucket has no witness yet, this object
 * becomes the witness. Returns false if the run is over. Thread-safe. It usually sends no
 * request. */
bool bucket_ensure_witness(
	struct run *run, struct store_conn *marks, const char *key, const char *etag);
/* Notes a proven object with a done mark, for bucket_save_witness(). Thread-safe.
 */
void bucket_note_object(struct run *run, const char *key, const char *etag);
/* At the end of a run, makes the last proven object the witness, since a lifecycle rule deletes it
 * last. Errors are only logged. */
void bucket_save_witness(struct run *run, struct store_conn *marks);
