/* The signals that stop a process. push_command.c lets signals stop its run, watch keeps SIGHUP for
 * itself, and commands that have to tidy up only count signals. A handler only sets the variables
 * of this file, writes if that need not wait, and calls functions of the library that are allowed
 * in a handler. */
#include "cli/signals.h"
#include "base/clock.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define LAST_S 3 /* the longest time from the second signal to the end */

enum { STOP_SIGNALS = 3 };
static const int stop_signals[STOP_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* Handlers may only use atomics without a lock. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomic_int needs a lock");

/* The state of the signal handlers. It is static, since a handler can reach nothing else. Its
 * atomics are read by other threads, too.
 *
 * uv_signal is not used, for two reasons. The loop belongs to the library, which leaves signals to
 * the program that uses it. And a second signal has to end a process whose loop hangs. */
static struct {
	struct s3once_push *push; /* NULL: signals are only counted */
	const char *message;      /* printed at the first signal */
	uint64_t first_ns;        /* time of the first signal */
	atomic_int first, came;   /* the first signal, and the number of signals */
	atomic_int toggled;       /* SIGUSR2 has lifted the limit of bandwidth */
	atomic_int reload;        /* a SIGHUP came for signals_take_reload() */
	bool serves;              /* SIGHUP does not stop the run */
	bool drains; /* the first signal was a SIGTERM that does not stop the runs that follow */
	atomic_bool has_alarm; /* end_soon() was called: alarm_before is the action of SIGALRM
				  before that */
	/* The former actions of signals: the stop signals, for signals_restore(), and SIGALRM. */
	struct sigaction before[STOP_SIGNALS], alarm_before;
} state;

void signals_print_if_room(const char *message)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (*message && poll(&room, 1, 0) == 1) {
		ssize_t written = write(STDERR_FILENO, message, strlen(message));
		(void)written;
	}
}

/* Ends the process, whatever hangs in it. It is also the handler of SIGALRM. Its claims are no
 * obstacle: the next run on this host may take them over at once, and other hosts once the lease
 * has expired. */
static void on_end(int number)
{
	(void)number;
	_exit(S3ONCE_EXIT_STOPPED + state.first);
}

/* Has the process ended in LAST_S seconds. Until then, SIGALRM is not ours: it ends the process as
 * it would end any other, and an alarm that our parent has set before it became us stays set. */
static void end_soon(void)
{
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_end}, &state.alarm_before);
	state.has_alarm = true;
	alarm(LAST_S);
}

/* Stops the run. While the process drains, its SIGTERM was the first request to stop. So the signal
 * that stops this run is the second one, which ends the grace. */
static void stop_push(void)
{
	s3once_push_stop(state.push);
	if (state.drains)
		s3once_push_stop(state.push);
}

/* The handler of the signals that stop a run: counts the signal, and stops the run if there is one.
 */
static void on_signal(int number)
{
	int saved = errno;
	state.came++;
	if (!state.first) {
		state.first = number;
		state.first_ns = clock_boot_ns();
		signals_print_if_room(state.message);
	}
	if (state.push) {
		stop_push();
		if (state.came == 2)
			end_soon();
		if (state.came > 2)
			on_end(number);
	}
	errno = saved;
}

/* Lifts the bandwidth limit, or restores it. This also counts for later runs of this process. */
static void on_toggle(int number)
{
	int saved = errno;
	state.toggled = !state.toggled;
	if (state.push)
		s3once_push_toggle_bandwidth(state.push);
	errno = saved;
}

static void on_reload(int number)
{
	(void)number;
	state.reload = 1;
}

/* Sets the handler of a signal. A signal that was ignored when the process began stays ignored. */
static void take_signal(int number, const struct sigaction *action, struct sigaction *ret_before)
{
	if (sigaction(number, NULL, ret_before) == 0 && ret_before->sa_handler != SIG_IGN)
		sigaction(number, action, NULL);
}

static void take_toggle(void)
{
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_toggle, .sa_flags = SA_RESTART},
		NULL);
}

/* `push` may be NULL, from signals_count(): then signals are only counted. */
void signals_stop_run(struct s3once_push *push, const char *message)
{
	state.push = push;
	state.message = message;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		if (!state.serves || stop_signals[i] != SIGHUP) /* on_reload() keeps SIGHUP */
			take_signal(stop_signals[i], &action, &state.before[i]);
	if (!push)
		return;
	take_toggle();
	if (state.toggled)
		s3once_push_toggle_bandwidth(push);
	/* A signal came between two runs, besides the SIGTERM by which the process drains. */
	if (state.came > (state.drains ? 1 : 0))
		stop_push();
}

/* The handlers stay. Without a run they only count. */
int signals_end_run(void)
{
	state.push = NULL;
	state.message = "";
	if (state.has_alarm) {
		alarm(0);
		sigaction(SIGALRM, &state.alarm_before, NULL);
		state.has_alarm = false;
	}
	return state.first;
}

void signals_serve(void)
{
	struct sigaction unused; /* signals_restore() restores the default action of SIGHUP */
	state.serves = true;
	take_signal(SIGHUP, &(struct sigaction){.sa_handler = on_reload, .sa_flags = SA_RESTART},
		&unused);
	take_toggle(); /* without a handler, a SIGUSR2 before the first run would end the process */
	signals_count("");
}

bool signals_take_reload(void)
{
	return atomic_exchange(&state.reload, 0) != 0;
}

bool signals_begin_drain(uint64_t *ret_since_ns)
{
	state.drains = state.came == 1 && state.first == SIGTERM;
	*ret_since_ns = state.first_ns;
	return state.drains;
}

void signals_count(const char *message)
{
	signals_stop_run(NULL, message);
}

unsigned signals_came(void)
{
	return (unsigned)state.came;
}

bool signals_abandon(void *arg)
{
	(void)arg;
	return state.came > 0;
}

int signals_restore(void)
{
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaction(stop_signals[i], &state.before[i], NULL);
	return state.first;
}
