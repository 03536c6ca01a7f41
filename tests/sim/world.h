/* One world: its machines, servers, files, people and troubles, from a seed and a scenario. */
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
#define WORLD_ID_OBJECT "s3once-id" /* by which the bucket may be known */
#define WORLD_LOG_RUNS  2           /* of a machine with logs, where others have people's files */
#define WORLD_EPOCH     1780000000  /* what the servers' clocks show at world time 0 */

struct world {
	uint64_t seed;
	struct scenario scenario;
	struct chance chance;
	struct world_s3 *s3;
	struct world_s3
		*lock_bucket; /* another bucket, for locks alone; NULL: they are elsewhere */
	struct world_dynamodb *db;
	struct disk *shared;  /* a file server: see world_shared() */
	unsigned busy;        /* tasks of the world that have something left to do */
	unsigned pushes;      /* that have begun */
	unsigned runs;        /* likewise, and audits */
	unsigned runs_before; /* that all was calm */
	unsigned pipes;       /* of these, those that upload what a program writes */
	uint64_t imaged_ns;   /* when the disk of a host was copied */
	bool is_anew;         /* the bucket was made anew, which runs are told now and then */
	bool is_id_gone;      /* the object by which the bucket is known was deleted: likewise */
	bool is_calm;         /* nothing happens any more but the last runs */
	bool is_over;
};
extern struct world world;

/* Plays it to its end. The sentence of the first promise that was broken, or NULL. */
const char *world_play(uint64_t seed, const struct scenario *scenario);
/* Of the last one: virtual time, runs that have begun, and faults of wire, machines and people. */
struct world_sums {
	uint64_t s;
	unsigned runs, last_runs, faults; /* the last ones begin when all is calm */
};
struct world_sums world_sums(void);
/* Whether the files of this machine are logs that rotate; and whether this key is of such a one. */
bool world_rotates(const struct machine *machine);
bool world_rotates_key(const char *key);
/* The file server that this machine has below /data, or NULL. */
struct disk *world_shared(const struct machine *machine);
/* How many machines, the first ones, have files that people change, and on how many disks. */
size_t world_people(void);
size_t world_people_disks(void);
/* The machine that wakes with a copy of the first one's disk, or NULL; and the one whose marks and
 * files a machine has or had. */
struct machine *world_image(void);
struct machine *world_original(struct machine *machine);
/* Whether people or rules of the bucket delete objects. */
bool world_loses_objects(void);
/* Whether this path of a run is the folder in which a run that was killed has left a file whose
 * name another file has taken since, or that file. Each of them is in S3. */
bool world_is_left_over(const struct machine *machine, const char *path);
/* How long the night is; 0: there is none. */
uint64_t world_night_ns(void);
/* Whether something is to happen at some time of the night, and not in the minutes in which people
 * change files. */
bool world_is_late(struct chance *chance);
/* How long those wait who look again and again: 30 times as long in a night. */
uint64_t world_look_ns(uint64_t ns);

/* In people.c: makes the files, and starts whoever changes them. */
void people_begin(void);
/* The power of a machine has failed: what was changed of a file a moment ago may be undone. */
void people_lose_power(const struct machine *machine);
/* In operators.c: starts whoever makes the bucket anew and restores marks. */
void operators_begin(void);
/* In images.c: starts whoever copies the disk of a host. */
void images_begin(void);
/* In logrotate.c: makes the logs, if they rotate, and starts whoever writes and rotates them. */
void logrotate_begin(void);
/* In zoo.c: whether the i-th log of this machine is of a program that rotates it by itself, which
 * begins then. */
bool zoo_begin(struct machine *machine, unsigned i);
/* Programs have their files open again, once a machine whose power has failed has booted. */
void zoo_booted(const struct machine *machine);
/* All is calm: programs write no more, and time passes until each log has rested that has to. */
#define ZOO_REST_NS (25 * 3600 * 1000000000ULL)
void zoo_rest(void);
void zoo_end(void);
/* In troubles.c: starts whoever kills, stops, suspends. */
void troubles_begin(void);

/* In runs.c. */
struct run;
enum run_kind { RUN_PUSH, RUN_PIPE, RUN_VERIFY, RUN_GC, RUN_FORGET, RUN_LOCKER };
#define RUN_DYNAMODB "https://dynamodb.us-east-1.amazonaws.com"
const char *run_endpoint(void); /* of S3, or NULL for AWS's */
const char *run_marks(void);
/* Starts a command on a machine, and returns its process; *ret_exit gets the exit status once it
 * has ended in order, and is -1 before. */
struct machine_process *run_start(struct machine *machine, enum run_kind kind, int *ret_exit);
/* Whether a process is a run of push that goes on. */
bool run_is_push(const struct machine_process *process);
/* The --request-timeout of runs where servers may be silent. */
#define RUN_REQUEST_S 20
/* Asks a run of push to end, as a signal does. False: it is none, or has ended. */
bool run_ask_to_end(struct machine_process *process);
/* When it was asked, or 0. Later by as long as its machine was suspended since, in which its
 * clock for that stood still. */
uint64_t run_asked_ns(const struct machine_process *process);
/* How long a run that goes on may take to end then. */
uint64_t run_grace_ns(const struct machine_process *process);
/* The --if-changed of the run of a process, if that goes on, is to leave earlier versions alone. */
bool run_keeps_earlier(const struct machine_process *process);
/* Whether somebody has told the run of a process which bucket it is, or it has ended. */
bool run_was_told_of_bucket(const struct machine_process *process);
/* How long the lease of the running process is. */
unsigned run_lease_s(void);
/* In lockers.c: what a process does that needs a lock. Returns its exit status. */
int locker_run(const struct machine *machine);
/* The folder that push reads on this machine. */
const char *run_folder(const struct machine *machine);
/* The prefix of the keys that it writes to. */
const char *run_prefix(const struct machine *machine);
