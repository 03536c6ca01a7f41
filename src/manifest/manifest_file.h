/* The manifest of a run as a file of compressed lines. */
#pragma once
#include "base/checksum.h"
#include "base/problem.h"
#include "http/http.h"
#include "manifest/manifest_entry.h"

/* Makes a temporary file without a name (base/files.h) for a manifest, in the state folder, or else
 * in /var/tmp or /tmp. Returns the descriptor, or -errno with a sentence. */
int manifest_temporary_file(struct problem *ret_problem);
/* Sets the sentence for a write to such a file that failed with this -errno. It names the folder.
 */
void manifest_explain_write_error(int fd, int error, struct problem *ret_problem);

/* The manifest of a run while it is written. Its lines are compressed into a temporary file. Memory
 * does not grow with the number of lines. Any thread may call manifest_spool_add(); all other
 * functions of a spool are for one thread. */
struct manifest_spool;
/* `kinds` is the set of checksums (DIGEST_OF()) that are computed of the compressed bytes. Returns
 * 0, or -errno with a sentence. */
int manifest_spool_new(unsigned kinds, struct manifest_spool **ret, struct problem *ret_problem);
void manifest_spool_free(struct manifest_spool *spool); /* NULL is fine */

/* Adds a line and a newline. NULL stands for a line for which there was no memory, and is such an
 * error. manifest_spool_finish() reports errors. */
void manifest_spool_add(struct manifest_spool *spool, const char *line);
/* Ends the manifest. Call it once. Returns false with a sentence if the manifest is not complete.
 */
bool manifest_spool_finish(struct manifest_spool *spool, struct problem *ret_problem);
/* The checksums of a finished manifest. Borrowed. */
const struct sums *manifest_spool_sums(const struct manifest_spool *spool);
/* The bytes of a finished manifest as the body of a request, which borrows the spool. */
struct http_body manifest_spool_body(struct manifest_spool *spool);

/* Reads a manifest from an open file, whose bytes need not be trusted. Memory does not grow with
 * the size of the file. A reader belongs to one thread. */

#define MANIFEST_LINE_MAX (256U << 10) /* bytes; a longer line is not an entry */

struct manifest_reader;
/* Makes a reader, which starts at the beginning of the file. The file is borrowed. Returns 0, or
 * -errno with a sentence. */
int manifest_reader_new(int fd, struct manifest_reader **ret, struct problem *ret_problem);
void manifest_reader_free(struct manifest_reader *reader); /* NULL is fine */

/* Returns 1 and the next entry, which borrows from the reader until the next call, or 0 at the end.
 * If the file is damaged, it returns -EBADMSG with a sentence that names the line. Other errors are
 * -errno with a sentence. It must not be called again after an error. */
int manifest_reader_next(
	struct manifest_reader *reader, struct manifest_entry *ret, struct problem *ret_problem);
/* The line of the entry that was returned last, without its newline. It is borrowed until the next
 * call of manifest_reader_next(). */
const char *manifest_reader_line(const struct manifest_reader *reader);
