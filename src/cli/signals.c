#include "cli/signals.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A handler reaches nothing but what is static. */
static struct {
	struct s3once_push *push;
	const char *message;
	volatile sig_atomic_t first;
} run;

static void on_signal(int number)
{
	int saved = errno;
	if (!run.first) {
		run.first = number;
		ssize_t written = write(STDERR_FILENO, run.message, strlen(run.message));
		(void)written;
	}
	s3once_push_stop(run.push);
	errno = saved;
}

void signals_stop_run(struct s3once_push *push, const char *message)
{
	run.push = push;
	run.message = message;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
	for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
		if (sigaction(stop_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(stop_signals[i], &action, NULL);
}

int signals_ignore_run(void)
{
	for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
		signal(stop_signals[i], SIG_IGN);
	return run.first;
}
