/* Finds what is wrong with the values of a job, beyond their types, before a run would find it. */
#pragma once
#include "cli/options/options.h"
#include "s3once/push.h"

/* The settings of objects so far, since they may contradict each other. */
struct job_check;
int job_check_new(struct job_check **ret); /* 0 or -ENOMEM */
/* NULL is fine. */
void job_check_free(struct job_check *check);

/* Checks a value that option_set() took, which is a pattern of a rule or a setting of objects. 0,
 * -ENOMEM, or -EINVAL with a sentence that names the option. */
int job_check_value(struct job_check *check, const struct option *option, const char *value,
	struct problem *ret_problem);
/* Checks all options together, as a run would begin with them. It reads the files that they name,
 * except that of --files-from. 0, -ENOMEM or -EINVAL, with a sentence. */
int job_check_whole(const struct s3once_options *options, struct problem *ret_problem);
