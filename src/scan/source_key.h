/* What an entry of a SOURCE is called: in S3, and for people. */
#pragma once
#include "scan/content/content.h"
#include "scan/source.h"

/* Moves to the next entry, whose key and path are whole. 1, 0 at the end, or -errno with a
 * sentence. */
int source_next(struct source *source, struct problem *ret_problem);
/* Makes key and path of source->head whole, and a PROBLEM of what has no valid key. By a template,
 * only what is or will be a file has a key, and its content is read where the key depends on it. 1,
 * or -errno with a sentence when nothing can go on. */
int source_name_head(struct source *source, struct problem *ret_problem);
/* Adds the path of what is at relative, as a person would name it. */
void source_add_path(const struct source *source, const char *relative, struct text *path);
/* The content id of the open file, of which this is the version: from the cache, or read. 0,
 * -ESTALE if it is another version by then, or is a rotated file that is being written to, else as
 * content_id(). */
int source_identify(const struct scan_options *options, int fd, const struct file_state *version,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_why);
