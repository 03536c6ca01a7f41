/* Between `lock run` and its command: the process in which it starts, and what posix_spawn cannot
 * do, done by that process before it becomes the command. */
#include "base/quote.h"
#include "cli/lock/lock_command.h"
#include "cli/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

/* The environment with three more variables, whose strings are in `ours`. */
static char **make_environment(const struct s3once_lock *lock, int fd, char ours[3][1200])
{
	size_t n = 0;
	while (environ[n])
		n++;
	char **made = calloc(n + 4, sizeof *made);
	if (!made)
		return NULL;
	snprintf(ours[0], 1200, "S3ONCE_LOCK_KEY=%s", s3once_lock_key(lock));
	snprintf(ours[1], 1200, "S3ONCE_LOCK_TOKEN=%llu",
		(unsigned long long)s3once_lock_token(lock));
	snprintf(ours[2], 1200, "S3ONCE_LOCK_FD=%d", fd);
	size_t at = 0;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "S3ONCE_LOCK_", 12) != 0)
			made[at++] = environ[i];
	for (int i = 0; i < 3; i++)
		made[at++] = ours[i];
	return made;
}

/* Not uv_spawn(): the command is a process group of its own in the same session, so that it keeps
 * the terminal, and it begins with the signals blocked that were blocked when we began. */
static int spawn_command(char **argv, char **environment, const sigset_t *mask, int fd, pid_t *ret)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, mask);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, fd);
	int error = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

int lock_child_start(char **command, const struct s3once_lock *lock, const sigset_t *mask,
	pid_t *ret_pid, int *ret_hold)
{
	char ours[3][1200], parent[16], before[STARTUP_BEFORE_CHARS];
	int hold[2];
	size_t n = 0;
	while (command[n])
		n++;
	if (pipe2(hold, O_CLOEXEC) < 0)
		return -errno;
	char **argv = calloc(n + 6, sizeof *argv);
	char **environment = argv ? make_environment(lock, hold[0], ours) : NULL;
	int error = -ENOMEM;
	if (environment) {
		snprintf(parent, sizeof parent, "%d", (int)getpid());
		argv[0] = (char[]){"s3once"};
		argv[1] = (char[]){"lock"};
		argv[2] = (char[]){"child"};
		argv[3] = parent;
		startup_before(before);
		argv[4] = before;
		memcpy(argv + 5, command, n * sizeof *argv);
		error = spawn_command(argv, environment, mask, hold[0], ret_pid);
	}
	close(hold[0]);
	if (error)
		close(hold[1]);
	else
		*ret_hold = hold[1];
	free(environment);
	free(argv);
	return error;
}

int lock_child_main(int argc, char **argv)
{
	if (argc < 4)
		return S3ONCE_EXIT_USAGE;
	const pid_t parent = (pid_t)atoi(argv[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before we could ask to be told */
		return S3ONCE_EXIT_FENCED;
	/* A group of its own may not read from the terminal unless it is in the foreground. */
	lock_terminal_pass(STDIN_FILENO, getpgid(parent), getpgrp());
	startup_restore(argv[2]);
	execvp(argv[3], argv + 3);
	const int error = errno;
	fprintf(stderr, "s3once: error: lock run: cannot start %s: %s\n", quote(argv[3]).text,
		strerror(error));
	return error == ENOENT ? 127 : 126;
}
