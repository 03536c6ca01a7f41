/* Descriptors of simulated processes, shared by the files kernel_*.c. */
#pragma once
#include "kernel.h"
#include "machines.h"

struct open_file {
	struct node *node; /* NULL: a pipe, which only counts as a descriptor */
	struct machine_process *process_of_pidfd;
	uint64_t offset;
	int flags;
	unsigned links; /* descriptors that share it */
	bool has_lease;
};

/* Sets errno, and returns -1. */
int kernel_fail(int error);
/* Returns the file behind a descriptor of the calling process, or NULL with errno. */
struct open_file *kernel_file(int fd);
/* Finds the folder at which a relative path begins. Returns 0 or -errno. */
int kernel_base(int fd, struct node **ret);
/* Returns the path, with /proc/self replaced by the folder of the calling process. `ret` has room
 * for PATH_MAX bytes. */
const char *kernel_own_path(const char *path, char *ret);
/* Returns a new descriptor for a node, or -1 with errno. */
int kernel_open_node(struct node *node, int flags);
extern struct kernel_hooks kernel_hooks;
