/* What the commands of `s3once lock` share: their options, the client, the exit codes, and what is
 * printed. */
#pragma once
#include "cli/options/access.h"
#include "s3once/lock.h"
#include <jansson.h>

/* What the options of a command say, and what it works with. */
struct lock_use {
	struct access access;
	struct s3once_locks_options client;
	struct s3once_lock_request request; /* of the first operand */
	const char *prefix, *if_version, *ttl_name;
	int json;
	uint64_t for_ms, kill_after_ms;
	unsigned read_units, write_units;
	char **operands; /* they end with NULL */
	struct s3once_locks *locks;
	struct s3once_lock_error error;
	int code; /* the exit code if the library had no error */
};

/* One command of `s3once lock`. */
struct lock_command {
	struct command command; /* "lock run", without its groups */
	const char *description;
	/* The options about the lock, of struct lock_use. NULL ends them. */
	const struct option *groups[3];
	/* An option that has to be given, and what it says; NULL: none has to. */
	const char *needs, *why;
	/* What it does with a client that sends no heartbeats. Returns what the library did, 0 or
	 * -errno with the error. */
	int (*use)(struct lock_use *use);
	/* Or else what it does, with a client that it opens itself. Returns the exit code. */
	int (*run)(struct lock_use *use);
};
extern const struct lock_command lock_run_command;

extern const struct option lock_place_options[], lock_key_options[], lock_wait_options[],
	lock_output_options[];

/* Opens the client that the options describe. Returns 0, or an exit code that was explained on
 * stderr. */
int lock_open(struct lock_use *use);
/* The exit code for what a call of the library returned. If it is not 0, the error is explained on
 * stderr and, with --json, in an event. */
int lock_exit(const struct lock_use *use, int r);
/* Prints an object as a line of standard output; takes the reference. */
void lock_print(json_t *object);
