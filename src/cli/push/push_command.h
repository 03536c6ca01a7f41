/* One run of `s3once push`, told as its options say. */
#pragma once
#include "cli/push/metrics.h"

/* A run that is one of many of the same job in this process, as s3once watch has them. */
struct push_pass {
	/* Called for each file that is left for later (S3ONCE_EVENT_YOUNG), from threads of the
	 * run. */
	void (*young)(void *arg, const char *path);
	void *arg;
	/* The exit code of the last run over all files. A run over options.run.folders succeeds
	 * only if that one did. */
	int whole_code;
	/* Those of the last pass. They are kept from pass to pass. */
	struct metrics metrics;
	/* Warnings that are not repeated. They are kept from pass to pass. */
	struct text said;
	/* Called several times a second with the counts so far. True: the run ends as at a limit,
	 * with what was begun, so that others get their turn. */
	bool (*gives_way)(void *arg, const struct s3once_counts *counts);
	/* The errors that were told, and are not repeated. The caller empties it when what gave way
	 * is over. */
	struct text told;
	/* Set by push_run(). The counts are zeros if the run never began. */
	struct s3once_counts ret_counts;
	bool ret_gave_way; /* and did not find all of its files done all the same */
};

/* Runs it and returns the exit code. One at a time in a process, since signals stop it. A pass
 * in which nothing happened is not summed up for people, nor is one that gave way, which ends with
 * S3ONCE_EXIT_LIMIT and writes no metrics. NULL: this is the only run. */
int push_run(struct push_options *options, struct push_pass *pass);
