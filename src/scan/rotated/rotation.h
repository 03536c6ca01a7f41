/* The files of sources whose logs may rotate during the scan. They are listed again until two
 * listings agree, and each rotated file gets the id of its content. */
#pragma once
#include "scan/rotated/growing_logs.h"

#define ROTATION_ROUNDS 5 /* the most listings after the first one */

/* The state of rotation_next(). Before its first call, the caller sets the first three fields, and
 * all others are zero. */
struct rotation {
	struct source *sources; /* borrowed; their options name the rules of rotated files */
	size_t n;
	const struct scan_options *options;

	struct rotation_table *table;
	struct growing_logs logs; /* hands out the entries of the table where logs grow. logs.table
				     is NULL until the sources were listed */
	/* no two listings agreed, and rotation_next() has yet to report it */
	bool keeps_changing;
	bool has_reported_packed; /* see next_general() */
	bool is_listed_again;     /* there was one more listing after all entries were handed out */
};
/* Makes the next entry the head of its source, with is_rotated, suffix and content_id, but without
 * key and path. Returns 1 and the source, 0 at the end, or -errno with a sentence; -ECANCELED if
 * abandon() of the options said so. If names kept changing, a PROBLEM of the first source says so,
 * and files that could not be read for this reason WAIT. */
int rotation_next(
	struct rotation *rotation, struct source **ret_source, struct problem *ret_problem);
void rotation_clear(struct rotation *rotation);

/* Completes the head of a source, a file that the user has named, as rotation_next() would: with
 * is_rotated, suffix (within its relative path) and content_id. A file that WAITS because it is
 * young becomes a FILE. The head becomes a PROBLEM if it does not have the name of a rotated file
 * or cannot be read. Returns 0, or -errno with a sentence. */
int rotation_complete_head(struct source *source, struct problem *ret_problem);
