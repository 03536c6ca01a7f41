/* Loads credentials that a program prints (credential_process): splits the command line as a shell
 * does, runs the program, and reads its output. Source: "Process credential provider" of the AWS
 * SDKs and Tools Reference Guide. */
#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include "base/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPACE " \t\r\n"

/* Copies the word at s to `to`, without its quotes and with a NUL, and sets *ret_end after the NUL.
 * Returns the rest of s after the word, or NULL with *ret_why. A backslash takes the next character
 * as it is. In "..." it does so only before a double quote or a backslash, and in '...' never. */
static const char *copy_word(const char *s, char *to, char **ret_end, const char **ret_why)
{
	char quotation = 0; /* the quote character that is open, or 0 */
	for (; *s && (quotation || !strchr(SPACE, *s)); s++) {
		if (*s == quotation) {
			quotation = 0;
		} else if (!quotation && (*s == '\'' || *s == '"')) {
			quotation = *s;
		} else {
			const bool escapes =
				*s == '\\' &&
				(!quotation || (quotation == '"' && (s[1] == '"' || s[1] == '\\')));
			s += escapes;
			if (!*s) {
				*ret_why = "it ends in a backslash";
				return NULL;
			}
			*to++ = *s;
		}
	}
	*to++ = 0;
	*ret_end = to;
	*ret_why = quotation ? "a quotation does not end" : NULL;
	return quotation ? NULL : s;
}

int shell_words(const char *line, char ***ret, const char **ret_why)
{
	/* Room for the pointers and their NULL, since at most every second character begins a word,
	 * and after them for the strings. Each string is no longer than its word in the line. */
	size_t max_words = strlen(line) / 2 + 2, bytes = strlen(line) + 2;
	char **words = malloc(max_words * sizeof *words + bytes);
	if (!words)
		return -ENOMEM;
	char *to = (char *)(words + max_words);
	size_t n = 0;
	for (const char *s = line + strspn(line, SPACE); *s; s += strspn(s, SPACE)) {
		words[n++] = to;
		s = copy_word(s, to, &to, ret_why);
		if (!s) {
			free(words);
			return -EINVAL;
		}
	}
	words[n] = NULL;
	*ret = words;
	return 0;
}

/* The pipes of a program: its standard output and error, and the errno with which it could not be
 * started. The first two are the indices of process_run.pipes, too. */
enum { PIPE_OUT, PIPE_ERR, PIPE_FAILURE, PIPES };

#define SLICE_MS   50 /* the longest time between two checks whether the program has ended */
#define PIPE_BYTES (64U << 10) /* the capacity of a pipe: pipe(7) */

struct process_run {
	struct process_output *output;
	pid_t pid;
	struct pollfd pipes[2]; /* its standard output and error; fd is -1 after the end */
	bool ended;             /* its exit status is known, or cannot be known */
};

/* Restores the default action of signals in the child, so that no handler of ours runs there.
 * Signals that were ignored before stay ignored, except SIGPIPE and SIGXFSZ, which only we ignore.
 */
static void reset_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;
		const bool is_ours = number == SIGPIPE || number == SIGXFSZ;
		if (!sigaction(number, NULL, &action) && (is_ours || action.sa_handler != SIG_IGN))
			signal(number, SIG_DFL);
	}
	thread_mask_signals(SIG_SETMASK, &none, NULL);
}

/* Makes fd the program's descriptor number `wanted`, which has to stay open over exec. dup2() takes
 * care of that, but does nothing if fd has that number already. */
static bool place_pipe(int fd, int wanted)
{
	return fd == wanted ? !fcntl(fd, F_SETFD, 0) : dup2(fd, wanted) == wanted;
}

/* Becomes the program, in the child. `writes` are the pipes for its standard output and error.
 * Calls only functions that are safe between fork and exec, since another thread may hold any lock.
 * If it fails, it writes errno into the pipe `failure`, which exec closes, and exits with 127 as a
 * shell does; 126 says that errno could not be written. */
