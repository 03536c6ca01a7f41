/* One run of `s3once push`, which is reported as its options say. */
#pragma once
#include "cli/push/metrics.h"

/* A pass: one of many runs of the same job in this process, as s3once watch has them. It goes over
 * all files or, with options.run.folders, over those that were touched. */
struct push_pass {
	/* Called for each file that is left for later (S3ONCE_EVENT_WAITING), from threads of the
	 * run. */
	void (*waits)(void *arg, const char *path);
	void *arg;
	/* Set by the caller: the exit code of the last pass over all files, or S3ONCE_EXIT_LIMIT
	 * while an earlier pass has to go on. The metrics of a pass over touched files that has
	 * succeeded show this code, since its success says nothing of the other files. */
	int whole_code;
	/* The metrics of the last pass, which are kept from pass to pass. */
	struct metrics metrics;
	/* The warnings and notes that were printed and are not repeated. They are kept from pass to
	 * pass. */
	struct text printed_warnings;
	/* Called several times a second with the counts so far. If it returns true, the pass gives
	 * way, so that others get their turn: it finishes what was begun, and ends as at a limit.
	 */
	bool (*gives_way)(void *arg, const struct s3once_counts *counts);
	/* The errors that were printed and are not repeated. The caller empties it once the work of
	 * a pass that gave way is done. */
	struct text printed_errors;
	/* Set by push_run(). The counts are zeros if the run never began. */
	struct s3once_counts ret_counts;
	bool ret_gave_way; /* the pass ended because gives_way() asked for it; false if all of its
			      files were done all the same */
};

/* Runs a push and returns its exit code. Only one can run at a time in a process, since a signal
 * stops it. `pass` is NULL for a run outside s3once watch.
 *
 * No summary is printed for people after a pass in which nothing happened, or which gave way. One
 * that gave way also writes no metrics, sends no notification (notifier.h), and returns
 * S3ONCE_EXIT_LIMIT. */
int push_run(struct push_options *options, struct push_pass *pass);
