/* The options of a run: defaults, limits, contradictions. Pure. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>

#define CONCURRENCY_MAX 1024

/* Copies the options with every default filled in. 0, or -EINVAL with a sentence. */
int run_options_complete(const struct s3once_options *given, struct s3once_options *ret,
	struct problem *ret_problem);
/* Whether logs are known by how they were cut before. */
bool run_options_cut_logs(const struct s3once_options *o);
