/* What the commands of `s3once lock` share: their options, the client, the exit codes, and what is
 * printed. */
#pragma once
#include "cli/options/access.h"
#include "s3once/lock.h"
#include <jansson.h>

struct lock_options {
	struct access access;
	const char *place, *key_name, *sort_name, *sort_key, *owner, *prefix, *if_version;
	const char *ttl_name;
	int dialect, release_by, tokens; /* as in s3once/lock.h */
	int json;
	uint64_t wait_ms, lease_ms, for_ms, kill_after_ms;
	unsigned slots, read_units, write_units;
};

/* What a command works with: a client that sends no heartbeats. */
struct lock_use {
	const struct lock_options *options;
	struct s3once_locks *locks;
	char **operands; /* they end with NULL */
	struct s3once_lock_error error;
	int code; /* the exit code if the library had no error */
};

/* One command of `s3once lock`. */
struct lock_command {
	const char *name; /* "run" */
	const char *operands, *about, *examples, *description;
	/* The options about the lock, of struct lock_options. NULL ends them. */
	const struct option *groups[3];
	/* How many operands there are. `most` is -1 if there may be any number. */
	int least, most;
	/* Before anything is opened: 0, or an exit code that was explained. NULL: nothing more is
	 * to be checked. The operands end with NULL, here and below. */
	int (*check)(const struct lock_options *options, char **operands);
	/* What it does with a client. Returns what the library did, 0 or -errno with the error. */
	int (*use)(struct lock_use *use);
	/* Or else what it does, with a client that it opens itself. */
	int (*run)(const struct lock_options *options, char **operands);
};
extern const struct lock_command lock_run_command;

extern const struct option lock_place_options[], lock_key_options[], lock_wait_options[],
	lock_output_options[];

/* Where the locks are, as --locks or the environment says. NULL: in the file of this user. */
const char *lock_place(const struct lock_options *options);
/* Opens the client that the options describe. With `manual` it sends no heartbeats. Returns 0, or
 * an exit code that was explained on stderr. */
int lock_open(const struct lock_options *options, int manual, struct s3once_locks **ret);
struct s3once_lock_request lock_request(const struct lock_options *options, const char *key);

/* The exit code for what a call of the library returned. If it is not 0, it is explained on stderr
 * and, with --json, in an event. */
int lock_exit(const struct lock_options *options, int r, const struct s3once_lock_error *error);
/* Prints an object as a line of standard output; takes the reference. */
void lock_print(json_t *object);
