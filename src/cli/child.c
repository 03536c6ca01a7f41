/* How a command is started, so that it ends with us and finds signals and limits as we have found
 * them. lock_run.c and pipe_input.c start one each; what becomes of it is theirs. */
#include "cli/child.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "cli/signals.h"
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

bool pass_terminal(int tty, pid_t from, pid_t to)
{
	if (tcgetpgrp(tty) != from)
		return false;
	void (*before)(int) = signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(tty, to);
	signal(SIGTTOU, before);
	return true;
}

/* Not uv_spawn(): the command of a lock is a process group of its own in the same session, so that
 * it keeps the terminal, and a command begins with the signals blocked that were blocked when we
 * began. */
int child_start(const struct child_options *options, pid_t *ret)
{
	const short group = options->has_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	char parent[16], before[STARTUP_BEFORE_CHARS];
	size_t n = 0, m = 0;
	while (options->command[n])
		n++;
	while (options->variables && options->variables[m])
		m++;
	char *first[] = {(char[]){"s3once"}, (char[]){"lock"}, (char[]){"child"}, parent, before};
	char **argv = must_have(calloc(n + m + 7, sizeof *argv));
	snprintf(parent, sizeof parent, "%d", (int)getpid());
	startup_before(before);
	memcpy(argv, first, sizeof first);
	for (size_t i = 0; i < m; i++)
		argv[5 + i] = options->variables[i];
	argv[5 + m] = (char[]){"--"};
	memcpy(argv + 6 + m, options->command, n * sizeof *argv);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, (short)(group | POSIX_SPAWN_SETSIGMASK));
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, options->mask);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, options->fd, options->fd_there);
	const int error = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(argv);
	return -error;
}

int child_main(int argc, char **argv)
{
	char **command = argv + (argc < 3 ? argc : 3);
	for (; *command && strcmp(*command, "--") != 0; command++)
		putenv(*command);
	if (!*command || !command[1])
		return S3ONCE_EXIT_USAGE;
	command++;
	const pid_t parent = (pid_t)atoi(argv[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before we could ask to be told */
		return S3ONCE_EXIT_FENCED;
	/* A group of its own may not read from the terminal unless it is in the foreground. */
	pass_terminal(STDIN_FILENO, getpgid(parent), getpgrp());
	startup_restore(argv[2]);
	execvp(*command, command);
	const int error = errno;
	fprintf(stderr, "s3once: error: cannot start %s: %s\n", quote(*command).text,
		strerror(error));
	return error == ENOENT ? 127 : 126;
}
