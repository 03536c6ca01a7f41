/* Commands that s3once starts: for `lock run`, and for `push --command`. Between both is a process
 * of s3once that does what posix_spawn cannot do, and then becomes the command. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Is called once, first in main(). It turns core dumps off, since they would hold secrets. It opens
 * standard descriptors that are closed as /dev/null, raises the limit of descriptors to the hard
 * limit, and ignores SIGPIPE and SIGXFSZ. */
void startup_prepare(void);

struct child_options {
	char *const *command;   /* ends with NULL */
	char *const *variables; /* likewise: what its environment has besides ours, as NAME=value.
				   NULL: nothing */
	const sigset_t *mask;   /* of the signals that the command begins with as blocked */
	int fd, fd_there;       /* a descriptor of ours, and which one it is in the command */
	bool has_session;       /* a session of its own, without a terminal; else a process group of
				   its own, which takes the terminal over if ours has it */
};
/* Starts the command, which ends with the calling thread. *ret is its process, and its group.
 * Returns 0 or -errno; what is wrong with the command itself shows later: it then exits with 127 or
 * 126. */
int child_start(const struct child_options *options, pid_t *ret);

/* `s3once lock child PARENT BEFORE NAME=value… -- COMMAND…`, which only child_start() starts. It
 * becomes the command, in such a way that the command ends with its parent. It returns only if that
 * fails. */
int child_main(int argc, char **argv);

/* Passes the terminal on if `from` has it in the foreground, and returns whether it has. */
bool pass_terminal(int tty, pid_t from, pid_t to);
