#include "cli/signals.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STOP_SIGNALS = 3 };
static const int stop_signals[STOP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* A handler reaches nothing but what is static. */
static struct {
	struct s3once_push *push;
	const char *message;
	volatile sig_atomic_t first, came;
	struct sigaction before[STOP_SIGNALS];
} run;

static void on_signal(int number)
{
	int saved = errno;
	run.came++;
	if (!run.first) {
		run.first = number;
		ssize_t written = write(STDERR_FILENO, run.message, strlen(run.message));
		(void)written;
	}
	if (run.push)
		s3once_push_stop(run.push);
	errno = saved;
}

void signals_stop_run(struct s3once_push *push, const char *message)
{
	run.push = push;
	run.message = message;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		if (sigaction(stop_signals[i], NULL, &run.before[i]) == 0 &&
			run.before[i].sa_handler != SIG_IGN)
			sigaction(stop_signals[i], &action, NULL);
}

int signals_ignore_run(void)
{
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		signal(stop_signals[i], SIG_IGN);
	return run.first;
}

void signals_count(const char *message)
{
	signals_stop_run(NULL, message);
}

unsigned signals_came(void)
{
	return (unsigned)run.came;
}

int signals_restore(void)
{
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaction(stop_signals[i], &run.before[i], NULL);
	return run.first;
}
