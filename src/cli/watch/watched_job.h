/* One job of `s3once watch`: its passes and their times. A pass is a run like that of `s3once run`,
 * over all files, or over the files and folders that were touched. The functions are called by one
 * thread at a time. */
#pragma once
#include "cli/push/push_command.h"
#include "cli/watch/pending_paths.h"
#include "cli/watch/watch_folders.h"

/* The sums over all passes of a job. */
struct watched_sums {
	uint64_t whole, some;  /* passes over all files, and over some files; a pass that gave way
				  and went on counts once */
	uint64_t failed;       /* passes that did not end with exit status 0 */
	uint64_t files, bytes; /* uploaded */
};

/* The service that a job belongs to. */
struct watched_service {
	/* Returns whether another job than that of the current pass is due. */
	bool (*others_want_turn)(void *arg);
	/* Called at most once a second while a pass makes progress or folders are found, by the
	 * thread that makes the passes or by threads of a run, one call at a time. */
	void (*sign)(void *arg);
	void *arg;
};

/* The amount that the current pass has stored so far, and the time of the last progress. */
struct stored {
	uint64_t files, bytes_kept; /* bytes_kept as in struct s3once_counts */
	/* The time of the last progress, in seconds since the run began, and the longest time
	 * without progress. */
	double last_s, longest_s;
};

/* Whether a pass has ended, or gave way and has to continue: over the paths in watched->left, or,
 * if next_whole_ns is 0, over all files.
 *
 *   ENDED --gives way--> GAVE_WAY --a pass over files at rest--> GOES_ON
 *     ^--------- the pass goes on, and ends -----+------------------+
 */
enum last_pass {
	PASS_ENDED,    /* no pass is unfinished */
	PASS_GAVE_WAY, /* files at rest get a pass before the unfinished one continues */
	PASS_GOES_ON,  /* the unfinished pass continues next, even if files are at rest */
};

/* A watched job. watch_command.c uses the members before `service`. */
struct watched {
	struct job job;
	struct watched_sums sums;
	struct push_pass pass; /* its metrics are those of the last pass */
	struct watch_folders *folders;
	/* The exit code of the last pass over all files, or of a later pass over some files that
	 * failed. */
	int code;
	/* Whether the job reaches S3 and its marks. It does if the last pass did not end with
	 * S3ONCE_EXIT_USAGE, _SETUP or _FENCED, or if a pass has since found a file done or stored
	 * something. */
	bool is_ready;
	/* Used by watched_job.c alone: */
	const struct watched_service *service;
	struct pending_paths pending;
	uint64_t min_age_ns;    /* --min-age, or its default */
	uint64_t next_whole_ns; /* time at which the next pass over all files is due */
	uint64_t retry_ns;     /* the wait after the last failed pass; 0: no pass has failed since a
				  pass over all files succeeded */
	int whole_code;        /* the exit code of the last pass over all files */
	int64_t began_wall_ns; /* beginning of the current pass */
	struct stored stored;  /* the amount that the current pass has stored */
	enum last_pass last_pass;
	struct path_list left; /* the paths of the pass that gave way */
	uint64_t last_sign_ns; /* time of the last sign of life */
};

/* Opens the job as job_open() does. Its folders are watched from the first pass on, which is due at
 * once. The service is borrowed. Returns 0, or -EINVAL after an error was logged. Free it with
 * watched_free(). */
int watched_new(const char *name, int argc, char *const *argv,
	const struct watched_service *service, struct watched **ret);
/* NULL is fine. */
void watched_free(struct watched *watched);

/* Reads the events of the folders. */
void watched_read(struct watched *watched);
/* Returns the clock_boot_ns() at which the next pass is due. */
uint64_t watched_due_ns(const struct watched *watched);
/* Reads the events of the folders, and returns whether the job wants a pass now: its last pass is
 * unfinished, the pass over all files is due, or files have come to rest. A pass that only repeats
 * one that failed does not count. */
bool watched_wants_turn(struct watched *watched);

/* Makes the pass that is due now, if there is one, and plans the next pass. A failed pass is
 * followed by another one over all files: at first soon, then after longer and longer waits, but
 * not later than the next full scan.
 *
 * A pass that has lasted for --min-age gives way if other jobs want their turn, or if files of this
 * job have come to rest. Then the job is due at once. A pass over the files at rest comes first,
 * and then the pass that gave way continues.
 *
 * A pass gives way only when it has just stored something, and has lasted five times as long as its
 * longest time without storing anything. So most of the time is spent on storing, even if the
 * beginning of a pass or a request takes long. */
void watched_pass(struct watched *watched);

/* Makes the last pass, over all files, like `s3once run --final` with a --max-duration that ends at
 * this clock_boot_ns(). watched_leaves_files() then returns whether files are left. */
void watched_drain(struct watched *watched, uint64_t until_ns);

/* Returns whether files are left for a pass that did not take place: touched and unchecked files or
 * folders, or all files. */
bool watched_leaves_files(const struct watched *watched);
