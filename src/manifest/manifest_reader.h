/* Reads a manifest, which may be anybody's bytes, from an open file. Its memory does not grow with
 * the file. One thread. */
#pragma once
#include "manifest/manifest_entry.h"

#define MANIFEST_LINE_MAX (256U << 10) /* bytes; a longer line is no entry */

/* Begins at the beginning of the file, which is borrowed. 0, or -errno with a sentence. */
struct manifest_reader;
int manifest_reader_new(int fd, struct manifest_reader **ret, struct problem *ret_problem);
void manifest_reader_free(struct manifest_reader *reader); /* NULL is fine */

/* 1 and the next entry, which borrows from the reader until the next call; 0 at the end; -EBADMSG
 * with a sentence that names the line where the file is damaged, or another -errno with one. After
 * an error it is not called again. */
int manifest_reader_next(
	struct manifest_reader *reader, struct manifest_entry *ret, struct problem *ret_problem);
/* The line of that entry, without its newline. Borrowed as the entry. */
const char *manifest_reader_line(const struct manifest_reader *reader);
