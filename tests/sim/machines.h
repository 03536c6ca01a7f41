/* Simulated machines and their processes: the state that the kernel of each would have. */
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
	char host[32]; /* its host name */
	unsigned index;
	struct disk *disk;
	char boot_id[37];
	int64_t wall_shift_ns;    /* what its wall clock shows at world time 0 */
	uint64_t boot_shift_ns;   /* CLOCK_BOOTTIME at world time 0 */
	uint64_t suspended_ns;    /* total time of suspension, not in the monotonic clock */
	uint64_t suspended_at_ns; /* world time at which it was suspended; 0: it is not */
	bool is_off;
	int last_pid;
	unsigned boots;
	bool has_pushed; /* a run of push has ended by itself, so there are marks */
	bool is_noted;   /* a run of push has ended with 0 or 1, so its marks name the machine */
	bool knows_id;   /* a run of push has ended with 0, and has seen the id object */
	/* The failed files of its last run, and those of them that world_is_left_over(). */
	unsigned failures, left_overs;
	struct chance chance; /* for getrandom() and the names of temporary files */
};

struct open_file;
/* The contact of a process with the servers, for silences.c. Times are world times. */
struct heard {
	/* The time since which no request was answered and nothing has moved; or 0. */
	uint64_t silent_ns;
	uint64_t moved_ns;     /* it last finished a file, or sent a body */
	uint64_t said_ns;      /* it last logged a line */
	uint64_t suspended_ns; /* suspended_ns of the process at silent_ns */
	uint64_t left_ns;      /* it last gave up a request without a reply */
	unsigned n_asked;      /* number of such requests that it is waiting for */
};
struct machine_process {
	struct machine *machine;
	int pid;
	uint64_t start;    /* in ticks, as in /proc/PID/stat */
	uint64_t began_ns; /* world time */
	bool is_over, is_killed, is_stopped;
	uint64_t continued_ns;          /* world time at which it last continued after a stop */
	uint64_t suspended_ns;          /* total suspension of its machine since it began */
	char name[48];                  /* for the story: HOST/PID */
	const char *const *environment; /* "NAME=value", with a NULL at the end; borrowed */
	struct open_file *files[FDS_MAX];
	unsigned n_threads;
	unsigned reads_failed;        /* simulated read errors */
	struct machine_process *next; /* in the list of all processes */
	struct heard heard;
	void *owner; /* for the code that started it */
};

/* Forgets the machines of the previous world. */
void machines_begin(uint64_t seed);
/* A clone has the host name, the machine id and the boot id of the first machine. Only the
 * hypervisor can tell them apart. */
struct machine *machine_add(const char *name, bool is_clone);
size_t machines_count(void);
struct machine *machine_at(size_t i);

int64_t machine_wall_ns(const struct machine *machine);
uint64_t machine_boot_ns(const struct machine *machine);
uint64_t machine_monotonic_ns(const struct machine *machine);

/* Starts a process. Its first thread calls `run`, and the process ends when that returns. */
struct machine_process *process_start(struct machine *machine, const char *const *environment,
	void (*run)(void *arg), void *arg, void *owner);
/* Ends a process by itself: its descriptors are closed. */
void process_end(struct machine_process *process);
/* Kills a process, as SIGKILL does. Does not return if the running task belongs to it. */
void process_kill(struct machine_process *process);
void process_stop(struct machine_process *process);     /* SIGSTOP */
void process_continue(struct machine_process *process); /* SIGCONT */
struct machine_process *process_find(const struct machine *machine, int pid);
struct machine_process *processes_first(void);
/* Whether a process is running on this machine, or with NULL on any machine. */
bool processes_any(const struct machine *machine);

/* Cuts the power: all processes are killed, and files lose writes that were not synced. */
void machine_lose_power(struct machine *machine);
void machine_boot(struct machine *machine);
void machine_suspend(struct machine *machine);
void machine_resume(struct machine *machine);

/* In kernel_files.c: closes all descriptors of a process. */
void kernel_close_all(struct machine_process *process);
/* In sqlite_vfs.c: call the first one before the first world, and the second one before each
 * world. */
void vfs_set_up(void);
void vfs_begin(uint64_t seed);
/* In sqlite_vfs.c: call it before the power of a machine is cut. */
void vfs_power_fails(const struct machine *machine);
/* In sqlite_vfs.c: drops the locks of a process that has ended. */
void vfs_forget_process(struct machine_process *process);
