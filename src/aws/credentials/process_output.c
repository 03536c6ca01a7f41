#include "aws/credentials/process_output.h"
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE_MS 50

extern char **environ;

struct run {
	struct process_output *output;
	pid_t pid;
	struct pollfd pipes[2]; /* of its output and its errors; fd -1 at the end */
	bool ended;
};

/* The keeper's signal mask and our ignored SIGPIPE are not the program's. */
static int spawn(char *const *argv, const int writes[2], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, writes[0], 1);
	posix_spawn_file_actions_adddup2(&actions, writes[1], 2);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int error = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

static int start(char *const *argv, struct run *run)
{
	int out[2], err[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(err, O_CLOEXEC) < 0) {
		int error = -errno;
		close(out[0]);
		close(out[1]);
		return error;
	}
	int error = spawn(argv, (int[2]){out[1], err[1]}, &run->pid);
	close(out[1]);
	close(err[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	run->pipes[0] = (struct pollfd){.fd = out[0], .events = POLLIN};
	run->pipes[1] = (struct pollfd){.fd = err[0], .events = POLLIN};
	return error;
}

static void close_pipe(struct pollfd *pipe)
{
	close(pipe->fd);
	pipe->fd = -1;
}

/* Takes what there is; 0 or -EMSGSIZE. */
static int drain(struct run *run, int i)
{
	struct text *text = i ? &run->output->err : &run->output->out;
	char buf[4096];
	ssize_t n = 0;
	while (run->pipes[i].fd >= 0 && (n = read(run->pipes[i].fd, buf, sizeof(buf))) > 0)
		text_add_bytes(text, buf, (size_t)n);
	if (run->pipes[i].fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
		close_pipe(&run->pipes[i]);
	OPENSSL_cleanse(buf, sizeof(buf));
	return i == 0 ? text->error : 0;
}

/* Where children are not waited for (SIGCHLD ignored), how it ended is unknown: taken as well. */
static void reap(struct run *run, int flags)
{
	pid_t got = run->ended ? 0 : waitpid(run->pid, &run->output->status, flags);
	if (got == run->pid || (got < 0 && errno == ECHILD))
		run->ended = true;
}

static int step(struct run *run, uint64_t deadline_ns, const atomic_bool *stopped)
{
	if (atomic_load(stopped))
		return -ECANCELED;
	if (clock_boot_ns() >= deadline_ns)
		return -ETIMEDOUT;
	poll(run->pipes, 2, SLICE_MS);
	/* Before the last look at the pipes: what it left to run may keep them open. */
	reap(run, WNOHANG);
	int error = drain(run, 0);
	drain(run, 1);
	return error;
}

int process_output(char *const *argv, uint64_t deadline_ns, const atomic_bool *stopped,
	struct process_output *ret)
{
	struct run run = {.output = ret};
	int error = start(argv, &run);
	if (error == 0) {
		while (error == 0 && !run.ended)
			error = step(&run, deadline_ns, stopped);
		if (!run.ended)
			kill(run.pid, SIGKILL);
		while (!run.ended)
			reap(&run, 0);
	}
	for (int i = 0; i < 2; i++)
		if (run.pipes[i].fd > 0)
			close_pipe(&run.pipes[i]);
	return error;
}
