/* Simulated machines and the processes on them: what the kernel of each would know. */
#pragma once
#include "chance.h"
#include "disk.h"
#include "tasks.h"
#include <stdbool.h>
#include <stdint.h>

#define MACHINES_MAX 8
#define FDS_MAX      256

struct machine {
	char name[32];
	char host[32]; /* the name that it knows itself */
	unsigned index;
	struct disk *disk;
	char boot_id[37];
	int64_t wall_shift_ns;  /* what its wall clock shows at world time 0 */
	uint64_t boot_shift_ns; /* CLOCK_BOOTTIME at world time 0 */
	uint64_t suspended_ns;  /* so long it was, in sum; the monotonic clock did not count that */
	uint64_t suspended_at_ns; /* since when it is, or 0 */
	bool is_off;
	int last_pid;
	unsigned boots;
	bool has_pushed; /* a run of push has ended in order, so that there are marks */
	bool is_noted;   /* one of them has ended with 0 or 1, so that its marks know the machine */
	bool knows_id;   /* one of them has ended with 0, and knows the bucket by its object */
	/* Of its last run: files that failed, and those of them that world_is_left_over(). */
	unsigned failures, left_overs;
	struct chance chance; /* of getrandom(), names of temporary files */
};

struct open_file;
/* What a process has heard of servers, for silences.c. */
struct heard {
	/* Since when requests are not answered, and nothing has moved; or 0. */
	uint64_t silent_ns;
	uint64_t moved_ns;     /* when it last finished a file, or sent a body */
	uint64_t said_ns;      /* when it last said anything */
	uint64_t suspended_ns; /* of the process, at silent_ns */
	uint64_t left_ns;      /* when it last gave up a request that was not answered */
	unsigned n_asked;      /* how many such requests it waits for */
};
struct machine_process {
	struct machine *machine;
	int pid;
	uint64_t start;    /* in ticks, as /proc/PID/stat has it */
	uint64_t began_ns; /* world time */
	bool is_over, is_killed, is_stopped;
	uint64_t continued_ns;          /* when it last went on after it had been stopped */
	uint64_t suspended_ns;          /* so long its machine was, in sum, since it began */
	char name[48];                  /* for the story: HOST/PID */
	const char *const *environment; /* "NAME=value", ended by NULL; borrowed */
	struct open_file *files[FDS_MAX];
	unsigned n_threads;
	unsigned reads_failed;        /* of files, by chance */
	struct machine_process *next; /* of the world's list */
	struct heard heard;
	void *owner; /* of whoever started it */
};

/* Forgets all machines of the world before. */
void machines_begin(uint64_t seed);
/* A clone has the host name, the machine id and the boot id of the first one. Only the hypervisor
 * tells them apart. */
struct machine *machine_add(const char *name, bool is_clone);
size_t machines_count(void);
struct machine *machine_at(size_t i);

int64_t machine_wall_ns(const struct machine *machine);
uint64_t machine_boot_ns(const struct machine *machine);
uint64_t machine_monotonic_ns(const struct machine *machine);

/* A new process; its first thread runs `run`, and the process ends when that returns. */
struct machine_process *process_start(struct machine *machine, const char *const *environment,
	void (*run)(void *arg), void *arg, void *owner);
/* Marks it ended in order: its descriptors are closed. */
void process_end(struct machine_process *process);
/* As SIGKILL. Does not return if the running task is of this process. */
void process_kill(struct machine_process *process);
void process_stop(struct machine_process *process);     /* SIGSTOP */
void process_continue(struct machine_process *process); /* SIGCONT */
struct machine_process *process_find(const struct machine *machine, int pid);
struct machine_process *processes_first(void);
/* Whether any process has not ended, of this machine or (NULL) of any. */
bool processes_any(const struct machine *machine);

/* The power fails: all processes are killed, and files lose what was not synced. */
void machine_lose_power(struct machine *machine);
void machine_boot(struct machine *machine);
void machine_suspend(struct machine *machine);
void machine_resume(struct machine *machine);

/* In kernel_files.c: closes what a process had open. */
void kernel_close_all(struct machine_process *process);
/* In sqlite_vfs.c: before the first world, and before each. */
void vfs_set_up(void);
void vfs_begin(uint64_t seed);
/* Before the power of a machine fails. */
void vfs_power_fails(const struct machine *machine);
/* Likewise: drops the locks of a process that has ended. */
void vfs_forget_process(struct machine_process *process);
