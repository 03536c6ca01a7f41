/* One run of `s3once push`, told as its options say. */
#pragma once
#include "base/text.h"
#include "cli/push_options.h"

/* A run that is one of many of the same job in this process, as s3once watch has them. */
struct push_pass {
	/* Called for each file that is left for later (S3ONCE_EVENT_YOUNG), from threads of the
	 * run. */
	void (*young)(void *arg, const char *path);
	void *arg;
	int whole_code; /* with which the last run over all files ended: options.run.folders are
			   well only if these are */
	bool is_first;
	struct text said; /* warnings that need not be said again; kept from pass to pass */
	struct s3once_counts ret_counts; /* set by push_run_pass(); zeros if the run never began */
};

/* Runs it and returns the exit code. One at a time in a process, since signals stop it. */
int push_run(struct push_options *options);
/* The same as a pass: the service manager's watchdog is fed as long as the run is not stuck, and a
 * pass in which nothing happened is not summed up for people. */
int push_run_pass(struct push_options *options, struct push_pass *pass);
