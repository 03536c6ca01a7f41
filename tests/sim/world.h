/* One world: its machines, servers, files, people and troubles, from a seed and a scenario. */
#pragma once
#include "machines.h"
#include "scenario.h"
#include "world_dynamodb.h"
#include "world_s3.h"

#define WORLD_BUCKET "logs"
#define WORLD_TABLE  "uploads"
#define WORLD_PREFIX "web"
#define WORLD_EPOCH  1780000000 /* what the servers' clocks show at world time 0 */

struct world {
	uint64_t seed;
	struct scenario scenario;
	struct chance chance;
	struct world_s3 *s3;
	struct world_dynamodb *db;
	struct disk *shared; /* the file server that hosts with shared marks have below /data */
	unsigned busy;       /* tasks of the world that have something left to do */
	unsigned pushes;     /* that have begun */
	unsigned runs;       /* likewise, and audits */
	bool is_anew;        /* the bucket was made anew, which runs are told now and then */
	bool is_calm;        /* nothing happens any more but the last runs */
	bool is_over;
};
extern struct world world;

/* Plays it to its end. The sentence of the first promise that was broken, or NULL. */
const char *world_play(uint64_t seed, const struct scenario *scenario);
/* Of the last one: virtual time, runs that have begun, and faults of wire, machines and people. */
struct world_sums {
	uint64_t s;
	unsigned runs, faults;
};
struct world_sums world_sums(void);

/* In people.c: makes the files, and starts whoever changes them. */
void people_begin(void);
/* In operators.c: starts whoever makes the bucket anew and restores marks. */
void operators_begin(void);
/* In logrotate.c: makes the logs, if they rotate, and starts whoever writes and rotates them. */
void logrotate_begin(void);
/* In troubles.c: starts whoever kills, stops, suspends. */
void troubles_begin(void);

/* In runs.c. */
struct run;
enum run_kind { RUN_PUSH, RUN_VERIFY, RUN_GC, RUN_FORGET };
#define RUN_DYNAMODB "https://dynamodb.us-east-1.amazonaws.com"
const char *run_endpoint(void); /* of S3, or NULL for AWS's */
const char *run_marks(void);
/* Starts a command on a machine, and returns its process; *ret_exit gets the exit status once it
 * has ended in order, and is -1 before. */
struct machine_process *run_start(struct machine *machine, enum run_kind kind, int *ret_exit);
/* The folder that push reads on this machine. */
const char *run_folder(const struct machine *machine);
/* The prefix of the keys that it writes to. */
const char *run_prefix(const struct machine *machine);
