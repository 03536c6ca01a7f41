/* The marks below a prefix summed up by folder, as `du` does it: a row for each folder down to a
 * depth, with all that is below it, after the rows of the folders in it. Memory does not grow with
 * the marks. */
#pragma once
#include "cli/status/status_tell.h"

#define STATUS_DEPTH_MAX 32

/* Tells the rows of the folders, in order of their keys, and then the sum of all. */
enum outcome status_table_tell(
	struct status_view *view, const char *prefix, struct problem *ret_problem);
