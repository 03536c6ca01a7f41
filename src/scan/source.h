/* One SOURCE: where it is, and its stream of entries. */
#pragma once
#include "base/text.h"
#include "scan/only.h"
#include "scan/scan.h"

struct source {
	const struct scan_options *options; /* borrowed, as long as the source is open */
	size_t index;
	char *directory;  /* absolute path without links of the directory that relative paths are
			     below; NULL if the SOURCE could not be reached */
	int directory_fd; /* of a SOURCE directory, else -1 */
	int error;        /* -errno with which the SOURCE could not be reached, or 0 */
	struct only only; /* of options->folders */
	struct walk *walk;
	struct files_from *list;
	char *file;            /* base name in directory, of a SOURCE file */
	struct text key, path; /* of the head */
	struct text looked_at; /* relative path of the file that source_look() asked for */
	size_t key_base_bytes; /* what stands before every relative path */
	bool ended;
	bool collides; /* the head's key is another file's as well; head.problem says which */
	struct scan_entry head; /* the entry that source_next moved to */
};

/* Opens options->sources[index]. One that cannot be reached is open, and a PROBLEM comes. 0, or
 * -errno with a sentence, then there is nothing to close. */
int source_open(struct source *source, const struct scan_options *options, size_t index,
	struct problem *ret_problem);
/* Moves to the next entry, whose key and path are whole. 1, 0 at the end, or -errno with a
 * sentence. */
int source_next(struct source *source, struct problem *ret_problem);
/* As source_next, but key and path of the entry are not made. */
int source_read(struct source *source, struct problem *ret_problem);
/* Back to the first entry, which the next call reads anew; not of a list. 0 or -ENOMEM. */
int source_rewind(struct source *source);
/* As scan_open_moved. */
int source_open_moved(const struct source *source, const char *relative,
	const struct file_state *version, struct file_state *ret_state);
/* Opens the file with the entry's inode, which may have another name in its folder and another
 * content by now. As scan_open_file. */
int source_open_inode(
	const struct source *source, const struct scan_entry *found, struct file_state *ret_state);
/* Orders sources by what decides their keys: 0 if they are the same. */
int source_compare(const struct source *a, const struct source *b);
void source_close(struct source *source);
