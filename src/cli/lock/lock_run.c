/* `s3once lock run`: runs a command while a lock is held, and no longer. It waits for the lock,
 * starts the command as a process group of its own, passes signals and the terminal on to it, and
 * ends the command once the lock is lost. cli/child.h starts the command, and include/s3once/lock.h
 * holds the lock. */
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/child.h"
#include "cli/lock/lock_use.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* The command, its lock, and the signals by which this process is told to end them. */
struct lock_run {
	struct lock_use *use;
	char **command;
	struct s3once_lock *lock;
	int acquired;      /* the result of s3once_lock_acquire() */
	int acquired_fd;   /* eventfd that is readable once `acquired` is set */
	int signals;       /* the signalfd */
	sigset_t old_mask; /* the signal mask before this command, which the child gets */
	int tty;           /* /dev/tty; negative: there is no terminal */
	/* The process of the command, or 0 once it has ended, and its process group, which may have
	 * other processes even then. */
	pid_t child, group;
	int status; /* as waitpid() returns it, for a command that has stopped or ended */
	/* The write end of a pipe that carries no data. It is closed when the lock is lost, so that
	 * the command reads end of file from the other end. */
	int hold;
	bool lost;        /* set by end_command() */
	uint64_t kill_ns; /* if lost: the clock_boot_ns() at which the command is killed */
	/* The last signal that was passed on to the command is the SIGTSTP of Ctrl-Z, which the
	 * terminal has sent to our process group. */
	bool ctrl_z;
	/* The command has not been continued yet, since the lock was not surely held. It is
	 * continued once the lock has recovered. */
	bool waits_for_lock;
	/* The SIGINT or SIGQUIT that our process group got from the terminal; 0: none. */
	int interrupt;
	/* The signal by which this process ends, so that a shell sees it; 0: it ends by exit(). */
	int die_by;
};

/* Stops our whole process group as Ctrl-Z does, and returns true once it was continued. It returns
 * false if the kernel did not stop the group because no shell could continue it, as for the leader
 * of a session. SIGTSTP and SIGCONT have to be blocked. */
static bool stop_group(void)
{
	sigset_t stop, before, pending;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	kill(0, SIGTSTP); /* this also removes a SIGCONT that was pending */
	thread_mask_signals(SIG_UNBLOCK, &stop, &before); /* the group stops here */
	thread_mask_signals(SIG_SETMASK, &before, NULL);
	/* So a SIGCONT that is pending now has continued the group after it had stopped. */
	return !sigpending(&pending) && sigismember(&pending, SIGCONT);
}

/* Starts a command in a process group of its own, with this signal mask. The command finds the lock
 * in its environment, and has a descriptor of a pipe. Once *ret_hold, the other end of the pipe, is
 * closed, the descriptor reads end of file. Returns 0 or -errno. */
static int start_child(char **command, const struct s3once_lock *lock, const sigset_t *mask,
	pid_t *ret_pid, int *ret_hold)
{
	char key[1200], token[64], fd[64]; /* a lock's key has at most 1,000 bytes */
	int hold[2];
	if (pipe2(hold, O_CLOEXEC) < 0)
		return -errno;
	snprintf(key, sizeof key, "S3ONCE_LOCK_KEY=%s", s3once_lock_key(lock));
	snprintf(token, sizeof token, "S3ONCE_LOCK_TOKEN=%llu",
		(unsigned long long)s3once_lock_token(lock));
	snprintf(fd, sizeof fd, "S3ONCE_LOCK_FD=%d", hold[0]);
	const struct child_options options = {.command = command,
		.variables = (char *[]){key, token, fd, NULL},
		.mask = mask,
		.fds = {{hold[0], hold[0]}}, /* under the number in the variable */
		.n_fds = 1};
	const int error = child_start(&options, ret_pid);
	close(hold[0]);
	if (error)
		close(hold[1]);
	else
		*ret_hold = hold[1];
	return error;
}

#define KILL_AFTER_MS 5000  /* default of --kill-after */
#define AWAIT_MS      1000  /* how long the start of the command waits for a slow reader */
#define STALL_MS      60000 /* output_options.stall_ms; its warning says "a minute" */
#define END_MS        10000 /* output_options.end_ms */
#define LOOK_MS       20 /* the time between two checks whether the rest of the group has ended */

static bool is_interrupt(int signal)
{
	return signal == SIGINT || signal == SIGQUIT;
}

/* Takes the next signal and returns it, or 0 if none waits. *ret_from_terminal: the terminal sent
 * it to our whole process group, as for Ctrl-C. Such a signal comes from the kernel. The last
 * SIGINT or SIGQUIT of the terminal is noted in run->interrupt. */
