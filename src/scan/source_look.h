/* One file of a SOURCE, by where it is and not by the stream. */
#pragma once
#include "scan/source.h"

/* Where a file is: the absolute path without links of its directory, and its name there. */
struct place_of_file {
	const char *directory, *name;
};
/* Makes source->head what the stream would have of this file: 1, or 0 if it is in no part of the
 * SOURCE or the filter leaves it out, or -errno with a sentence. A list of options->files_from is
 * not asked. */
int source_look(
	struct source *source, const struct place_of_file *place, struct problem *ret_problem);
