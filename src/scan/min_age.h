/* The rule of --min-age. */
#pragma once
#include "scan/scan.h"

/* Whether a file in this state was written too short a time ago: counted from its mtime or, if that
 * lies in the future, from its ctime. */
bool min_age_holds(const struct file_state *state, const struct scan_options *options);
/* Whether the age was counted from the ctime, since the mtime lies in the future. The mtime of a
 * file that was written after `options` took its time is not one of the future. */
bool min_age_is_from_future(const struct file_state *state, const struct scan_options *options);