static int next_signal(struct lock_run *run, bool *ret_from_terminal)
{
	struct signalfd_siginfo info;
	if (read(run->signals, &info, sizeof info) != sizeof info)
		return 0;
	*ret_from_terminal = info.ssi_code == SI_KERNEL;
	if (*ret_from_terminal && is_interrupt((int)info.ssi_signo))
		run->interrupt = (int)info.ssi_signo;
	return (int)info.ssi_signo;
}

/* Whether this signal asks a program to end. */
static bool asks_to_end(int signal)
{
	return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

/* Prints an event of --json. */
static void print_run(const struct lock_run *run, const char *event, const char *text)
{
	if (run->use->frame->json)
		lock_print(
			run->use, json_set(json_event(event), BYTES("key", run->use->request.key),
					  BYTES("text", text)));
}

/* Sends a signal to the process group of the command. Returns 0, or -EPERM if all its processes run
 * as other users. A group that has ended is no error. */
static int signal_command(const struct lock_run *run, int signal)
{
	return kill(-run->group, signal) && errno == EPERM ? -EPERM : 0;
}

/* Continues the stopped command if the lock is surely held. Otherwise the command stays stopped,
 * until the lock has recovered, or until it is lost and on_event() ends the command. A command that
 * is not stopped goes on in any case. */
static void continue_command(struct lock_run *run)
{
	run->waits_for_lock = !s3once_lock_remaining_ms(run->lock);
	if (!run->waits_for_lock)
		signal_command(run, SIGCONT);
}

/* Whether the command has to end after this event. There may be two such events: EXPIRED, and then
 * LOST. */
static bool ends_command(const struct s3once_lock_event *event)
{
	return event->type == S3ONCE_LOCK_LOST || event->type == S3ONCE_LOCK_EXPIRED;
}

/* Logs an event of the lock, and prints it with --json. */
static void report_event(const struct lock_run *run, const struct s3once_lock_event *event)
{
	static const char *const names[] = {
		[S3ONCE_LOCK_SUSPECT] = "suspect",
		[S3ONCE_LOCK_RECOVERED] = "recovered",
		[S3ONCE_LOCK_LOST] = "lost",
		[S3ONCE_LOCK_EXPIRED] = "expired",
		[S3ONCE_LOCK_OUTAGE] = "outage",
	};
	struct text text = TEXT(1000);
	text_add_escaped_string(&text, event->text);
	if (*event->owner) {
		text_add(&text, "; the holder is now ");
		text_add_escaped_string(&text, event->owner);
	}
	log_warning("lock run: %s: %s%s%s", quote(run->use->request.key).text,
		event->type == S3ONCE_LOCK_LOST ? "lost: " : "", text_string(&text),
		ends_command(event) ? "; the command is ended" : "");
	print_run(run, names[event->type], text_string(&text));
	text_clear(&text);
}

/* Begins to end the command, since the lock is lost: it gets SIGTERM now, and after --kill-after
 * SIGKILL by watch_command(). */
static void end_command(struct lock_run *run)
{
	run->lost = true;
	/* From now on, this process reaps the command's orphans. The init of a container may not do
	 * so, and an unreaped process stays in the group. */
	prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
	close(run->hold);
	run->hold = -1;
	if (run->child > 0) {
		if (signal_command(run, SIGTERM))
			log_error("lock run: the command cannot be ended: process %d runs as "
				  "another user",
				(int)run->group);
		signal_command(run, SIGCONT); /* a stopped command would not notice SIGTERM */
	}
	const uint64_t ms = run->use->kill_after_ms ? run->use->kill_after_ms : KILL_AFTER_MS;
	run->kill_ns = clock_boot_ns() + ms * NS_PER_MS;
}

/* Reports an event of the lock. If the lock has recovered, a command that waited for it is
 * continued. If the lock is lost, the command is ended. */
static void on_event(void *arg, const struct s3once_lock_event *event)
{
	struct lock_run *run = arg;
	report_event(run, event);
	if (event->type == S3ONCE_LOCK_RECOVERED && run->waits_for_lock && run->child > 0)
		continue_command(run);
	if (ends_command(event) && !run->lost)
		end_command(run);
}

/* Called when the command has stopped. In three cases our process group stops with it, so that
 * the shell sees that, and both go on once the shell continues our group. Our heartbeats stop
 * meanwhile, too.
 * - The command had the terminal. Normally Ctrl-Z has stopped it.
 * - We had the terminal, and on_signal() has passed Ctrl-Z on to the command.
 * - The command wants the terminal (SIGTTIN or SIGTTOU), and we do not have it. If we have it, the
 *   command gets it and goes on at once. */
static void on_stop(struct lock_run *run)
{
	const int signal = WSTOPSIG(run->status);
	/* The terminal is taken back from a command that has stopped, as a shell does. */
	const bool had_terminal = pass_terminal(run->tty, run->child, getpgrp());
	const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
	const bool gets_terminal = wants_terminal && tcgetpgrp(run->tty) == getpgrp();
	const bool is_job_control = had_terminal || wants_terminal || run->ctrl_z;
	if (!is_job_control) /* such as SIGSTOP: its sender also sends SIGCONT */
		return;
	run->ctrl_z = false;
	/* stop_group() returns once the shell has continued our group. If no shell can continue our
	 * group, it returns false at once. Then the command will never get the terminal that it
	 * wants, so it gets SIGHUP. */
	const bool may_go_on = gets_terminal || stop_group();
	if (!may_go_on && wants_terminal)
		signal_command(run, SIGHUP);
	/* The command gets the terminal if we have it: not if the shell has continued our group in
	 * the background. */
	pass_terminal(run->tty, getpgrp(), run->child);
	/* setpgid() changes nothing here, but waits until the stop has reached the whole group of
	 * the command, since it needs the kernel's list of processes, which Linux holds while it
	 * stops a group. A process that the stop reached only after SIGCONT would stay stopped. */
	setpgid(run->child, run->child);
	continue_command(run);
}

/* Handles SIGCHLD: the command has stopped or ended. If waitpid() returns nothing new, SIGCHLD was
 * about another child, or the command was continued. */
static void on_child(struct lock_run *run)
{
	if (waitpid(run->child, &run->status, WNOHANG | WUNTRACED) != run->child)
		return;
	if (WIFSTOPPED(run->status))
		on_stop(run);
	else
		run->child = 0;
}

/* Handles one signal: the command has stopped or ended, or the signal is passed on to it. */
static void on_signal(struct lock_run *run)
{
	bool from_terminal = false;
	const int signal = next_signal(run, &from_terminal);
	if (!signal || run->child <= 0)
		return;
	if (signal == SIGCHLD) {
		on_child(run);
	} else if (signal == SIGCONT) {
		continue_command(run);
	} else {
		run->ctrl_z = from_terminal && signal == SIGTSTP;
		signal_command(run, signal);
		if (asks_to_end(signal)) /* a stopped command would not notice it */
			continue_command(run);
	}
}

/* Whether the command has left processes in its group that have to be ended, which is so only if
 * the lock was lost. Those that have ended are reaped first, since they would count otherwise.
 * EPERM also means that there are processes, of another user. */
static bool rest_is_left(const struct lock_run *run)
{
	if (!run->lost)
		return false;
	while (waitpid(-run->group, NULL, WNOHANG) > 0)
		;
	return kill(-run->group, 0) == 0 || errno == EPERM;
}

/* Returns the timeout for poll(), in ms. -1: none. */
static int poll_timeout_ms(const struct lock_run *run)
{
	if (!run->lost)
		return -1;
	/* The command has ended. The end of the rest of its group sends no signal, so it is checked
	 * every LOOK_MS. */
	if (!run->child)
		return LOOK_MS;
	const uint64_t now_ns = clock_boot_ns();
	return now_ns >= run->kill_ns ? 0 : (int)((run->kill_ns - now_ns) / NS_PER_MS) + 1;
}

/* Waits while the command runs. It passes signals on, stops with the command, and ends the command
 * when the lock is lost. */
static void watch_command(struct lock_run *run)
{
	struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
		{.fd = s3once_locks_event_fd(run->use->locks), .events = POLLIN}};
	/* run->child is 0 once the command has ended. */
	while (run->child > 0 || rest_is_left(run)) {
		const int n = poll(fds, 2, poll_timeout_ms(run));
		if (run->lost && clock_boot_ns() >= run->kill_ns) {
			signal_command(run, SIGKILL);
			if (!run->child) /* the rest of its group was killed, and is not waited for
					  */
				break;
			/* The command is killed once more if it has not ended in a second. */
			run->kill_ns += NS_PER_S;
		}
		if (n > 0 && fds[1].revents)
			s3once_locks_next_event(run->use->locks, on_event, run);
		if (n > 0 && fds[0].revents)
			on_signal(run);
	}
}

