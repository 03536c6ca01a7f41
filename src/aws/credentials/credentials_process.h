/* A command line cut into words as a POSIX shell would, without anything else a shell does: no
 * variables, no globs, no comments. Source: Python's shlex.split, which botocore uses. */
#pragma once
#include "base/text.h"
#include <stdatomic.h>
#include <stdint.h>

/* Cuts a line into words. *ret is a NULL-terminated vector with its strings in one block, which the
 * caller frees. 0, -ENOMEM, or -EINVAL with *ret_why where the line cannot be cut. */
int shell_words(const char *line, char ***ret, const char **ret_why);

/* Runs a program and takes its output. */
struct process_output {
	struct text out, err; /* both owned, capped by their max: set by the caller */
	int status;           /* of waitpid(2) */
};

/* Runs argv[0], which is found in PATH, until it ends. It has this process's environment, and
 * nothing on standard input. Processes that it leaves behind are not waited for. It starts with no
 * signal blocked, with SIGPIPE and SIGXFSZ not ignored, and with a soft limit of at most 1,024
 * descriptors, which it may raise.
 *
 * It is killed after the deadline, by clock_boot_ns() (-ETIMEDOUT), when *stopped becomes true
 * (-ECANCELED), and when it writes more than the cap of `out` (-EMSGSIZE). What exceeds the cap of
 * `err` is dropped. Any other -errno means that it could not be run. Clear both texts in any case.
 */
int process_output(char *const *argv, uint64_t deadline_ns, const atomic_bool *stopped,
	struct process_output *ret);
