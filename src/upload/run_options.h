/* The options of a run, with their defaults. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"

/* Copies the options and fills in every default. Returns 0, or -EINVAL with a sentence about a
 * limit or a contradiction. Pure. */
int run_options_complete(const struct s3once_options *given, struct s3once_options *ret,
	struct problem *ret_problem);