/* Returns the exit code that a shell gives to a command of this status. */
static int code_of_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : S3ONCE_EXIT_STOPPED + WTERMSIG(status);
}

/* Called after a signal has ended the command. Passes an interrupt of the terminal, which only the
 * command got, on to our process group, and sets run->die_by if this process has to end by it. */
static void share_interrupt(struct lock_run *run, bool had_terminal)
{
	const int signal = WTERMSIG(run->status);
	/* The command had the terminal, so Ctrl-C has sent the signal to the group of the command
	 * alone. Our group gets the same signal now. This process has blocked it, and ends by it in
	 * run_command(). */
	const bool is_ctrl_c = had_terminal && is_interrupt(signal);
	if (is_ctrl_c)
		kill(0, signal);
	run->die_by = (is_ctrl_c || signal == run->interrupt) ? signal : 0;
}

/* Releases the lock after the command has ended, and takes the terminal back. Returns the exit
 * code, which is that of the command unless the lock was lost while it ran. Any other failure of
 * the release is only a warning, since the lease runs out by itself. */
static int release_lock_of_run(struct lock_run *run)
{
	/* An event that watch_command() has not seen may say that the lock is lost. */
	while (s3once_locks_next_event(run->use->locks, on_event, run) == 1)
		;
	const bool had_terminal = pass_terminal(run->tty, run->group, getpgrp());
	const int r = s3once_lock_release(run->lock, &run->use->error);
	if (r == -ESTALE || run->lost) {
		if (!run->lost) { /* otherwise on_event() has reported it */
			log_error("lock run: %s", run->use->error.text);
			print_run(run, "lost", run->use->error.text);
		}
		return S3ONCE_EXIT_FENCED;
	}
	if (r)
		log_warning(
			"lock run: not released, it runs out by itself: %s", run->use->error.text);
	if (WIFSIGNALED(run->status))
		share_interrupt(run, had_terminal);
	run->use->command_status = code_of_status(run->status);
	return run->use->command_status;
}

