/* Who this process is, so that another on the same host can tell at once whether it is gone. */
#pragma once
#include "lease/machine.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	char host[256]; /* host name */
	char boot[37];  /* boot id, "" where unknown: then nobody is known to be on the same host */
	char pid_space[64];              /* the pid namespace, "" where unknown */
	char time_space[64];             /* the time namespace, which shifts `start`; likewise */
	char machine[MACHINE_CHARS + 1]; /* machine_id() and machine_board() */
	char board[MACHINE_CHARS + 1];
	pid_t pid;
	uint64_t start; /* since boot, in clock ticks; 0 where unknown */
};

void process_self(struct process *ret);
/* Whether both surely run or ran in one boot of one machine, within one pid namespace and one time
 * namespace, so that pids and start times mean the same to both. Of the board only what both know
 * counts: root and others may share a machine. */
bool process_is_near(const struct process *self, const struct process *other);
/* Whether `other` is near and surely runs no more: no such pid, a process that has ended and was
 * not waited for by its parent (as in a container without an init), or another process by its start
 * time. Never by a missing /proc entry. */
bool process_is_gone(const struct process *self, const struct process *other);
