/* The common part of the commands of `s3once lock`: their options, the client, the exit codes, and
 * printing. */
#pragma once
#include "cli/commands.h"
#include "s3once/lock.h"

/* The values of the options of a command, and the client that it uses. */
struct lock_use {
	struct s3once_locks_options client;
	struct s3once_lock_request request; /* the request, with the first operand as KEY */
	const char *prefix, *if_version, *ttl_name;
	struct command_frame *frame; /* whose `output` prints results, and `json` says how */
	uint64_t for_ms, kill_after_ms;
	unsigned read_units, write_units;
	char **operands; /* a NULL follows the last one */
	struct s3once_locks *locks;
	struct s3once_lock_error error;
	/* Set by lock_command.use: the exit code if the library returned no error. */
	int code;
	bool is_run; /* the command is `lock run` */
	/* The exit status of the command of `lock run`, for lock_exit_status(). Negative: no
	 * command has ended, or its lock was lost. */
	int command_status;
};

/* One command of `s3once lock`. */
struct lock_command {
	/* Its name is "lock run", for example. Its options are of struct lock_use. */
	struct command command;
	const char *description;
	bool removes;    /* it breaks a lock, so no message proposes it */
	bool read_only;  /* it changes nothing */
	bool must_exist; /* it is about a lock that already exists */
	/* The name of a required option and its purpose, for the error. NULL: none is required. */
	const char *needs, *why;
	/* Runs the command with a client that sends no heartbeats. Returns the library's result: 0,
	 * or -errno with use->error. */
	int (*use)(struct lock_use *use);
	/* If not NULL, this runs the command in place of `use`, and opens the client itself.
	 * Returns the exit code. */
	int (*run)(struct lock_use *use);
};
extern const struct lock_command lock_run_command;

/* The exit statuses of `lock run` itself. env(1) and timeout(1) use 124 and 125 likewise, and leave
 * 126 and 127 to a command that cannot be started. */
enum lock_run_status {
	LOCK_RUN_LOST = 123,
	LOCK_RUN_HELD = 124,
	LOCK_RUN_FAILED = 125, /* also: the command line is invalid */
};

/* The groups of each command behind its own, and the options that it shares with other commands. */
#define LOCK_GROUPS                                                                                \
	{"Place", lock_place_options}, {"Services", lock_timeout_options, 0, true},                \
	{                                                                                          \
		NULL                                                                               \
	}
#define LOCK_SHARES (SHARES_S3 | SHARES_ACCOUNT | SHARES_JSON)

extern const struct option lock_place_options[], lock_timeout_options[], lock_key_options[],
	lock_wait_options[];

/* Opens the client with these options. Returns 0, or an exit code that was explained on stderr. */
int lock_open(struct lock_use *use);
/* Returns the exit code for the result `r` of the library, and reports an error: on stderr, and
 * with --json by an event as well, unless it is an error of usage. */
int lock_report_result(const struct lock_use *use, int r);
/* Returns the exit status for an exit code of this program. They differ only with `lock run`, which
 * otherwise exits as its command did: its own statuses are those that a command rarely has. */
int lock_exit_status(const struct lock_use *use, int code);
/* Prints an object as a result; takes the reference. */
void lock_print(const struct lock_use *use, json_t *object);
