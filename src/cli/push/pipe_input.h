/* The input of `s3once push - s3://BUCKET/KEY`: standard input, or the output of a command.
 * pipe_input_read() is the s3once_read of a run. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zero it, and set the first two. */
struct pipe_input {
	char *const *command; /* ends with NULL; borrowed. NULL: standard input */
	sigset_t mask;        /* the signal mask that the command starts with */
	bool has_begun;
	int fd;         /* -1: the end was read */
	pid_t process;  /* of the command, and its group; 0: none, or it was waited for */
	uint64_t bytes; /* read so far */
};
/* Reads as s3once_read says; arg is a pipe_input. The first call starts the command. The output of
 * a command is whole if its exit status is 0; standard input is whole if its end was read. If n is
 * 0, the command and its process group are ended: by SIGTERM, and after five seconds by SIGKILL. */
long pipe_input_read(void *arg, void *buffer, size_t n, char *ret_text, size_t size);
