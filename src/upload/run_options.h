/* The options of a run: defaults, limits, contradictions. Pure. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include "scan/filter/filter.h"

#define CONCURRENCY_MAX 1024

/* Copies the options with every default filled in. 0, or -EINVAL with a sentence. */
int run_options_complete(const struct s3once_options *given, struct s3once_options *ret,
	struct problem *ret_problem);
/* Whether logs are known by how they were cut before. */
bool run_options_cut_logs(const struct s3once_options *o);
/* The rules as a filter, NULL for none. 0, -ENOMEM, or -EINVAL with a sentence. The caller frees
 * it. */
int run_options_filter(
	const struct s3once_options *given, struct filter **ret, struct problem *ret_problem);
