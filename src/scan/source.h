/* One SOURCE: where it is, its stream of entries, and the files in it. */
#pragma once
#include "base/text.h"
#include "scan/scan.h"

#define SOURCE_PATH_BYTES_MAX (256UL * 1024) /* a SOURCE and a relative path always fit */

struct source {
	const struct scan_options *options; /* borrowed, as long as the source is open */
	size_t index;
	char *directory;  /* absolute path without links of the directory that relative paths are
			     below; NULL if the SOURCE could not be reached */
	int directory_fd; /* of a SOURCE directory, else -1 */
	int error;        /* -errno with which the SOURCE could not be reached, or 0 */
	struct walk *walk;
	struct files_from *list;
	char *file;            /* base name in directory, of a SOURCE file */
	struct text key, path; /* of the head */
	struct text looked_at; /* relative path of the file that scan_look() asked for */
	size_t key_base_bytes; /* what stands before every relative path */
	bool ended;
	struct scan_entry head; /* the entry that source_read moved to */
};

/* Opens options->sources[index]. One that cannot be reached is open, and a PROBLEM comes. 0, or
 * -errno with a sentence, then there is nothing to close. */
int source_open(struct source *source, const struct scan_options *options, size_t index,
	struct problem *ret_problem);
/* Moves to the next entry: 1 and it is the head, of which key and path are not made; 0 at the end,
 * or -errno with a sentence. */
int source_read(struct source *source, struct problem *ret_problem);
/* Forgets what the entry before had and the next one may not have; source_read does. */
void source_begin_head(struct source *source);
/* Back to the first entry, which the next call reads anew; not of a list. 0 or -ENOMEM. */
int source_rewind(struct source *source);
/* Orders sources by what decides their keys: 0 if they are the same. */
int source_compare(const struct source *a, const struct source *b);
void source_close(struct source *source);

/* Opens what is at relative for reading, as scan_open_file() promises. */
int source_open_file(
	const struct source *source, const char *relative, struct file_state *ret_state);
/* The same of the file with this inode, which may have another name in the folder of relative and
 * another content by now. -ENOENT if no name there leads to it. */
int source_open_inode(const struct source *source, const char *relative, dev_t dev, ino_t ino,
	struct file_state *ret_state);
/* Whether this -errno says that no such file has the name any more. */
bool source_has_moved(int error);
/* The SOURCE as it was given. Borrowed from the options. */
const char *source_given(const struct source *source);