/* time for releasing a lock that was acquired just as the wait ended */
#define RELEASE_MAX_MS 10000
#define NO_DESCRIPTORS "out of descriptors: raise ulimit -n"

/* The thread that waits for the lock. */
static void acquire_thread(void *arg)
{
	struct lock_run *run = arg;
	run->acquired = s3once_lock_acquire(
		run->use->locks, &run->use->request, &run->lock, &run->use->error);
	eventfd_write(run->acquired_fd, 1);
}

/* Waits for the lock in a thread, so that a signal can end the wait. Returns S3ONCE_EXIT_OK once
 * run->lock is held, or else the exit code. An error is printed, and a signal is not. If Ctrl-C or
 * Ctrl-\ ended the wait, run->die_by is set. A signal that is meant for the command, such as
 * SIGUSR1, is dropped: there is no command yet. */
static int wait_for_lock(struct lock_run *run)
{
	uv_thread_t thread;
	int signal = 0;
	bool from_terminal = false;
	run->acquired_fd = eventfd(0, EFD_CLOEXEC);
	if (run->acquired_fd < 0 || thread_start(&thread, acquire_thread, run)) {
		log_error(
			"lock run: %s", run->acquired_fd < 0 ? NO_DESCRIPTORS : PROBLEM_NO_THREAD);
		return S3ONCE_EXIT_SETUP;
	}
	struct pollfd fds[] = {
		{.fd = run->acquired_fd, .events = POLLIN}, {.fd = run->signals, .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0) /* it was interrupted */
			continue;
		if (fds[0].revents) /* the thread has ended */
			break;
		const int got = next_signal(run, &from_terminal);
		if (asks_to_end(got)) {
			signal = got;
			run->die_by = got == run->interrupt ? got : 0;
			/* Ends the wait of the thread. If the lock was acquired just now, this
			 * releases it. */
			s3once_locks_close(run->use->locks, 0, RELEASE_MAX_MS, NULL);
		} else if (got == SIGTSTP && from_terminal) { /* Ctrl-Z was for our whole group */
			stop_group();
		} else if (got == SIGTSTP) {
			/* The signal was sent to this process alone, which has blocked it. */
			kill(getpid(), SIGSTOP);
		}
	}
	uv_thread_join(&thread);
	close(run->acquired_fd);
	return signal ? S3ONCE_EXIT_STOPPED + signal : lock_report_result(run->use, run->acquired);
}

/* Waits for the lock, runs the command, and releases the lock. Returns the exit code. */
static int run_with_lock(struct lock_run *run)
{
	const int code = wait_for_lock(run);
	if (code)
		return code;
	print_run(run, "acquired", "");
	/* Normally this line comes before those of the command. */
	output_await_reader(&run->use->frame->output, AWAIT_MS);
	const int error =
		start_child(run->command, run->lock, &run->old_mask, &run->child, &run->hold);
	if (error) {
		log_error("lock run: cannot start a process: %s", strerror(-error));
		s3once_lock_release(run->lock, &run->use->error);
		return S3ONCE_EXIT_SETUP;
	}
	run->group = run->child;
	watch_command(run);
	return release_lock_of_run(run);
}

