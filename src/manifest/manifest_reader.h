/* Reads a manifest from an open file, whose bytes need not be trusted. Memory does not grow with
 * the size of the file. A reader belongs to one thread. */
#pragma once
#include "manifest/manifest_entry.h"

#define MANIFEST_LINE_MAX (256U << 10) /* bytes; a longer line is not an entry */

/* Starts at the beginning of the file, which is borrowed. Returns 0, or -errno with a sentence. */
struct manifest_reader;
int manifest_reader_new(int fd, struct manifest_reader **ret, struct problem *ret_problem);
void manifest_reader_free(struct manifest_reader *reader); /* NULL is fine */

/* Returns 1 and the next entry, which borrows from the reader until the next call, or 0 at the end.
 * If the file is damaged, it returns -EBADMSG with a sentence that names the line. Other errors are
 * -errno with a sentence. It must not be called again after an error. */
int manifest_reader_next(
	struct manifest_reader *reader, struct manifest_entry *ret, struct problem *ret_problem);
/* The line of that entry, without its newline. It is borrowed until the next call, too. */
const char *manifest_reader_line(const struct manifest_reader *reader);