__attribute__((noreturn)) static void exec_program(
	char *const *argv, const int writes[2], const struct rlimit *files, int failure)
{
	reset_signals();
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const bool ready = null >= 0 && place_pipe(null, 0) && place_pipe(writes[0], 1) &&
			   place_pipe(writes[1], 2) && !setrlimit(RLIMIT_NOFILE, files);
	if (ready)
		execvp(argv[0], argv);
	const int error = errno;
	const ssize_t written = write(failure, &error, sizeof error);
	_exit(written == sizeof error ? 127 : 126);
}

/* Starts the program, with the usual soft limit of 1,024 descriptors. Programs that use select(2),
 * or close every descriptor that they may have, want that limit.
 *
 * It calls fork(), since uv_spawn() and posix_spawn() cannot lower the limit of the child alone,
 * and our own limit is that of all threads. Besides, uv_spawn() would take SIGCHLD from a program
 * that uses the library, and would restore the default action of signals that nohup has had
 * ignored.
 *
 * Returns 0, or -errno if the program could not be started. The caller closes run->pipes in any
 * case. */
static int start_process(char *const *argv, struct process_run *run)
{
	/* 1,024 is the most that select(2) can take. */
	struct rlimit files = {FD_SETSIZE, FD_SETSIZE};
	int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, error = 0; /* reading end first */
	sigset_t all, before;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur > FD_SETSIZE)
		files.rlim_cur = FD_SETSIZE;
	for (int i = 0; i < PIPES && !error; i++)
		error = pipe2(pipes[i], O_CLOEXEC) < 0 ? errno : 0;
	if (!error) {
		sigfillset(&all); /* no handler of ours may run in the child */
		thread_mask_signals(SIG_SETMASK, &all, &before);
		run->pid = fork();
		if (run->pid == 0)
			exec_program(argv, (int[2]){pipes[PIPE_OUT][1], pipes[PIPE_ERR][1]}, &files,
				pipes[PIPE_FAILURE][1]);
		error = run->pid < 0 ? errno : 0;
		thread_mask_signals(SIG_SETMASK, &before, NULL);
	}
	/* A pipe that could not be made has -1, which close() and fcntl() refuse. */
	for (int i = 0; i < PIPES; i++)
		close(pipes[i][1]);
	/* PIPE_FAILURE ends without a byte when the program begins, since exec closes it. With
	 * bytes, the child could not become the program, and has ended. */
	if (!error && read(pipes[PIPE_FAILURE][0], &error, sizeof error) > 0)
		waitpid(run->pid, NULL, 0);
	close(pipes[PIPE_FAILURE][0]);
	for (int i = 0; i < 2; i++) {
		fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
		run->pipes[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
	}
	return -error;
}

/* Reads the bytes that are now in a pipe into its text, and closes the pipe at its end. A program
 * may write as fast as this reads, so it reads no more than a pipe holds: the caller has a deadline
 * to check. Returns 0, or -EMSGSIZE or -ENOMEM if the text of standard output is too small. Excess
 * standard error is dropped. */
static int drain_pipe(struct process_run *run, int i)
{
	struct pollfd *pipe = &run->pipes[i];
	struct text *text = i == PIPE_OUT ? &run->output->out : &run->output->err;
	char buf[4096];
	ssize_t n;
	if (pipe->fd < 0) /* closed by an earlier call */
		return 0;
	size_t got = 0;
	do {
		n = read(pipe->fd, buf, sizeof buf);
		if (n > 0) {
			const size_t room = text->max - text->len;
			const bool is_excess = i == PIPE_ERR && (size_t)n > room;
			text_add_bytes(text, buf, is_excess ? room : (size_t)n);
			got += (size_t)n;
		}
	} while (n > 0 && got < PIPE_BYTES);
	const bool is_at_end = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (is_at_end) {
		close(pipe->fd);
		pipe->fd = -1;
	}
	OPENSSL_cleanse(buf, sizeof buf);
	return i == PIPE_OUT ? text->error : 0;
}

/* Notes whether the program has ended, or waits for that if flags is 0. If SIGCHLD is ignored, the
 * exit status is not known, and stays 0, which means success. */
static void reap(struct process_run *run, int flags)
{
	pid_t got = run->ended ? 0 : waitpid(run->pid, &run->output->status, flags);
	if (got == run->pid || (got < 0 && errno == ECHILD))
		run->ended = true;
}

