#include "cli/signals.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define LAST_S 3 /* from the second signal to the end at the latest */

enum { STOP_SIGNALS = 3 };
static const int stop_signals[STOP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* Handlers, not uv_signal: the loop is the library's, which leaves signals to the program that uses
 * it, and a second signal ends a process whose loop does not turn. A handler can reach only static
 * variables. */
static struct {
	struct s3once_push *push;
	const char *message;
	volatile sig_atomic_t first, came, toggled, reload;
	bool serves; /* SIGHUP does not stop the run */
	struct sigaction before[STOP_SIGNALS], alarm_before;
} run;

/* Writes nothing if nobody reads it, since a handler that blocks would not stop the run. */
static void write_if_room(const char *message)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (*message && poll(&room, 1, 0) == 1) {
		ssize_t written = write(STDERR_FILENO, message, strlen(message));
		(void)written;
	}
}

/* Ends the process, whatever hangs in it. The marks allow that: the next run on this host may take
 * what is claimed at once, and other hosts may after a lease. */
static void on_end(int number)
{
	(void)number;
	_exit(128 + run.first);
}

static void on_signal(int number)
{
	int saved = errno;
	run.came++;
	if (!run.first) {
		run.first = number;
		write_if_room(run.message);
	}
	if (run.push)
		s3once_push_stop(run.push);
	if (run.push && run.came == 2)
		alarm(LAST_S);
	if (run.push && run.came > 2)
		on_end(number);
	errno = saved;
}

/* The limit of bandwidth is lifted, or holds again, also for the runs that follow. */
static void on_toggle(int number)
{
	int saved = errno;
	run.toggled = !run.toggled;
	if (run.push)
		s3once_push_toggle_bandwidth(run.push);
	errno = saved;
}

static void on_reload(int number)
{
	(void)number;
	run.reload = 1;
}

/* Unless it was ignored when the process began. */
static void take_stop_signal(size_t i, const struct sigaction *action)
{
	if (run.serves && stop_signals[i] == SIGHUP)
		return;
	if (sigaction(stop_signals[i], NULL, &run.before[i]) == 0 &&
		run.before[i].sa_handler != SIG_IGN)
		sigaction(stop_signals[i], action, NULL);
}

static void take_toggle(void)
{
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_toggle, .sa_flags = SA_RESTART},
		NULL);
}

void signals_stop_run(struct s3once_push *push, const char *message)
{
	run.push = push;
	run.message = message;
	if (push)
		sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_end}, &run.alarm_before);
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		take_stop_signal(i, &action);
	if (push) {
		take_toggle();
		if (run.toggled)
			s3once_push_toggle_bandwidth(push);
	}
	if (push && run.came) /* between two runs */
		s3once_push_stop(push);
}

int signals_end_run(void)
{
	run.push = NULL;
	run.message = "";
	alarm(0);
	sigaction(SIGALRM, &run.alarm_before, NULL);
	return run.first;
}

void signals_serve(void)
{
	struct sigaction before;
	run.serves = true;
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP,
			&(struct sigaction){.sa_handler = on_reload, .sa_flags = SA_RESTART}, NULL);
	take_toggle();
	signals_count("");
}

bool signals_take_reload(void)
{
	const bool came = run.reload;
	run.reload = 0;
	return came;
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
