/* The identity of this process, by which another process on the same host sees at once that it is
 * gone. */
#pragma once
#include "lease/machine.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	char host[256]; /* host name */
	char boot[37];  /* boot id; "" if it is not known, and then no process counts as local */
	char pid_space[64];  /* the pid namespace, or "" if it is not known */
	char time_space[64]; /* the time namespace, which shifts `start`, or "" */
	/* A hash, in hexadecimal digits, of the values that every user may read:
	 * /etc/machine-id, the hypervisor's id and the hardware addresses of network cards. They
	 * are hashed since a machine id is confidential (machine-id(5)).
	 *
	 * The boot id is not enough: a copy of a running machine has the same boot id and process
	 * ids. But its hypervisor gives it another id or other addresses.
	 *
	 * "" if reading or hashing has failed, here or for `board`. Then no process counts as
	 * local. A value that does not exist, or that we may not read, is no failure. */
	char machine[MACHINE_CHARS + 1];
	/* A hash of the values that only root may read: the id of the board, and the generation id
	 * of a virtual machine. "" if neither exists, or we may not read them. */
	char board[MACHINE_CHARS + 1];
	pid_t pid;
	uint64_t start; /* since boot, in clock ticks; 0 where unknown */
};

void process_self(struct process *ret);
/* Whether both surely run or ran in the same boot of the same machine, and in the same pid and time
 * namespaces. Then pids and start times mean the same to both. The members `board` are compared
 * only if both are known, since only root may read them. */
bool process_is_local(const struct process *self, const struct process *other);
/* Whether `other` is local (process_is_local()) and has surely ended. There is no such pid; or the
 * process has ended and its parent did not wait for it, as in a container without an init; or its
 * start time shows that the pid belongs to another process now. A missing entry of /proc alone is
 * no proof. */
bool process_is_gone(const struct process *self, const struct process *other);
