/* `s3once lock run`: a command that runs while a lock is held, and never longer. */
#include "cli/lock/lock_run.h"
#include "base/log.h"
#include "base/problem.h"
#include "base/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <uv.h>

#define RELEASE_MOST_MS 10000
#define NO_DESCRIPTORS  "out of descriptors: raise ulimit -n"

static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

static void acquire_thread(void *arg)
{
	struct lock_run *run = arg;
	const struct s3once_lock_request request = lock_request(run->options, run->key);
	run->acquired = s3once_lock_acquire(run->locks, &request, &run->lock, &run->error);
	eventfd_write(run->acquired_fd, 1);
}

/* Waits for the lock in a thread, so that a signal can end the wait. Returns the exit code. */
static int wait_for_lock(struct lock_run *run)
{
	uv_thread_t thread;
	int signal = 0;
	bool by_key = false;
	run->acquired_fd = eventfd(0, EFD_CLOEXEC);
	if (run->acquired_fd < 0 || thread_start(&thread, acquire_thread, run)) {
		log_error(
			"lock run: %s", run->acquired_fd < 0 ? NO_DESCRIPTORS : PROBLEM_NO_THREAD);
		return S3ONCE_EXIT_SETUP;
	}
	struct pollfd fds[] = {
		{.fd = run->acquired_fd, .events = POLLIN}, {.fd = run->signals, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0 || !fds[0].revents) {
		const int got = fds[1].revents ? lock_run_signal(run, &by_key) : 0;
		if (lock_run_ends_by(got)) {
			signal = got;
			run->die_by = got == run->interrupt ? got : 0;
			s3once_locks_close(run->locks, 0, RELEASE_MOST_MS, NULL);
		} else if (got == SIGTSTP && by_key) {
			lock_terminal_stop();
		} else if (got == SIGTSTP) {
			kill(getpid(), SIGSTOP);
		}
	}
	uv_thread_join(&thread);
	close(run->acquired_fd);
	return signal ? STOPPED(signal) : lock_exit(run->options, run->acquired, &run->error);
}

static int hold(struct lock_run *run)
{
	int code = wait_for_lock(run);
	if (code)
		return code;
	lock_run_tell(run, "acquired", "");
	int error =
		lock_child_start(run->command, run->lock, &run->before, &run->child, &run->hold);
	if (error) {
		log_error("lock run: cannot start a process: %s", strerror(-error));
		s3once_lock_release(run->lock, &run->error);
		return S3ONCE_EXIT_SETUP;
	}
	run->group = run->child;
	lock_run_watch(run);
	return lock_run_finish(run);
}

/* It was ignored by nohup, or by a shell for a background job. Then it stays ignored. */
static bool is_ignored(int signal)
{
	struct sigaction now;
	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int run_command(const struct lock_options *options, int n, char **operands)
{
	const int first =
		strcmp(operands[1], "--") != 0 ? 1 : 2; /* a key after "--" has one of its own */
	if (first == n) {
		log_error("lock run: no command after --");
		return S3ONCE_EXIT_USAGE;
	}
	operands[n] = NULL; /* an argv has room for that */
	struct lock_run run = {.options = options,
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
