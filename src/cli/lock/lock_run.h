/* What `lock run` is while it runs. */
#pragma once
#include "cli/lock/lock_command.h"

#define STOPPED(signal) (128 + (signal))

struct run {
	const struct lock_options *options;
	const char *key;
	char **command;
	struct s3once_locks *locks;
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	int acquired;       /* what s3once_lock_acquire returned */
	int acquired_fd;    /* an eventfd: it has */
	int signals;        /* a signalfd */
	sigset_t before;    /* the mask of the command */
	int tty;            /* -1: there is no terminal */
	pid_t child, group; /* group: the command's, also when child is 0 */
	int status;         /* of the command, once child is 0 */
	int hold; /* of a pipe that nobody writes to: its end says that the lock is lost */
	bool lost;
	bool ctrl_z;      /* a stop from the terminal was passed on */
	bool waits;       /* to be continued, once the lock is known to be ours */
	int interrupt;    /* SIGINT or SIGQUIT from the terminal, which our group got as well */
	int die_by;       /* 0, or the signal by which to end, for a shell to see */
	uint64_t kill_ns; /* when the command is killed; 0: not yet */
};

/* The next signal, 0 if none waits. *ret_key: whether it came from the terminal, to our whole
 * process group. */
int lock_run_signal(struct run *run, bool *ret_key);
/* Whether it asks a program to end. */
bool lock_run_ends_by(int signal);
/* An event of --json. */
void lock_run_tell(const struct run *run, const char *event, const char *text);
/* While the command runs: passes signals on, stops with it, ends it when the lock is lost. */
void lock_run_watch(struct run *run);
/* After the command: releases the lock. The exit code is what the command said, unless the lock was
 * lost while it ran. */
int lock_run_finish(struct run *run);
