/* A command that runs under a lock: its signals, its terminal, its end. */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/lock/lock_run.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER_MS 5000
#define LOOK_MS       20

static bool is_interrupt(int signal)
{
	return signal == SIGINT || signal == SIGQUIT;
}

int lock_run_signal(struct lock_run *run, bool *ret_key)
{
	struct signalfd_siginfo info;
	if (read(run->signals, &info, sizeof info) != sizeof info)
		return 0;
	*ret_key = info.ssi_code == SI_KERNEL;
	if (*ret_key && is_interrupt((int)info.ssi_signo))
		run->interrupt = (int)info.ssi_signo;
	return (int)info.ssi_signo;
}

bool lock_run_ends_by(int signal)
{
	return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

void lock_run_tell(const struct lock_run *run, const char *event, const char *text)
{
	if (!run->options->json)
		return;
	json_t *object = json_event(event);
	json_set_bytes(object, "key", run->key);
	json_set_bytes(object, "text", text);
	lock_print(object);
}

static void signal_command(const struct lock_run *run, int signal)
{
	if (kill(-run->group, signal) && errno == EPERM && run->lost && !run->kill_ns)
		log_error("lock run: the command cannot be ended: process %d runs as another user",
			(int)run->group);
}

/* Of a lock that may be lost it goes on only to be ended. */
static void go_on(struct lock_run *run)
{
	run->waits = !s3once_lock_remaining_ms(run->lock);
	if (!run->waits)
		signal_command(run, SIGCONT);
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
	struct lock_run *run = arg;
	struct text text = TEXT(1000);
	text_add_escaped_string(&text, event->text);
	if (*event->owner) {
		text_add(&text, "; the holder is now ");
		text_add_escaped_string(&text, event->owner);
	}
	log_warning("lock run: %s: %s", names[event->type], text_string(&text));
	lock_run_tell(run, names[event->type], text_string(&text));
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
		signal_command(run, SIGTERM), signal_command(run, SIGCONT);
	const uint64_t ms =
		run->options->kill_after_ms ? run->options->kill_after_ms : KILL_AFTER_MS;
	run->kill_ns = clock_boot_ns() + ms * NS_PER_MS;
}

/* Stopped from the terminal, or for want of it: so are we, for the shell to see, and heartbeats
 * stop as well. What asks for the terminal while it is ours gets it. */
static void on_stop(struct lock_run *run)
{
	const int by = WSTOPSIG(run->status);
	const bool had = lock_terminal_pass(run->tty, run->child, getpgrp());
	const bool asks = by == SIGTTIN || by == SIGTTOU,
		   is_ours = tcgetpgrp(run->tty) == getpgrp();
	if (!had && !asks && !run->ctrl_z)
		return;
	run->ctrl_z = false;
	if (!(asks && is_ours) && !lock_terminal_stop() && asks)
		signal_command(run, SIGHUP); /* nobody will ever give it what it waits for */
	lock_terminal_pass(run->tty, getpgrp(), run->child);
	/* Changes nothing, but returns only when the stop has reached the whole group: Linux holds
	 * its list of processes meanwhile. What it reached after SIGCONT would stay stopped. */
	setpgid(run->child, run->child);
	go_on(run);
}

static void on_child(struct lock_run *run)
{
	if (run->child <= 0 || waitpid(run->child, &run->status, WNOHANG | WUNTRACED) != run->child)
		return;
	if (WIFSTOPPED(run->status))
		on_stop(run);
	else
		run->child = 0;
}

static void on_signal(struct lock_run *run)
{
	bool by_key = false;
	const int signal = lock_run_signal(run, &by_key);
	if (signal == SIGCHLD) {
		on_child(run);
	} else if (run->child > 0 && signal == SIGCONT) {
		go_on(run);
	} else if (run->child > 0 && signal) {
		run->ctrl_z = by_key && signal == SIGTSTP;
		signal_command(run, signal);
		if (lock_run_ends_by(signal)) /* one that is stopped would not notice */
			go_on(run);
	}
}

/* Something of a command that had to end is left, and may still be ending. */
static bool is_ending(const struct lock_run *run)
{
	return run->lost && (!kill(-run->group, 0) || errno == EPERM);
}

static int left_ms(const struct lock_run *run)
{
	if (!run->kill_ns)
		return -1;
	if (!run->child)
		return LOOK_MS;
	const uint64_t now_ns = clock_boot_ns();
	return now_ns >= run->kill_ns ? 0 : (int)((run->kill_ns - now_ns) / NS_PER_MS) + 1;
}

void lock_run_watch(struct lock_run *run)
{
	struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
		{.fd = s3once_locks_event_fd(run->locks), .events = POLLIN}};
	while (run->child > 0 || is_ending(run)) {
		int n = poll(fds, 2, left_ms(run));
		if (run->kill_ns && clock_boot_ns() >= run->kill_ns) {
			signal_command(run, SIGKILL);
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

int lock_run_finish(struct lock_run *run)
{
	while (s3once_locks_next_event(run->locks, on_event, run) == 1)
		;
	const bool had = lock_terminal_pass(run->tty, run->group, getpgrp());
	int r = s3once_lock_release(run->lock, &run->error);
	if (r == -ESTALE || run->lost) {
		if (!run->lost) {
			log_error("lock run: %s", run->error.text);
			lock_run_tell(run, "lost", run->error.text);
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
