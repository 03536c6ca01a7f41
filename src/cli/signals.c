/* What the process is given from outside: signals, limits, and standard descriptors. main.c
 * prepares them first of all. push_command.c lets signals stop its run, watch keeps SIGHUP for
 * itself, and commands that have to tidy up only count them. A handler does nothing here but set
 * these variables, write if there is room, and call what the library allows in one. */
#include "cli/signals.h"
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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
	uint64_t first_ns;
	volatile sig_atomic_t first, came, toggled, reload;
	bool serves; /* SIGHUP does not stop the run */
	bool drains; /* the first signal is answered by one more run */
	struct sigaction before[STOP_SIGNALS], alarm_before;
} run;

void signals_say_if_room(const char *message)
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
		run.first_ns = clock_boot_ns();
		signals_say_if_room(run.message);
	}
	if (run.push) {
		s3once_push_stop(run.push);
		if (run.drains) /* it was asked to end before */
			s3once_push_stop(run.push);
		if (run.came == 2)
			alarm(LAST_S);
		if (run.came > 2)
			on_end(number);
	}
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

/* A signal that was ignored when the process began stays ignored. */
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

void signals_stop_run(struct s3once_push *push, const char *message)
{
	run.push = push;
	run.message = message;
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&action.sa_mask, stop_signals[i]);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		if (!run.serves || stop_signals[i] != SIGHUP)
			take_signal(stop_signals[i], &action, &run.before[i]);
	if (!push)
		return;
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_end}, &run.alarm_before);
	take_toggle();
	if (run.toggled)
		s3once_push_toggle_bandwidth(push);
	if (run.came > run.drains) /* between two runs */
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
	take_signal(SIGHUP, &(struct sigaction){.sa_handler = on_reload, .sa_flags = SA_RESTART},
		&before);
	take_toggle();
	signals_count("");
}

bool signals_take_reload(void)
{
	const bool came = run.reload;
	run.reload = 0;
	return came;
}

bool signals_begin_drain(uint64_t *ret_since_ns)
{
	run.drains = run.came == 1 && run.first == SIGTERM;
	*ret_since_ns = run.first_ns;
	return run.drains;
}

void signals_count(const char *message)
{
	signals_stop_run(NULL, message);
}

unsigned signals_came(void)
{
	return (unsigned)run.came;
}

bool signals_abandon(void *arg)
{
	(void)arg;
	return run.came > 0;
}

int signals_restore(void)
{
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaction(stop_signals[i], &run.before[i], NULL);
	return run.first;
}

/* What this program changes of what it was given: soft limits, and whether signals were ignored. */
static struct {
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz;
} before;

/* Raises the soft limit to the hard one, and returns what the soft limit was. */
static unsigned long long set_soft_limit(unsigned which, unsigned long long wanted)
{
	struct rlimit limit;
	if (getrlimit(which, &limit))
		return 0;
	const rlim_t was = limit.rlim_cur;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (limit.rlim_cur != was)
		setrlimit(which, &limit);
	return was;
}

void startup_prepare(void)
{
	/* A file that is opened later must not become standard output. Standard input that is not
	 * there must not be an empty list of files, so reading it has to fail. */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDWR) != fd) {
			dprintf(STDERR_FILENO,
				"s3once: error: standard input, output or error is closed, and "
				"/dev/null cannot stand for it: %s\n",
				strerror(errno));
			_exit(S3ONCE_EXIT_SETUP);
		}
	before.core = set_soft_limit(RLIMIT_CORE, 0);
	before.files = set_soft_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	before.ignored_pipe = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	before.ignored_xfsz = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
}

void startup_before(char ret[static STARTUP_BEFORE_CHARS])
{
	snprintf(ret, STARTUP_BEFORE_CHARS, "%llu:%llu:%d:%d", before.core, before.files,
		before.ignored_pipe, before.ignored_xfsz);
}

void startup_restore(const char *word)
{
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz;
	if (sscanf(word, "%llu:%llu:%d:%d", &core, &files, &ignored_pipe, &ignored_xfsz) != 4)
		return;
	set_soft_limit(RLIMIT_CORE, core);
	set_soft_limit(RLIMIT_NOFILE, files);
	signal(SIGPIPE, ignored_pipe ? SIG_IGN : SIG_DFL);
	signal(SIGXFSZ, ignored_xfsz ? SIG_IGN : SIG_DFL);
}
