/* The manifest of a run while it is written: lines, compressed into a file without a name. Its
 * memory does not grow with the number of lines. Thread-safe but for new, finish and free. */
#pragma once
#include "base/checksum.h"
#include "base/problem.h"
#include "http/http.h"

/* A temporary file of this user alone that has no name any more, in the state folder or, where
 * there is none, in /var/tmp or /tmp. The descriptor, or -errno with a sentence. */
int manifest_open_file(struct problem *ret_problem);

struct manifest_spool;
/* `kinds`: what is computed of the compressed bytes, of enum digest_kind. 0, or -errno with a
 * sentence. */
int manifest_spool_new(unsigned kinds, struct manifest_spool **ret, struct problem *ret_problem);
void manifest_spool_free(struct manifest_spool *spool); /* NULL is fine */

/* Adds a line, to which it adds the newline; NULL stands for one that there was no memory for. What
 * fails is told by finish. */
void manifest_spool_add(struct manifest_spool *spool, const char *line);
/* Ends it, once. False with a sentence: it is not whole. Then the body is borrowed from it. */
bool manifest_spool_finish(struct manifest_spool *spool, struct problem *ret_problem);
uint64_t manifest_spool_lines(const struct manifest_spool *spool);
/* Of a finished one. Borrowed. */
const struct sums *manifest_spool_sums(const struct manifest_spool *spool);
struct http_body manifest_spool_body(struct manifest_spool *spool);
