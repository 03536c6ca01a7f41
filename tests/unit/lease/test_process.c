/* Whether another process is surely gone: only where everything says that it ran on this very
 * machine, and its numbers mean the same to us. */
#include "check.h"
#include "lease/process.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that lives until it is killed, and what it says of itself. */
static pid_t start_child(struct process *ret)
{
	int ends[2];
	CHECK_INT(pipe(ends), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		struct process self;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		process_self(&self);
		_exit(write(ends[1], &self, sizeof self) == sizeof self && pause());
	}
	CHECK_INT(read(ends[0], ret, sizeof *ret), sizeof *ret);
	CHECK_INT(ret->pid, pid);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void test_a_child(void)
{
	struct process self, child;
	process_self(&self);
	CHECK(strlen(self.machine) == MACHINE_CHARS);
	const pid_t pid = start_child(&child);
	CHECK(process_is_local(&self, &child));
	CHECK(!process_is_gone(&self, &child));
	struct process before = child;
	before.start -= 1; /* its pid is another's by now */
	CHECK(process_is_gone(&self, &before));
	kill(pid, SIGKILL);
	siginfo_t info;
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	CHECK(process_is_gone(&self, &child)); /* not waited for */
	waitpid(pid, NULL, 0);
	CHECK(process_is_gone(&self, &child));
}

/* A process that this one may not send a signal to is alive, too. */
static void test_a_process_of_another_user(void)
{
	struct process child;
	int status;
	if (geteuid()) {
		fprintf(stderr, "only root has processes that others cannot signal: left out\n");
		return;
	}
	const pid_t pid = start_child(&child), other = fork();
	if (other == 0) {
		struct process self;
		CHECK_INT(setgid(65534), 0);
		CHECK_INT(setuid(65534), 0);
		process_self(&self);
		CHECK(kill(child.pid, 0) < 0 && errno == EPERM);
		CHECK(process_is_local(&self, &child));
		CHECK(!process_is_gone(&self, &child));
		_exit(check_result());
	}
	CHECK_INT(waitpid(other, &status, 0), other);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Each of these alone may be all that tells two machines, or two views of one, apart. */
static void test_without_certainty_it_may_live(void)
{
	struct process self, gone;
	process_self(&self);
	gone = self;
	gone.start += 1;
	CHECK(process_is_gone(&self, &gone));
	char *const fields[] = {
		gone.host, gone.boot, gone.machine, gone.pid_space, gone.time_space};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const char first = *fields[i];
		*fields[i] = first == 'x' ? 'y' : 'x';
		CHECK(!process_is_gone(&self, &gone));
		*fields[i] = 0;
		CHECK(!process_is_gone(&self, &gone) || !*self.time_space);
		*fields[i] = first;
	}
	CHECK(process_is_gone(&self, &gone));
	snprintf(self.board, sizeof self.board, "one");
	*gone.board = 0;
	CHECK(process_is_gone(&self, &gone));
	snprintf(gone.board, sizeof gone.board, "another");
	CHECK(!process_is_gone(&self, &gone));
}

static bool write_to(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Its boot clock is ahead, and with it the start times of all processes that it sees. */
static int look_from_another_time(const struct process *other)
{
	if (unshare(CLONE_NEWTIME) || !write_to("/proc/self/timens_offsets", "boottime 5000 0\n"))
		return 2;
	const pid_t pid = fork();
	if (pid == 0) {
		struct process self;
		process_self(&self);
		struct process claimed = *other;
		snprintf(claimed.time_space, sizeof claimed.time_space, "%s", self.time_space);
		_exit(process_is_gone(&self, other) || !process_is_gone(&self, &claimed));
	}
	int status;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void test_another_time_namespace(void)
{
	struct process self;
	int status;
	process_self(&self);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(look_from_another_time(&self));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		fprintf(stderr, "a time namespace cannot be made here: left out\n");
	else
		CHECK_INT(WEXITSTATUS(status), 0);
}

/* As in a pid namespace that kept the /proc of the one above it. */
static int look_through_another_proc(void)
{
	if (unshare(CLONE_NEWPID))
		return 2;
	const pid_t pid = fork();
	if (pid == 0) {
		struct process self, other;
		process_self(&self);
		other = self;
		other.start += 1;
		_exit(process_is_gone(&self, &other));
	}
	int status;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void test_another_proc(void)
{
	int status;
	const pid_t pid = fork();
	if (pid == 0)
		_exit(look_through_another_proc());
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1);
}

int main(void)
{
	test_a_child();
	test_a_process_of_another_user();
	test_without_certainty_it_may_live();
	test_another_time_namespace();
	test_another_proc();
	return check_result();
}
