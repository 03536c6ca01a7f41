/* The value of one option, read into its field by the option's type. */
#pragma once
#include "cli/options/options.h"
#include <stdbool.h>

/* Whether it is written with a value on a command line. */
bool option_takes_value(const struct option *option);
/* Reads `value` into `field`, whose type option_type gives. Strings stay borrowed. `value` is NULL
 * for an option without a value, as flags are on a command line. In a file, a flag is yes or no,
 * and a count may also be a number. Returns 0, -ECANCELED for OPTION_HELP, or -EINVAL with a
 * sentence about the value. */
int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem);
