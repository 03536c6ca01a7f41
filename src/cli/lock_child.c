/* Between `lock run` and its command: what posix_spawn cannot do. */
#include "base/quote.h"
#include "cli/lock.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A process group of its own may not read from the terminal unless it is in the foreground. */
static void take_terminal(pid_t parent)
{
	if (tcgetpgrp(STDIN_FILENO) != getpgid(parent))
		return;
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(STDIN_FILENO, getpgrp());
	signal(SIGTTOU, SIG_DFL);
}

int lock_child_main(int argc, char **argv)
{
	if (argc < 3)
		return S3ONCE_EXIT_USAGE;
	const pid_t parent = (pid_t)atoi(argv[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before we could ask to be told */
		return S3ONCE_EXIT_FENCED;
	take_terminal(parent);
	execvp(argv[2], argv + 2);
	fprintf(stderr, "s3once: error: lock run: cannot start %s: %s\n", quote(argv[2]).text,
		strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
