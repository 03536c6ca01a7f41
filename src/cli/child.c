/* Preparation of the process before main.c chooses a command: startup_prepare() sets limits,
 * ignored signals and standard descriptors.
 *
 * This file also starts commands. A command ends with this process, and finds the limits and
 * signals as they were before. lock_run.c, pipe_input.c and notifier.c start one command each, and
 * wait for it. */
#include "cli/child.h"
#include "base/clock.h"
#include "base/must_have.h"
#include "base/problem.h"
#include "s3once/push.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER_MS   5000 /* from SIGTERM to SIGKILL */
#define KILLED_AFTER_MS 1000 /* how long the end may take after SIGKILL */
#define CHECK_MS        20   /* the time between two checks whether the command has ended */

/* The state before startup_prepare(): soft limits, whether signals were ignored, and the
 * descriptors that a command inherits from the parent of this process. */
static struct {
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz; /* 0 or 1 */
	bool descriptors[FD_SETSIZE];   /* descriptors with higher numbers are not passed on */
} inherited;

/* Sets the soft limit, at most to the hard one. Returns the former one, or 0 if it cannot be
 * read. */
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

/* Calls the function with each descriptor of this process. */
static void visit_descriptors(void (*visit)(int fd))
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		if (*entry->d_name != '.')
			visit(atoi(entry->d_name));
	if (folder)
		closedir(folder);
}

