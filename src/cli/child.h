/* Starts the commands of `lock run`, of `push … -- COMMAND` and of --on-success and --on-failure,
 * and ends them. The new process first runs s3once itself, for preparations that posix_spawn cannot
 * make, and then becomes the command. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Called once, first in main(). It turns core dumps off, since they would contain secrets. It opens
 * standard descriptors that are closed as /dev/null, raises the limit of descriptors to the hard
 * limit, and ignores SIGPIPE and SIGXFSZ. */
void startup_prepare(void);

struct child_options {
	char *const *command; /* ends with NULL */
	/* Changes to the command's environment, NULL-terminated: NAME=value sets a variable, and
	 * NAME alone removes one. NULL: no changes. */
	char *const *variables;
	const sigset_t *mask; /* the signals that are blocked when the command begins */
	struct child_fd {
		int ours, theirs; /* a descriptor of ours, and its number in the command */
	} fds[2];
	size_t n_fds;
	bool has_session; /* the command has a session of its own, without a terminal; otherwise it
			     has a process group of its own, which takes the terminal over if our
			     group has it */
};
/* Starts the command. *ret is the id of its process, and of its process group. The command inherits
 * only those descriptors that this process was started with, and those in the options. It is killed
 * when the calling thread ends. waitpid() gets its status. Returns 0 or -errno. A command that
 * cannot be executed is not an error here: its process exits with 127 or 126. */
int child_start(const struct child_options *options, pid_t *ret);
/* Ends a running command and its process group: by SIGTERM, and after five seconds by SIGKILL.
 * Returns false if it still runs a second later, which happens only to another user's process, or
 * to one in an uninterruptible wait. */
bool child_end(pid_t child);

/* Runs `s3once lock child PARENT INHERITED NAME=value… -- COMMAND…`, which only child_start()
 * starts. PARENT is a process id, and INHERITED has the limits and signals that startup_prepare()
 * found. The process arranges to be killed when its parent ends, and then becomes the command.
 * Returns only on failure. */
int child_main(int argc, char **argv);

/* Gives the terminal to the process group `to` if the group `from` has it in the foreground.
 * Returns whether `from` had it. */
bool pass_terminal(int tty, pid_t from, pid_t to);
