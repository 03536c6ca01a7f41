/* The manifest of a run while it is written. Its lines are compressed into a file without a name.
 * Memory does not grow with the number of lines. All functions but new, finish and free are
 * thread-safe. */
#pragma once
#include "base/checksum.h"
#include "base/problem.h"
#include "http/http.h"

/* Makes a temporary file without a name (base/unnamed_file.h) in the state folder, or else in
 * /var/tmp or /tmp. Returns the descriptor, or -errno with a sentence. */
int manifest_open_file(struct problem *ret_problem);
/* Sets the sentence that this -errno came from writing to such a file. */
void manifest_tell_unwritten(int fd, int error, struct problem *ret_problem);

struct manifest_spool;
/* `kinds` are the digests (enum digest_kind) that are computed of the compressed bytes. Returns 0,
 * or -errno with a sentence. */
int manifest_spool_new(unsigned kinds, struct manifest_spool **ret, struct problem *ret_problem);
void manifest_spool_free(struct manifest_spool *spool); /* NULL is fine */

/* Adds a line and a newline. NULL stands for a line for which there was no memory. Errors are
 * reported by finish. */
void manifest_spool_add(struct manifest_spool *spool, const char *line);
/* Ends the manifest. It is called once. Returns false with a sentence if the manifest is not
 * complete. Afterwards the body is borrowed from it. */
bool manifest_spool_finish(struct manifest_spool *spool, struct problem *ret_problem);
/* The digests of a finished manifest. Borrowed. */
const struct sums *manifest_spool_sums(const struct manifest_spool *spool);
struct http_body manifest_spool_body(struct manifest_spool *spool);
