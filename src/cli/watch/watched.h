/* One job that is watched: when it needs a pass, and the passes. A pass is a run as of s3once run,
 * over all files or over the folders that were touched. For one thread. */
#pragma once
#include "cli/push/push_command.h"
#include "cli/watch/watch_folders.h"

/* What the passes of a job have come to. */
struct watched_sums {
	uint64_t whole, some;  /* over all files, and over some; one that goes on after others is
				  one */
	uint64_t failed;       /* those that did not end with exit 0 */
	uint64_t files, bytes; /* uploaded */
};

/* The service that a job belongs to. */
struct watched_service {
	/* Whether other jobs than the one of the pass want their turn. */
	bool (*others_want_turn)(void *arg);
	/* Called about once a second as long as a pass gets on, from threads of the run. */
	void (*sign)(void *arg);
	void *arg;
};

/* What waits until it is at rest: a file or folder that was touched, or a file that was too young
 * in a pass. */
struct restless_path {
	char *path;
	uint64_t due_ns; /* when it is looked at, by clock_boot_ns() */
	bool is_new;     /* nobody has looked at it so far */
};

/* In order of the paths. */
struct restless {
	struct restless_path *paths;
	size_t n, cap;
	uint64_t due_ns; /* not later than the first; UINT64_MAX: nothing waits */
};

/* The paths of a pass over some, which are ours. */
struct touched {
	const char **paths;
	size_t n;
};

/* What the run of a pass has stored so far, and when. */
struct stored {
	uint64_t files, kept_bytes;
	double last_s, longest_s; /* since it began; and between two times */
};

/* A job that is watched. Its service reads the members that are not of watched.c alone. */
struct watched {
	struct job job;
	struct watched_sums sums;
	struct push_pass pass; /* its metrics are those of the last pass */
	struct watch_folders *folders;
	/* The exit code of the last pass over all files, or of one over some that came after it and
	 * failed. */
	int code;
	/* Whether the job reaches S3 and its marks: the last pass ended with another exit code than
	 * S3ONCE_EXIT_USAGE, _SETUP and _FENCED, or has found or brought a file there by now. */
	bool is_ready;
	/* Of watched.c alone: */
	const struct watched_service *service;
	struct restless restless;
	uint64_t min_age_ns;
	uint64_t next_whole_ns; /* the next pass over all files */
	uint64_t retry_ns;      /* how long the last one that failed was waited out; 0: it did not
				   fail */
	int whole_code;         /* of the last pass over all files */
	int64_t began_wall_ns;  /* of the pass under way */
	struct stored stored;   /* in it */
	bool is_stopped;        /* a pass gave way: it was over `left`, or next_whole_ns is 0 */
	bool lets_others;       /* what has come to rest is looked at before that pass goes on */
	struct touched left;
	uint64_t signed_ns; /* when the service was told last that a pass gets on */
};

/* Opens the job as job_open(). Its folders are watched from the first pass on, which is due at
 * once. The service is borrowed. 0, or -EINVAL where an error was said. Free it. */
int watched_new(const char *name, int argc, char *const *argv,
	const struct watched_service *service, struct watched **ret);
/* NULL is fine. */
void watched_free(struct watched *watched);

/* Takes in what has happened in the folders. */
void watched_read(struct watched *watched);
/* When the next pass is due, by clock_boot_ns(). */
uint64_t watched_due_ns(const struct watched *watched);
/* Whether the job has anything to look at now but what it is about to try once more. It takes in
 * what has happened. */
bool watched_wants_turn(struct watched *watched);

/* Makes a pass if files wait for one now, and plans the next one. After a pass that failed, all
 * files are looked at again, soon at first and then later and later, but never later than the next
 * full scan.
 *
 * A pass that has gone on for --min-age ends where other jobs want their turn, or where files of
 * its own have come to rest. The job is due at once then: first there is a pass over these files,
 * and the one after it goes on with the rest. A pass ends so only when it has just stored
 * something, and after five times the longest time in which it stored nothing. So whatever the
 * beginning of a pass or one request costs, most of the time is spent on what is stored. */
void watched_pass(struct watched *watched);

/* The last pass, over all files, as by s3once run --final, with a --max-duration until then
 * (clock_boot_ns()). What is left then waits. */
void watched_drain(struct watched *watched, uint64_t until_ns);

/* Whether a pass is due that did not take place: touched folders, or all. */
bool watched_waits(const struct watched *watched);
