/* Reads standard input for the library, or the output of a command that is started when its output
 * is wanted. push_command.c owns the input, and push_options.c hands it to the run. A command has a
 * session of its own, so that it never waits for a terminal, and all that it has started ends with
 * it when the run is stopped. */
#include "cli/push/pipe_input.h"
#include "base/log.h"
#include "base/problem.h"
#include "cli/child.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS    500 /* for input; s3once_read has to return within a second */
#define LOOK_MS    20  /* between two checks whether the command has ended */
#define PIPE_BYTES (1 << 20)

/* Starts the command, whose output input->fd becomes. Returns 0 or -errno. */
static int start_command(struct pipe_input *input)
{
	int ends[2]; /* the first one is read here, and the second one is the command's output */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	const struct child_options options = {.command = input->command,
		.mask = &input->mask,
		.fds = {{ends[1], STDOUT_FILENO}},
		.n_fds = 1,
		.has_session = true};
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* fewer switches, where it is allowed */
	const int error = child_start(&options, &input->process);
	close(ends[1]);
	if (error)
		close(ends[0]);
	else
		input->fd = ends[0];
	return error;
}

/* Makes input->fd standard input, or the output of the command, which is started now. Returns 0, or
 * -errno with a sentence. */
static int open_input(struct pipe_input *input, char *ret_text, size_t size)
{
	input->has_begun = true;
	input->fd = input->command ? -1 : STDIN_FILENO;
	const int error = input->command ? start_command(input) : 0;
	if (error)
		snprintf(ret_text, size, "no process can be started for it: %s", strerror(-error));
	return error;
}

/* Returns 0 if this status of a command, as waitpid() returns it, is exit status 0. Otherwise
 * returns -ECHILD with a sentence. */
static long judge_status(const struct pipe_input *input, int status, char *ret_text, size_t size)
{
	char how[100];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		snprintf(how, sizeof how, "ended with exit status %d", WEXITSTATUS(status));
	else
		snprintf(how, sizeof how, "was ended by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	snprintf(ret_text, size, "%s, after %" PRIu64 " bytes of output; nothing of it is in S3",
		how, input->bytes);
	return -ECHILD;
}

/* Judges an input that was read to its end. Returns 0 if the command has ended well, or there is
 * none; -EAGAIN if it still runs, after a short sleep; or -ECHILD with a sentence if it has not
 * ended well. */
static long judge_end(struct pipe_input *input, char *ret_text, size_t size)
{
	int status = 0;
	if (!input->process)
		return 0;
	const pid_t got = waitpid(input->process, &status, WNOHANG);
	if (got == 0 || (got < 0 && errno == EINTR)) {
		poll(NULL, 0, LOOK_MS); /* sleeps, since the caller asks again at once */
		return -EAGAIN;
	}
	input->process = 0;
	if (got < 0) {
		snprintf(ret_text, size,
			"ended, and nobody can say how (%s); nothing of it is in S3",
			strerror(errno));
		return -ECHILD;
	}
	return judge_status(input, status, ret_text, size);
}

/* Ends a command that has not ended by itself, since the run is stopped, or its output cannot be
 * read or kept. */
static void end_command(struct pipe_input *input)
{
	if (!input->process)
		return;
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
	if (!child_end(input->process))
		log_warning("%s does not end (process %d): it belongs to another user, or the "
			    "kernel holds it; nothing of its output is in S3",
			quote(input->command[0]).text, (int)input->process);
	input->process = 0;
}

long pipe_input_read(void *arg, void *buffer, size_t n, char *ret_text, size_t size)
{
	struct pipe_input *input = arg;
	if (!n) { /* the run wants nothing more, and ignores the result */
		end_command(input);
		return 0;
	}
	/* open_input() may return -EAGAIN, which would mean "try again" here. */
	if (!input->has_begun && open_input(input, ret_text, size))
		return -ECHILD;
	if (input->fd < 0) /* the end was read by an earlier call */
		return judge_end(input, ret_text, size);
	struct pollfd wait = {.fd = input->fd, .events = POLLIN};
	if (poll(&wait, 1, WAIT_MS) <= 0)
		return -EAGAIN;
	const ssize_t got = read(input->fd, buffer, n);
	if (got > 0) {
		input->bytes += (uint64_t)got;
		return got;
	}
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return -EAGAIN;
	if (got < 0) {
		snprintf(ret_text, size, "cannot be read: %s", strerror(errno));
		end_command(input);
		return -EIO;
	}
	if (input->command) /* standard input stays open */
		close(input->fd);
	input->fd = -1;
	return judge_end(input, ret_text, size);
}