/* Returns the COMMAND of the operands. NULL: there is none, or the "--" before it is missing, which
 * was reported. Without "--" the first word of a command whose KEY was forgotten would be the
 * key. */
static char **find_command(const struct lock_use *use)
{
	char **operands = use->operands;
	/* In "lock run -- KEY -- COMMAND", the second "--" is an operand. */
	const bool has_dashes_before_key = strcmp(operands[1], "--") == 0;
	char **command = operands + (has_dashes_before_key ? 2 : 1);
	if (!has_dashes_before_key && use->frame->before_dashes != 1) {
		log_error("lock run: one KEY stands before -- and the command after it: "
			  "s3once lock run KEY -- COMMAND...");
		return NULL;
	}
	if (!*command) {
		log_error("lock run: no command after --");
		return NULL;
	}
	return command;
}

/* The signals that are passed on to the command. */
static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/* Lets the signals that run_with_lock() handles come by a descriptor, which is returned; negative:
 * there is none. *ret_old_mask is the signal mask so far. */
static int take_signals(sigset_t *ret_old_mask)
{
	sigset_t taken;
	struct sigaction now;
	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		/* A signal that is ignored, by nohup or by a shell for a background job, stays
		 * ignored. */
		if (sigaction(forwarded[i], NULL, &now) || now.sa_handler != SIG_IGN)
			sigaddset(&taken, forwarded[i]);
	sigprocmask(SIG_BLOCK, &taken, ret_old_mask);
	return signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* `lock run`. Returns the exit code, or ends this process by the signal that ended the command. */
static int run_command(struct lock_use *use)
{
	char **command = find_command(use);
	if (!command)
		return S3ONCE_EXIT_USAGE;
	struct lock_run run = {.use = use,
		.command = command,
		.hold = -1,
		.tty = open("/dev/tty", O_RDWR | O_CLOEXEC)};
	/* A thread prints, since a reader that hangs must not keep us from ending the command, or
	 * from being ended by a signal. */
	output_init(&use->frame->output,
		&(struct output_options){.stall_ms = STALL_MS, .end_ms = END_MS});
	run.signals = take_signals(&run.old_mask);
	int code = S3ONCE_EXIT_SETUP;
	if (run.signals < 0)
		log_error("lock run: " NO_DESCRIPTORS);
	else
		code = lock_open(use);
	if (!code)
		code = run_with_lock(&run);
	s3once_locks_free(use->locks);
	if (run.die_by) { /* a shell ends its script only if a signal has ended the command */
		output_finish(&use->frame->output); /* frame_end() is not reached */
		kill(getpid(), run.die_by);
		sigprocmask(
			SIG_SETMASK, &run.old_mask, NULL); /* here the signal ends this process */
	}
	return code; /* all descriptors are closed as the process ends */
}

#define FIELD(name) offsetof(struct lock_use, name)
static const struct option own[] = {
	VALUE("kill-after", DURATION, FIELD(kill_after_ms), "DUR",
		"from SIGTERM, when the lock is lost, to SIGKILL [5s]", .min = 1,
		.max = 24 * 3600 * 1000),
	{NULL},
};

const struct lock_command lock_run_command = {
	.command.name = "lock run",
	.description = "run a command while holding a lock",
	.command.operands = "KEY -- COMMAND...",
	.command.about =
		"Waits for the lock, runs the command, releases the lock; exits as the command\n"
		"did. If the lock is lost, the command is terminated. It finds in its\n"
		"environment S3ONCE_LOCK_KEY, S3ONCE_LOCK_TOKEN (the fencing token) and\n"
		"S3ONCE_LOCK_FD, a descriptor that reads end of file once the lock is lost.\n",
	.command.examples =
		"  s3once lock init --locks dynamodb:locks\n"
		"  s3once lock run --locks dynamodb:locks nightly -- backup --all\n"
		"  s3once lock run --locks dynamodb:locks --wait 10m deploy -- ./deploy.sh\n\n"
		"Exit codes: the command's own (128 + N: ended by signal N; 126, 127: it cannot\n"
		"be started); 123 lost; 124 held by another; 125 usage or service.\n",
	.command.groups = (const struct option_group[]){{"Lock", lock_wait_options},
		{NULL, lock_key_options}, {NULL, own}, LOCK_GROUPS},
	.command.shares = LOCK_SHARES,
	.command.takes = {2},
	.run = run_command,
};