/* Notes whether commands may inherit the descriptor. */
static void note_descriptor(int fd)
{
	if (fd < FD_SETSIZE)
		inherited.descriptors[fd] = !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Hides the descriptor from commands, unless this process was started with it. libcurl does not set
 * close-on-exec on all of its own. */
static void hide_descriptor(int fd)
{
	if (fd >= FD_SETSIZE || !inherited.descriptors[fd])
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Opens closed standard descriptors as /dev/null, so that no file that is opened later becomes one
 * of them. Standard input is opened for writing only, and standard output for reading only: their
 * use fails as if they were closed, for this process and its commands. So a closed input is not
 * taken for an empty list of files, nor a result without a reader for a delivered one. Messages to
 * a closed standard error are discarded. */
static void open_standard_descriptors(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
	for (int fd = 0; fd <= 2; fd++) {
		const bool is_closed = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
		if (!is_closed)
			continue;
		/* open() returns the lowest free descriptor, which is this one. */
		if (open("/dev/null", modes[fd]) != fd) {
			dprintf(STDERR_FILENO,
				"s3once: error: standard input, output or error is closed, and "
				"/dev/null cannot stand for it: %s\n",
				strerror(errno));
			_exit(S3ONCE_EXIT_SETUP);
		}
	}
}

void startup_prepare(void)
{
	open_standard_descriptors();
	visit_descriptors(note_descriptor);
	inherited.core = set_soft_limit(RLIMIT_CORE, 0);
	inherited.files = set_soft_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	inherited.ignored_pipe = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	inherited.ignored_xfsz = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
}

bool pass_terminal(int tty, pid_t from, pid_t to)
{
	if (tcgetpgrp(tty) != from)
		return false;
	/* tcsetpgrp() sends SIGTTOU to a process in the background, which would stop us. */
	void (*before)(int) = signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(tty, to);
	signal(SIGTTOU, before);
	return true;
}

/* Returns the words of `s3once lock child PARENT INHERITED NAME=value… -- COMMAND…`, ended by NULL.
 * `parent` and `state` are PARENT and INHERITED. The caller frees the list, which borrows the
 * words. */
static char **words_of_child(const struct child_options *options, char *parent, char *state)
{
	/* Arrays instead of literals, since argv is not const. */
	static char program[] = "s3once", lock[] = "lock", child[] = "child", dashes[] = "--";
	char *const first[] = {program, lock, child, parent, state};
	const size_t n_first = sizeof first / sizeof *first;
	size_t n_command = 0, n_variables = 0;
	while (options->command[n_command])
		n_command++;
	while (options->variables && options->variables[n_variables])
		n_variables++;
	/* "--" and the NULL at the end are two more. */
	char **words = must_have(calloc(n_first + n_variables + n_command + 2, sizeof *words));
	char **at = words;
	for (size_t i = 0; i < n_first; i++)
		*at++ = first[i];
	for (size_t i = 0; i < n_variables; i++)
		*at++ = options->variables[i];
	*at++ = dashes;
	for (size_t i = 0; i < n_command; i++)
		*at++ = options->command[i];
	return words;
}

/* Starts s3once itself as `s3once lock child`, which child_main() turns into the command.
 *
 * uv_spawn() cannot do this, for two reasons. The command of a lock needs a process group of its
 * own in the same session, so that it keeps the terminal. And the command has to begin with the
 * signals blocked that were blocked when we began. */
int child_start(const struct child_options *options, pid_t *ret)
{
	const short group_flag = options->has_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	char parent[16], state[64];
	snprintf(parent, sizeof parent, "%d", (int)getpid());
	snprintf(state, sizeof state, "%llu:%llu:%d:%d", inherited.core, inherited.files,
		inherited.ignored_pipe, inherited.ignored_xfsz);
	char **argv = words_of_child(options, parent, state);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, (short)(group_flag | POSIX_SPAWN_SETSIGMASK));
	posix_spawnattr_setpgroup(&attributes, 0); /* a group of its own */
	posix_spawnattr_setsigmask(&attributes, options->mask);
	posix_spawn_file_actions_init(&actions);
	/* These are inherited although hide_descriptor() sets close-on-exec: the duplicate does not
	 * have it, even if both numbers are the same. */
	for (size_t i = 0; i < options->n_fds; i++)
		posix_spawn_file_actions_adddup2(
			&actions, options->fds[i].ours, options->fds[i].theirs);
	visit_descriptors(hide_descriptor);
	signal(SIGCHLD, SIG_DFL); /* if it were ignored, waitpid() would find no status */
	const int error = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(argv);
	return -error;
}

bool child_end(pid_t child)
{
	const uint64_t kill_ns = clock_boot_ns() + KILL_AFTER_MS * NS_PER_MS;
	const uint64_t give_up_ns = kill_ns + KILLED_AFTER_MS * NS_PER_MS;
	bool has_ended = false;
	kill(-child, SIGTERM);
	kill(-child, SIGCONT); /* a stopped process takes no SIGTERM */
	while (!has_ended && clock_boot_ns() < give_up_ns) {
		if (clock_boot_ns() >= kill_ns)
			kill(-child, SIGKILL);
		has_ended = waitpid(child, NULL, WNOHANG) != 0; /* 0: it is still running */
		if (!has_ended)
			poll(NULL, 0, CHECK_MS);
	}
	kill(-child, SIGKILL); /* the processes of its group that are left */
	return has_ended;
}

int child_main(int argc, char **argv)
{
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz;
	/* argv is "child", PARENT, INHERITED, then variables up to "--", and then the command. */
	if (argc < 3)
		return S3ONCE_EXIT_USAGE;
	char **word = argv + 3;
	for (; *word && strcmp(*word, "--") != 0; word++)
		must_have(putenv(*word) ? NULL : *word);
	const bool has_command = *word && word[1];
	if (!has_command)
		return S3ONCE_EXIT_USAGE;
	char **command = word + 1;
	const pid_t parent = (pid_t)atoi(argv[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent ended before prctl(), which then sends no signal */
		return S3ONCE_EXIT_FENCED;
	/* A process group may read from the terminal only if it is in the foreground. */
	pass_terminal(STDIN_FILENO, getpgid(parent), getpgrp());
	if (sscanf(argv[2], "%llu:%llu:%d:%d", &core, &files, &ignored_pipe, &ignored_xfsz) == 4) {
		set_soft_limit(RLIMIT_CORE, core);
		set_soft_limit(RLIMIT_NOFILE, files);
		signal(SIGPIPE, ignored_pipe ? SIG_IGN : SIG_DFL);
		signal(SIGXFSZ, ignored_xfsz ? SIG_IGN : SIG_DFL);
	}
	execvp(*command, command);
	const int error = errno;
	fprintf(stderr, "s3once: error: cannot start %s: %s\n", quote(*command).text,
		strerror(error));
	return error == ENOENT ? 127 : 126; /* the exit codes of a shell */
}
