/* What `s3once push --as KEY -` reads: standard input, or with --command the output of a command.
 * It is the s3once_read of a run. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zero it, and set the first two. */
struct pipe_input {
	char *const *command; /* ends with NULL; borrowed. NULL: standard input */
	sigset_t mask;        /* of the signals that the command begins with as blocked */
	bool has_begun;
	int fd;        /* -1: the end was read */
	pid_t process; /* of the command, and its group; 0: none, or it was waited for */
	uint64_t bytes;
};
/* arg is a pipe_input. A command is started by the first call. Its exit status decides whether its
 * output is whole; of standard input the end is all that can be seen. With n = 0 the command and
 * its group are ended: asked first, and killed after five seconds. */
long pipe_input_read(void *arg, void *buffer, size_t n, char *ret_text, size_t size);
