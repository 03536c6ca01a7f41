/* What one rotated file contains. */
#pragma once
#include "scan/content/content_id.h"
#include "scan/source.h"

/* Whether a file is still the version that was found; that it was renamed does not count. */
bool rotation_is_version(const struct scan_entry *found, const struct file_state *state);
/* The content id of the file open at fd, which is the version of entry: from the cache, or read. 0,
 * -ESTALE if it is being written to, else as content_id(). */
int rotation_identify(const struct scan_options *options, int fd, const struct scan_entry *entry,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem);

/* Makes the head of a source, which is a file somebody named, what rotation_next() would tell of
 * it, whatever its age: with is_rotated, suffix (within its relative path) and content_id. It
 * becomes a PROBLEM if it does not have the name of a rotated file or cannot be read. 0, or -errno
 * with a sentence. */
int rotation_look(struct source *source, struct problem *ret_problem);
