/* The state of `lock run` while it runs. */
#pragma once
#include "cli/lock/lock_command.h"

#define STOPPED(signal) (128 + (signal))

struct lock_run {
	const struct lock_options *options;
	const char *key;
	char **command;
	struct s3once_locks *locks;
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	int acquired;       /* what s3once_lock_acquire() returned */
	int acquired_fd;    /* an eventfd that is written when it has returned */
	int signals;        /* a signalfd */
	sigset_t before;    /* the mask of the command */
	int tty;            /* -1: there is no terminal */
	pid_t child, group; /* `group` is the command's, also when `child` is 0 */
	int status;         /* of the command, once `child` is 0 */
	/* One end of a pipe to which nobody writes. It is closed when the lock is lost. */
	int hold;
	bool lost;
	/* A stop from the terminal was passed on. */
	bool ctrl_z;
	/* The command is stopped, and is continued once the lock is known to be ours. */
	bool waits;
	/* SIGINT or SIGQUIT from the terminal, which our process group got as well. */
	int interrupt;
	/* The signal by which this process ends, so that a shell sees it; or 0. */
	int die_by;
	/* The clock_boot_ns() at which the command is killed. 0: not yet. */
	uint64_t kill_ns;
};

/* The next signal, or 0 if none waits. *ret_key says whether it came from the terminal to our whole
 * process group. */
int lock_run_signal(struct lock_run *run, bool *ret_key);
/* Whether this signal asks a program to end. */
bool lock_run_ends_by(int signal);
/* Prints an event of --json. */
void lock_run_tell(const struct lock_run *run, const char *event, const char *text);
/* Waits while the command runs. It passes signals on, stops with the command, and ends the command
 * when the lock is lost. */
void lock_run_watch(struct lock_run *run);
/* Releases the lock after the command has ended. Returns the exit code, which is that of the
 * command unless the lock was lost while it ran. */
int lock_run_finish(struct lock_run *run);
