/* Identifies this process. machine.c identifies the machine. The row of a session keeps both. Also
 * finds out whether the process of another session, on the same host, is gone. A process that is
 * not surely gone counts as alive. */
#include "lease/process.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#ifdef HAVE_PIDFD_OPEN
#include <sys/pidfd.h>
#endif

#define STAT_MAX 4096

/* Returns the start time of a process, which is field 22 of /proc/WHO/stat, or 0 if it cannot be
 * read. Fields are counted from the last ')', since the name in field 2 may contain anything. */
static uint64_t start_in_proc(const char *who)
{
	char path[40];
	struct text line = TEXT(STAT_MAX);
	snprintf(path, sizeof path, "/proc/%s/stat", who);
	named_file_read(path, &line, NULL);
	const char *blank = line.data ? strrchr(line.data, ')') : NULL; /* before the next field */
	for (int field = 2; blank && field < 22; field++)
		blank = strchr(blank + 1, ' ');
	const uint64_t start = blank ? strtoull(blank + 1, NULL, 10) : 0;
	text_clear(&line);
	return start;
}

/* Returns the start time of a process, or 0 if it is not known. A /proc of another pid namespace is
 * not read, since it has other processes under the same numbers. */
static uint64_t start_of(pid_t pid)
{
	char who[20];
	read_link("/proc/self", who, sizeof who);
	if (atoi(who) != (int)getpid())
		return 0;
	snprintf(who, sizeof who, "%d", (int)pid);
	return start_in_proc(who);
}

void process_self(struct process *ret)
{
	*ret = (struct process){.pid = getpid()};
	size_t n = sizeof ret->host;
	if (uv_os_gethostname(ret->host, &n) || !*ret->host)
		snprintf(ret->host, sizeof ret->host, "unknown-host");
	clock_boot_id(ret->boot);
	read_link("/proc/self/ns/pid", ret->pid_space, sizeof ret->pid_space);
	read_link("/proc/self/ns/time", ret->time_space, sizeof ret->time_space);
	/* Without an id of the machine, no process counts as local. */
	if (!machine_hashes(ret->machine, ret->board))
		*ret->machine = 0;
	ret->start = start_in_proc("self");
}

/* Whether a process has surely ended, even if its parent has not waited for it. A pidfd is readable
 * once every thread of its process has ended. */
static bool has_ended(pid_t pid)
{
#ifdef HAVE_PIDFD_OPEN
	struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	if (end.fd < 0)
		return false;
	const bool ended = poll(&end, 1, 0) == 1 && (end.revents & POLLIN);
	close(end.fd);
	return ended;
#else
	(void)pid;
	return false;
#endif
}

/* Whether two values are known to be the same. "" is a value that is not known. */
static bool are_known_same(const char *a, const char *b)
{
	return *a && strcmp(a, b) == 0;
}

bool process_is_local(const struct process *self, const struct process *other)
{
	/* Only root knows the board, so it counts only if both know it. */
	const bool is_other_board =
		*self->board && *other->board && strcmp(self->board, other->board) != 0;
	const bool is_this_machine = are_known_same(self->boot, other->boot) &&
				     are_known_same(self->machine, other->machine) &&
				     !is_other_board;
	/* In another container, the same pid is another process. Both time spaces are "" without
	 * time namespaces. */
	const bool is_this_container = are_known_same(self->host, other->host) &&
				       are_known_same(self->pid_space, other->pid_space) &&
				       strcmp(self->time_space, other->time_space) == 0;
	return is_this_machine && is_this_container;
}

bool process_is_gone(const struct process *self, const struct process *other)
{
	if (!process_is_local(self, other) || other->pid <= 0)
		return false;
	const uint64_t start = start_of(other->pid);
	const bool is_absent = kill(other->pid, 0) && errno == ESRCH;
	const bool is_pid_reused = start && other->start && start != other->start;
	return is_absent || is_pid_reused || has_ended(other->pid);
}
