/* The line that all runs of a user on a host share, as a file with the number of token_bucket.h.
 * The file is opened anew for each use and never mapped: whoever cuts, fills, removes or replaces
 * it can neither end this process nor lead it to another file. */
#pragma once
#include "base/problem.h"
#include <stdint.h>

/* Takes `bytes` at `rate` from the file at `path`, which is made (0600) where it is missing. Times
 * are of a clock that all its users share. Returns 0 with ret_wait_ns as of token_bucket_take();
 * -EWOULDBLOCK if another process holds the file at this moment; or another -errno with a sentence,
 * also for what is not a file of this user alone. */
int shared_line_take(const char *path, uint64_t now_ns, uint64_t bytes, uint64_t rate,
	uint64_t *ret_wait_ns, struct problem *ret_problem);
