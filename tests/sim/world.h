/* A world: its machines, servers, files, people and troubles, made from a seed and a scenario. */
#pragma once
#include "machines.h"
#include "scenario.h"
#include "world_dynamodb.h"
#include "world_s3.h"

#define WORLD_BUCKET    "logs"
#define WORLD_LOCKS     "turns" /* the bucket of locks */
#define WORLD_TABLE     "uploads"
#define WORLD_PREFIX    "web"
#define WORLD_LOGS      "logs"
#define WORLD_ID_OBJECT "s3once-id" /* the object that may identify the bucket */
#define WORLD_LOG_RUNS  2           /* runs of a machine with logs if others have people's files */
#define WORLD_EPOCH     1780000000  /* the servers' clocks at world time 0 */

struct world {
	uint64_t seed;
	struct scenario scenario;
	struct chance chance;
	struct world_s3 *s3;
	struct world_s3 *lock_bucket; /* a bucket for locks alone; NULL: they are elsewhere */
	struct world_dynamodb *db;
	struct disk *shared;  /* a file server: see world_shared() */
	unsigned busy;        /* tasks of the world that are not finished */
	unsigned pushes;      /* number of runs of push that have begun */
	unsigned runs;        /* the same, with audits */
	unsigned runs_before; /* `runs` when the world became calm */
	unsigned pipes;       /* those of `runs` that upload the output of a program */
	uint64_t imaged_ns;   /* world time at which the disk of a host was copied */
	bool is_anew;         /* the bucket was recreated; some runs are told so */
	bool is_id_gone;      /* the id object was deleted; some runs are told so */
	bool is_calm;         /* nothing happens any more except the last runs */
	bool is_over;
};
extern struct world world;

/* Plays a world to its end. Returns a sentence about the first promise that was broken, or NULL. */
const char *world_play(uint64_t seed, const struct scenario *scenario);
/* The world time of the last world, its runs, and the faults of network, machines and people. */
struct world_sums {
	uint64_t s;
	unsigned runs, last_runs, faults; /* last_runs begin once all is calm */
};
struct world_sums world_sums(void);
/* Whether the files of this machine are rotated logs, and whether this is the key of such a file.
 */
bool world_rotates(const struct machine *machine);
bool world_rotates_key(const char *key);
/* Returns the file server that is mounted at /data of this machine, or NULL. */
struct disk *world_shared(const struct machine *machine);
/* Return the number of machines with files that people change, which are the first ones, and the
 * number of disks with such files. */
size_t world_people(void);
size_t world_people_disks(void);
/* Return the machine that boots from a copy of the first one's disk, or NULL, and the machine that
 * owned a machine's marks and files first. */
struct machine *world_image(void);
struct machine *world_original(struct machine *machine);
/* Whether people or lifecycle rules delete objects. */
bool world_loses_objects(void);
/* Whether this path of a run is a file that a killed run has left in its folder for removal, and
 * whose name another file has taken since, or is that folder. The files in it must all be in S3. */
bool world_is_left_over(const struct machine *machine, const char *path);
/* Returns the length of the night, or 0 if there is none. */
uint64_t world_night_ns(void);
/* Whether an event is to happen at some time of the night, and not in the minutes in which people
 * change files. */
bool world_is_late(struct chance *chance);
/* Returns the interval of a poll: 30 times as long in a night. */
uint64_t world_look_ns(uint64_t ns);

/* In people.c: makes the files, and starts the people who change them. */
void people_begin(void);
/* Undoes recent changes of files after a power cut of the machine. */
void people_lose_power(const struct machine *machine);
/* In operators.c: starts the administrators who recreate the bucket and restore marks. */
void operators_begin(void);
/* In images.c: starts the task that copies the disk of a host. */
void images_begin(void);
/* In logrotate.c: makes the logs, if the world has any, and starts the programs that write and
 * rotate them. */
void logrotate_begin(void);
/* In zoo.c: starts the program of the i-th log of this machine and returns true, if that program
 * rotates its own log. */
bool zoo_begin(struct machine *machine, unsigned i);
/* Lets programs reopen their files once their machine has booted after a power cut. */
void zoo_booted(const struct machine *machine);
/* Stops all writing, and lets time pass until each log has rested that has to. */
#define ZOO_REST_NS (25 * 3600 * 1000000000ULL)
void zoo_rest(void);
void zoo_end(void);
/* In troubles.c: starts the tasks that kill, stop, suspend, and so on. */
void troubles_begin(void);

/* In runs.c. */
struct run;
enum run_kind { RUN_PUSH, RUN_PIPE, RUN_VERIFY, RUN_GC, RUN_FORGET, RUN_LOCKER };
#define RUN_DYNAMODB "https://dynamodb.us-east-1.amazonaws.com"
const char *run_endpoint(void); /* of S3; NULL: that of AWS */
const char *run_marks(void);
/* Starts a command on a machine, and returns its process. *ret_exit is -1 until the process has
 * ended by itself, and then its exit status. */
struct machine_process *run_start(struct machine *machine, enum run_kind kind, int *ret_exit);
/* Whether a process is a run of push that has not ended. */
bool run_is_push(const struct machine_process *process);
/* The --request-timeout of runs, in s, if servers may fall silent. */
#define RUN_REQUEST_S 20
/* Asks a run of push to end, as a signal does. Returns false if the process is no such run, or has
 * ended. */
bool run_ask_to_end(struct machine_process *process);
/* Returns the time at which the run was asked to end, or 0. Suspensions of its machine since then
 * are added, since its clock stood still in them. */
uint64_t run_asked_ns(const struct machine_process *process);
/* Returns the grace period of a run. */
uint64_t run_grace_ns(const struct machine_process *process);
/* Whether the process is a run that has not ended, and whose --if-changed keeps earlier versions.
 */
bool run_keeps_earlier(const struct machine_process *process);
/* Whether the run of a process was told which bucket it is, or has ended. */
bool run_was_told_of_bucket(const struct machine_process *process);
/* Returns the lease of the running process, in s. */
unsigned run_lease_s(void);
/* In lockers.c: a process that acquires a lock and acts while it holds it. Returns its exit status.
 */
int locker_run(const struct machine *machine);
/* Returns the SOURCE of push on this machine. */
const char *run_folder(const struct machine *machine);
/* Returns the prefix of the keys that push writes on this machine. */
const char *run_prefix(const struct machine *machine);
