/* The value of --bwlimit: a rate, or rates by time of day. Pure. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"

#define BANDWIDTH_RATES_MAX 48

/* "20M", or "08:00,2M 19:00,off", in any order. The rates are in order of their times then. 0, or
 * -EINVAL with a sentence that begins with the option's name. */
int bandwidth_value(const char *value, struct s3once_rate ret_rates[static BANDWIDTH_RATES_MAX],
	size_t *ret_n, struct problem *ret_problem);
