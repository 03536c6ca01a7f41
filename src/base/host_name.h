/* The names of this host, as `hostname -s` and `hostname -f` print them. */
#pragma once
#include "base/problem.h"

#define HOST_NAME_BYTES 256

/* The name up to its first dot. 0, or -errno with a sentence: also for a host that has no name of
 * its own ("localhost"). */
int host_name_short(char ret[static HOST_NAME_BYTES], struct problem *ret_problem);
/* The name with its domain: the host's name if it has a dot, else what the resolver calls it, which
 * may ask a name server. -errno with a sentence where there is none. */
int host_name_full(char ret[static HOST_NAME_BYTES], struct problem *ret_problem);
