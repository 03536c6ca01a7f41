/* One run of `s3once push`, which is reported as its options say. */
#pragma once
#include "cli/push/metrics.h"

/* A pass of s3once watch: one of many runs of the same job in this process, over all files or, with
 * options.run.folders, over those that were touched. */
struct push_pass {
	/* Called for each file that has to wait (S3ONCE_EVENT_WAITING), by threads of the run. */
	void (*waits)(void *arg, const char *path);
	void *arg;
	/* Set by the caller: the exit code of the last pass over all files, or S3ONCE_EXIT_LIMIT
	 * while an earlier pass is unfinished. The metrics of a successful pass over touched files
	 * show this code, since its success does not apply to the other files. */
	int whole_code;
	/* The metrics of the last pass, which are kept from pass to pass. */
	struct metrics metrics;
	/* The printed warnings and notes, which are not repeated, kept from pass to pass. */
	struct text printed_warnings;
	/* Called several times a second with the counts so far. If it returns true, the pass gives
	 * way to others: it finishes the uploads under way, and ends as at a limit.
	 */
	bool (*gives_way)(void *arg, const struct s3once_counts *counts);
	/* The printed errors, which are not repeated. The caller clears it once the work of a pass
	 * that gave way is done. */
	struct text printed_errors;
	/* Set by push_run(). The counts are zeros if the run never began. */
	struct s3once_counts ret_counts;
	bool ret_gave_way; /* the pass ended early because of gives_way(); false if all of its files
			      were done anyway */
};

/* Runs a push and returns its exit code. Only one can run at a time in a process, since a signal
 * stops it. `pass` is NULL for a run outside s3once watch.
 *
 * For people, no summary is printed after a pass without events, or one that gave way. A pass that
 * gave way also writes no metrics, sends no notification (notifier.h), and returns
 * S3ONCE_EXIT_LIMIT. */
int push_run(struct push_options *options, struct push_pass *pass);