int process_output(char *const *argv, uint64_t deadline_ns, const atomic_bool *stopped,
	struct process_output *ret)
{
	struct process_run run = {.output = ret};
	int error = start_process(argv, &run);
	bool has_started = error == 0;
	while (error == 0 && !run.ended) {
		if (atomic_load(stopped))
			error = -ECANCELED;
		else if (clock_boot_ns() >= deadline_ns)
			error = -ETIMEDOUT;
		if (error)
			break;
		poll(run.pipes, 2, SLICE_MS);
		/* Asks whether the program has ended before it reads the pipes, so that the last
		 * output is read. The end of the pipes shows nothing: processes that the program
		 * leaves behind may keep them open. */
		reap(&run, WNOHANG);
		error = drain_pipe(&run, PIPE_OUT);
		drain_pipe(&run, PIPE_ERR);
	}
	if (has_started && !run.ended)
		kill(run.pid, SIGKILL);
	while (has_started && !run.ended)
		reap(&run, 0);
	for (int i = 0; i < 2; i++)
		if (run.pipes[i].fd >= 0)
			close(run.pipes[i].fd);
	return error;
}

#define OUTPUT_MAX_BYTES (64U << 10)
#define ERRORS_MAX_BYTES 1024
#define DEADLINE_S       60

/* Takes the credentials out of the program's output, if it ended well. Returns 0, or -errno with a
 * sentence. */
static int read_output(
	const struct process_output *output, struct credentials *ret, struct problem *ret_problem)
{
	const int status = output->status;
	/* The first line of the program's standard error. */
	const char *errors = text_string(&output->err);
	struct quoted complaint = quote_bytes(errors, strcspn(errors, "\n"));
	json_t *object = json_load_secret(&output->out);
	int error = status ? -ECHILD : -EBADMSG;
	if (WIFSIGNALED(status))
		problem_set(ret_problem, "it was ended by signal %d", WTERMSIG(status));
	else if (status)
		problem_set(ret_problem, "it ended with status %d%s%s", WEXITSTATUS(status),
			complaint.text[0] ? " and said: " : "", complaint.text);
	else if (!object)
		problem_set(ret_problem, "it printed something other than a JSON object");
	else if (json_integer_value(json_object_get(object, "Version")) != 1)
		problem_set(ret_problem, "it printed a Version other than 1");
	else
		error = credentials_from_json(object, FORM_PROGRAM, ret, ret_problem);
	json_free_secret(object);
	return error;
}

static int run_credential_process(char *const *argv, const atomic_bool *stopped,
	struct credentials *ret, struct problem *ret_problem)
{
	struct process_output output = {
		.out = TEXT(OUTPUT_MAX_BYTES), .err = TEXT(ERRORS_MAX_BYTES)};
	int error = process_output(argv, clock_boot_ns() + DEADLINE_S * NS_PER_S, stopped, &output);
	if (error == 0)
		error = read_output(&output, ret, ret_problem);
	else if (error == -ETIMEDOUT)
		problem_set(ret_problem, "it did not end within %d s", DEADLINE_S);
	else if (error == -EMSGSIZE)
		problem_set(ret_problem, "it printed more than %u bytes", OUTPUT_MAX_BYTES);
	else if (error == -ECANCELED)
		problem_set(ret_problem, "it was stopped");
	else
		problem_set(ret_problem, "it cannot be run: %s", strerror(-error));
	if (error)
		problem_prefix(ret_problem, "credential_process %s", quote(argv[0]).text);
	text_wipe(&output.out);
	text_wipe(&output.err);
	/* -ENODATA would make the next way be tried, and hide this error. */
	return error == -ENODATA ? -ENOENT : error;
}

int credentials_process(
	const struct profile_source *source, struct credentials *ret, struct problem *ret_problem)
{
	const char *line = profile_get(&source->profile, "credential_process"), *why = NULL;
	char **argv = NULL;
	int error = line ? shell_words(line, &argv, &why) : -ENODATA;
	if (error == -EINVAL)
		problem_set(ret_problem, "credential_process of profile %s: %s",
			quote(source->profile.name).text, why);
	else if (error == 0) /* A line of white space counts as not set. */
		error = argv[0] ? run_credential_process(
					  argv, &source->loader->stopped, ret, ret_problem)
				: -ENODATA;
	free(argv);
	return error;
}
