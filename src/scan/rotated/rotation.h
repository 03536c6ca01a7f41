/* The files of the sources where logs rotate, while they may be rotating: listed again until two
 * listings agree, each rotated file with the identity of its content. */
#pragma once
#include "scan/rotated/growing_logs.h"

#define ROTATION_ROUNDS 5 /* of listings that may differ from the one before */

/* The fields of the first part are set, and all others zero, before the first call. */
struct rotation {
	struct source *sources; /* borrowed; their options name the rules of rotated files */
	size_t n;
	const struct scan_options *options;

	struct rotation_table *table;
	struct growing_logs logs; /* hands out the table's entries where logs grow; its table is
				     NULL until they are listed */
	bool keeps_changing;
};
/* Moves to the next entry: 1 and the source that has it as its head, with is_rotated, suffix and
 * content_id, but without key and path; 0 at the end; or -errno with a sentence, -ECANCELED if
 * is_over of the options said so. Names that kept changing are a PROBLEM of the first source, and
 * what could not be read because of it is YOUNG. */
int rotation_next(
	struct rotation *rotation, struct source **ret_source, struct problem *ret_problem);
void rotation_clear(struct rotation *rotation);

/* Makes the head of a source, which is a file somebody named, what rotation_next() would tell of
 * it, whatever its age: with is_rotated, suffix (within its relative path) and content_id. It
 * becomes a PROBLEM if it does not have the name of a rotated file or cannot be read. 0, or -errno
 * with a sentence. */
int rotation_look(struct source *source, struct problem *ret_problem);
