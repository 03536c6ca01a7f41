/* Runs a program and takes its output. */
#pragma once
#include "base/text.h"
#include <stdatomic.h>
#include <stdint.h>

struct process_output {
	struct text out, err; /* both owned, capped by their max: set by the caller */
	int status;           /* of waitpid(2) */
};

/* Runs argv[0], found in PATH, in this process's environment, with nothing on standard input, until
 * it ends; what it leaves to run, and perhaps to write, is not waited for. It starts with no signal
 * blocked, SIGPIPE and SIGXFSZ not ignored, and a soft limit of at most 1,024 descriptors, which it
 * may raise. Past the deadline
 * (clock_boot_ns()), or when *stopped becomes true, it is killed: -ETIMEDOUT, -ECANCELED; likewise
 * -EMSGSIZE when it writes more than out's cap. What err's cap cannot hold is dropped. Other
 * -errno: it could not be run. Clear both texts in any case. */
int process_output(char *const *argv, uint64_t deadline_ns, const atomic_bool *stopped,
	struct process_output *ret);
