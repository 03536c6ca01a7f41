/* Descriptors of simulated processes, for the files kernel_*.c. */
#pragma once
#include "kernel.h"
#include "machines.h"

struct open_file {
	struct node *node; /* NULL: a pipe that is only there to be counted */
	struct machine_process *process_of_pidfd;
	uint64_t offset;
	int flags;
	unsigned links; /* descriptors that share it */
	bool has_lease;
};

/* -1 and errno. */
int kernel_fail(int error);
/* The file behind a descriptor of the calling process, or NULL and errno. */
struct open_file *kernel_file(int fd);
/* Where a relative path begins. 0 or -errno. */
int kernel_base(int fd, struct node **ret);
/* The path, but /proc/self is the process's own. ret has room for PATH_MAX bytes. */
const char *kernel_own_path(const char *path, char *ret);
/* A descriptor for a node. -1 and errno. */
int kernel_open_node(struct node *node, int flags);
extern struct kernel_hooks kernel_hooks;
