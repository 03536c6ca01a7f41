/* What is wrong with the values of a job beyond their types: what a run would find when it begins,
 * found before it. */
#pragma once
#include "cli/options.h"
#include "s3once/push.h"

/* The settings of objects so far, as they may contradict each other. */
struct job_check;
int job_check_new(struct job_check **ret); /* 0 or -ENOMEM */
/* NULL is fine. */
void job_check_free(struct job_check *check);

/* A value that option_set() took: the patterns of rules, the settings of objects. 0, -ENOMEM, or
 * -EINVAL with a sentence that names the option. */
int job_check_value(struct job_check *check, const struct option *option, const char *value,
	struct problem *ret_problem);
/* All options together, as a run would begin with them; reads the files that they name, but for
 * --files-from. 0, -ENOMEM or -EINVAL, with a sentence. */
int job_check_whole(const struct s3once_options *options, struct problem *ret_problem);
