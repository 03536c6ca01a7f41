/* The terminal, of which `lock run` and its command are two process groups. */
#include "base/thread.h"
#include "cli/lock/lock_command.h"
#include <signal.h>
#include <unistd.h>

bool lock_terminal_pass(int tty, pid_t from, pid_t to)
{
	if (tcgetpgrp(tty) != from)
		return false;
	void (*before)(int) = signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(tty, to);
	signal(SIGTTOU, before);
	return true;
}

bool lock_terminal_stop(void)
{
	sigset_t stop, before, pending;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(0, SIGTSTP);
	thread_mask_signals(
		SIG_UNBLOCK, &stop, &before); /* here it stops, unless nobody would see */
	thread_mask_signals(SIG_SETMASK, &before, NULL);
	return !sigpending(&pending) && sigismember(&pending, SIGCONT);
}
