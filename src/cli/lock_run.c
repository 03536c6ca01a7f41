/* `s3once lock run`: a command that runs while a lock is held, and never longer. */
#include "base/clock.h"
#include "base/log.h"
#include "base/problem.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER_MS   5000
#define RELEASE_MOST_MS 10000
#define LOOK_MS         20
#define STOPPED(signal) (128 + (signal))
#define NO_DESCRIPTORS  "out of descriptors: raise ulimit -n"

static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

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

static void *acquire(void *arg)
{
	struct run *run = arg;
	const struct s3once_lock_request request = lock_request(run->options, run->key);
	run->acquired = s3once_lock_acquire(run->locks, &request, &run->lock, &run->error);
	eventfd_write(run->acquired_fd, 1);
	return NULL;
}

/* *ret_key: whether it came from the terminal, to our whole process group. */
static int read_signal(const struct run *run, bool *ret_key)
{
	struct signalfd_siginfo info;
	if (read(run->signals, &info, sizeof info) != sizeof info)
		return 0;
	*ret_key = info.ssi_code == SI_KERNEL;
	return (int)info.ssi_signo;
}

static bool is_interrupt(int signal)
{
	return signal == SIGINT || signal == SIGQUIT;
}

static bool ends_a_wait(int signal)
{
	return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

/* Waits for the lock on a thread, so that a signal can end the wait. The exit code. */
static int wait_for_lock(struct run *run)
{
	pthread_t thread;
	int signal = 0;
	bool by_key = false;
	run->acquired_fd = eventfd(0, EFD_CLOEXEC);
	if (run->acquired_fd < 0 || pthread_create(&thread, NULL, acquire, run)) {
		log_error(
			"lock run: %s", run->acquired_fd < 0 ? NO_DESCRIPTORS : PROBLEM_NO_THREAD);
		return S3ONCE_EXIT_SETUP;
	}
	struct pollfd fds[] = {
		{.fd = run->acquired_fd, .events = POLLIN}, {.fd = run->signals, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0 || !fds[0].revents) {
		const int got = fds[1].revents ? read_signal(run, &by_key) : 0;
		if (ends_a_wait(got)) {
			signal = got;
			run->die_by = by_key && is_interrupt(got) ? got : 0;
			s3once_locks_close(run->locks, 0, RELEASE_MOST_MS, NULL);
		} else if (got == SIGTSTP && by_key) {
			lock_terminal_stop();
		} else if (got == SIGTSTP) {
			kill(getpid(), SIGSTOP);
		}
	}
	pthread_join(thread, NULL);
	close(run->acquired_fd);
	return signal ? STOPPED(signal) : lock_exit(run->options, run->acquired, &run->error);
}

static void tell(const struct run *run, const char *event, const char *text)
{
	if (!run->options->json)
		return;
	json_t *object = json_event(event);
	json_set_bytes(object, "key", run->key);
	json_set_bytes(object, "text", text);
	lock_print(object);
}

static void send(const struct run *run, int signal)
{
	if (kill(-run->group, signal) && errno == EPERM && run->lost && !run->kill_ns)
		log_error("lock run: the command cannot be ended: process %d runs as another user",
			(int)run->group);
}

/* Of a lock that may be lost it goes on only to be ended. */
static void go_on(struct run *run)
{
	run->waits = !s3once_lock_remaining_ms(run->lock);
	if (!run->waits)
		send(run, SIGCONT);
}

/* The command must not go on: asked first, killed after a while. */
static void on_event(void *arg, const struct s3once_lock_event *event)
{
	static const char *const names[] = {
		[S3ONCE_LOCK_SUSPECT] = "suspect",
		[S3ONCE_LOCK_RECOVERED] = "recovered",
		[S3ONCE_LOCK_LOST] = "lost",
		[S3ONCE_LOCK_EXPIRED] = "expired",
		[S3ONCE_LOCK_OUTAGE] = "outage",
	};
	struct run *run = arg;
	struct text text = TEXT(1000);
	text_add_escaped(&text, event->text, strlen(event->text));
	if (*event->owner) {
		text_add(&text, "; the holder is now ");
		text_add_escaped(&text, event->owner, strlen(event->owner));
	}
	log_warning("lock run: %s: %s", names[event->type], text_string(&text));
	tell(run, names[event->type], text_string(&text));
	text_clear(&text);
	if (event->type == S3ONCE_LOCK_RECOVERED && run->waits && run->child > 0)
		go_on(run);
	const bool over = event->type == S3ONCE_LOCK_LOST || event->type == S3ONCE_LOCK_EXPIRED;
	if (!over || run->lost)
		return;
	run->lost = true;
	close(run->hold);
	run->hold = -1;
	if (run->child > 0)
		send(run, SIGTERM), send(run, SIGCONT);
	const uint64_t ms =
		run->options->kill_after_ms ? run->options->kill_after_ms : KILL_AFTER_MS;
	run->kill_ns = clock_boot_ns() + ms * NS_PER_MS;
}

/* Stopped from the terminal, or for want of it: so are we, for the shell to see, and heartbeats
 * stop as well. What asks for the terminal while it is ours gets it. */
static void on_stop(struct run *run)
{
	const int by = WSTOPSIG(run->status);
	const bool had = lock_terminal_pass(run->tty, run->child, getpgrp());
	const bool asks = by == SIGTTIN || by == SIGTTOU,
		   is_ours = tcgetpgrp(run->tty) == getpgrp();
	if (!had && !asks && !run->ctrl_z)
		return;
	run->ctrl_z = false;
	if (!(asks && is_ours) && !lock_terminal_stop() && asks)
		send(run, SIGHUP); /* nobody will ever give it what it waits for */
	lock_terminal_pass(run->tty, getpgrp(), run->child);
	go_on(run);
}

static void on_child(struct run *run)
{
	if (run->child <= 0 || waitpid(run->child, &run->status, WNOHANG | WUNTRACED) != run->child)
		return;
	if (WIFSTOPPED(run->status))
		on_stop(run);
	else
		run->child = 0;
}

static void on_signal(struct run *run)
{
	bool by_key = false;
	const int signal = read_signal(run, &by_key);
	if (signal == SIGCHLD) {
		on_child(run);
	} else if (run->child > 0 && signal == SIGCONT) {
		go_on(run);
	} else if (run->child > 0 && signal) {
		run->ctrl_z = by_key && signal == SIGTSTP;
		run->interrupt = by_key && is_interrupt(signal) ? signal : run->interrupt;
		send(run, signal);
		if (ends_a_wait(signal)) /* one that is stopped would not notice */
			go_on(run);
	}
}

/* Something of a command that had to end is left, and may still be ending. */
static bool is_ending(const struct run *run)
{
	return run->lost && (!kill(-run->group, 0) || errno == EPERM);
}

static int left_ms(const struct run *run)
{
	if (!run->kill_ns)
		return -1;
	if (!run->child)
		return LOOK_MS;
	const uint64_t now_ns = clock_boot_ns();
	return now_ns >= run->kill_ns ? 0 : (int)((run->kill_ns - now_ns) / NS_PER_MS) + 1;
}

static void watch(struct run *run)
{
	struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
		{.fd = s3once_locks_event_fd(run->locks), .events = POLLIN}};
	while (run->child > 0 || is_ending(run)) {
		int n = poll(fds, 2, left_ms(run));
		if (run->kill_ns && clock_boot_ns() >= run->kill_ns) {
			send(run, SIGKILL);
			if (!run->child)
				break;
			run->kill_ns += NS_PER_S;
		}
		if (n > 0 && fds[1].revents)
			s3once_locks_next_event(run->locks, on_event, run);
		if (n > 0 && fds[0].revents)
			on_signal(run);
	}
}

/* After the command: what it said, unless the lock was lost while it ran. */
static int finish(struct run *run)
{
	while (s3once_locks_next_event(run->locks, on_event, run) == 1)
		;
	const bool had = lock_terminal_pass(run->tty, run->group, getpgrp());
	int r = s3once_lock_release(run->lock, &run->error);
	if (r == -ESTALE || run->lost) {
		if (!run->lost) {
			log_error("lock run: %s", run->error.text);
			tell(run, "lost", run->error.text);
		}
		return S3ONCE_EXIT_FENCED;
	}
	if (r)
		log_warning("lock run: not released, it runs out by itself: %s", run->error.text);
	if (WIFEXITED(run->status))
		return WEXITSTATUS(run->status);
	const int signal = WTERMSIG(run->status);
	if (had && is_interrupt(signal))
		kill(0, signal); /* nobody but the command has got it */
	run->die_by = (had && is_interrupt(signal)) || signal == run->interrupt ? signal : 0;
	return STOPPED(signal);
}

static int hold(struct run *run)
{
	int code = wait_for_lock(run);
	if (code)
		return code;
	tell(run, "acquired", "");
	int error =
		lock_child_start(run->command, run->lock, &run->before, &run->child, &run->hold);
	if (error) {
		log_error("lock run: cannot start a process: %s", strerror(-error));
		s3once_lock_release(run->lock, &run->error);
		return S3ONCE_EXIT_SETUP;
	}
	run->group = run->child;
	watch(run);
	return finish(run);
}

/* By nohup, or by a shell's background: then it is nothing to us either. */
static bool is_ignored(int signal)
{
	struct sigaction now;
	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int run_command(const struct lock_options *options, int n, char **operands)
{
	const int first =
		strcmp(operands[1], "--") ? 1 : 2; /* a key after "--" has one of its own */
	if (first == n) {
		log_error("lock run: no command after --");
		return S3ONCE_EXIT_USAGE;
	}
	operands[n] = NULL; /* an argv has room for that */
	struct run run = {.options = options,
		.key = operands[0],
		.command = operands + first,
		.hold = -1,
		.tty = open("/dev/tty", O_RDWR | O_CLOEXEC)};
	sigset_t taken;
	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		if (!is_ignored(forwarded[i]))
			sigaddset(&taken, forwarded[i]);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &taken, &run.before);
	run.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	int code = S3ONCE_EXIT_SETUP;
	if (run.signals < 0)
		log_error("lock run: " NO_DESCRIPTORS);
	else
		code = lock_open(options, 0, &run.locks);
	if (!code)
		code = hold(&run);
	s3once_locks_free(run.locks);
	if (run.die_by) { /* a shell goes on after a command that only exits */
		kill(getpid(), run.die_by);
		sigprocmask(SIG_SETMASK, &run.before, NULL);
	}
	return code;
}

#define FIELD(name) offsetof(struct lock_options, name)
static const struct option own[] = {
	{.name = "kill-after",
		.type = OPTION_DURATION,
		.offset = FIELD(kill_after_ms),
		.argument = "DUR",
		.help = "from SIGTERM, when the lock is lost, to SIGKILL [5s]",
		.least = 1,
		.most = 24 * 3600 * 1000},
	{NULL},
};

const struct lock_command lock_run_command = {
	.name = "run",
	.description = "run a command while holding a lock",
	.operands = "KEY -- COMMAND...",
	.about =
		"Waits for the lock, runs the command, releases the lock; exits as the command did.\n"
		"If the lock is lost, the command is terminated. It finds in its environment\n"
		"S3ONCE_LOCK_KEY, S3ONCE_LOCK_TOKEN (the fencing token) and S3ONCE_LOCK_FD, a\n"
		"descriptor that reads end of file once the lock is lost.\n",
	.examples =
		"  s3once lock run nightly -- backup --all\n"
		"  s3once lock init --locks dynamodb:locks\n"
		"  s3once lock run --locks dynamodb:locks --wait 10m deploy -- ./deploy.sh\n"
		"\n"
		"Exit codes: the command's own (128 + N: ended by signal N; 126, 127: it cannot be\n"
		"started); 2 usage; 3 service; 4 held by another; 5 lost. More: man s3once-lock\n",
	.groups = {lock_wait_options, lock_key_options, own},
	.least = 2,
	.most = -1,
	.run = run_command,
};
