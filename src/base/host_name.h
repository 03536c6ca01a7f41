/* The names of this host, as `hostname -s` and `hostname -f` print them. */
#pragma once
#include "base/problem.h"

#define HOST_NAME_BYTES 256

/* Sets ret to the host's name up to its first dot. Returns 0, or -errno with a sentence, also for a
 * host that has no name of its own ("localhost"). */
int host_name_short(char ret[static HOST_NAME_BYTES], struct problem *ret_problem);
/* Sets ret to the host's name with its domain. A name without a dot is completed by the resolver,
 * which may ask a name server. Returns 0, or -errno with a sentence if no such name is known. */
int host_name_full(char ret[static HOST_NAME_BYTES], struct problem *ret_problem);
