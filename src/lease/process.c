#include "lease/process.h"
#include "base/clock.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_PIDFD_OPEN
#include <sys/pidfd.h>
#endif

/* Field 22 of /proc/PID/stat; 0 if it cannot be read. The name in field 2 may hold anything: count
 * from its last ')'. */
static uint64_t start_of(pid_t pid)
{
	char path[40], line[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	size_t n = fread(line, 1, sizeof line - 1, file);
	fclose(file);
	line[n] = 0;
	char *at = strrchr(line, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

void process_self(struct process *ret)
{
	*ret = (struct process){.pid = getpid()};
	if (gethostname(ret->host, sizeof ret->host - 1) || !*ret->host)
		snprintf(ret->host, sizeof ret->host, "unknown-host");
	clock_boot_id(ret->boot);
	ssize_t n = readlink("/proc/self/ns/pid", ret->pid_space, sizeof ret->pid_space - 1);
	ret->pid_space[n > 0 ? n : 0] = 0;
	ret->start = start_of(ret->pid);
}

/* A pidfd is readable once every thread of its process has ended, waited for or not. */
static bool has_ended(pid_t pid)
{
#ifdef HAVE_PIDFD_OPEN
	struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	if (end.fd < 0)
		return false;
	const bool ended = poll(&end, 1, 0) == 1 && end.revents & POLLIN;
	close(end.fd);
	return ended;
#else
	(void)pid;
	return false;
#endif
}

bool process_is_gone(const struct process *self, const struct process *other)
{
	if (!*self->boot || strcmp(self->boot, other->boot) || !*self->pid_space ||
		strcmp(self->pid_space, other->pid_space) || other->pid <= 0)
		return false;
	if (kill(other->pid, 0) && errno == ESRCH)
		return true;
	if (has_ended(other->pid))
		return true;
	uint64_t start = start_of(other->pid);
	return start && other->start && start != other->start;
}
