/* Functions that the commands about marks and their objects share: opening a bucket, and reporting
 * the fates of marks. */
#pragma once
#include "audit/fleet.h"
#include "audit/forget.h"
#include "audit/manifest_fetch.h"
#include "cli/commands.h"
#include "cli/options/values.h"
#include <stdatomic.h>

#define MANIFEST_PATIENCE_MS 60000 /* patience_ms of each request for a manifest */
/* A bucket and its marks. Zero it to start. */
struct audit_bucket {
	struct mark_space space;          /* the space of the marks */
	const struct s3_headers *keys[2]; /* the key for SSE-C as a list, which ends in NULL */
	struct audit_place place; /* its s3 is NULL without a bucket, its store without marks */
	EVP_PKEY *public_key;     /* the key that checks manifests; NULL: none was given */
	/* Set by audit_open_manifests(). The caller may then change the limits of it. */
	struct manifest_place manifests;
};
/* Opens the marks that were chosen, and sets *ret except for the bucket and the members about
 * manifests. A signal ends the requests. Returns false if the frame has a problem. *ret borrows
 * from the frame. */
bool audit_open_marks(struct command_frame *frame, const char *bucket, struct audit_bucket *ret);
/* Likewise, and opens the bucket as well. */
bool audit_open(struct command_frame *frame, const char *bucket, struct audit_bucket *ret);
/* Opens the bucket without marks, for the commands that read manifests. The key of the URL is the
 * prefix of the runs. `public_key_file` may be NULL. The requests have MANIFEST_PATIENCE_MS, unless
 * the caller changes that, and no signal ends them. frame->code becomes S3ONCE_EXIT_SETUP, which
 * the caller replaces after a success. Otherwise as audit_open(), but the caller frees
 * ret->public_key in any case. */
bool audit_open_manifests(struct command_frame *frame, const struct s3_url *url,
	const char *public_key_file, struct audit_bucket *ret);
/* Returns the exit code of forget or gc. is_complete: the command came to its end; otherwise
 * `signal` has stopped it, or the frame has the problem if `signal` is 0. After the end, a signal
 * came too late to stop anything, and does not count. is_wrong: something was reported that makes
 * the exit code S3ONCE_EXIT_FILES. The problem is removed from the frame, so that it is not
 * printed, unless the command failed. */
int audit_exit_code(struct command_frame *frame, bool is_complete, int signal, bool is_wrong);
/* Reports the fates of marks for `forget` and `gc`, for people or as JSON, and counts them. */
struct fates {
	struct command_frame *frame;
	const char *bucket;
	atomic_ulong counts[FATES], all; /* numbers of marks with each fate, and with any fate */
};
/* The `report` of a struct mark_reporter, whose arg is a struct fates. Thread-safe. */
void fates_print(void *arg, const struct mark_report *report);
/* Returns the last event of a command, with the number of marks that had each of these n fates. */
json_t *fates_json(
	const struct fates *fates, const char *event, const enum mark_fate *which, size_t n);

/* The sums over all jobs passed to fleet_print_job(). Each job counts as FINE, FAILED, OVERDUE,
 * SILENT or LOST, so that these five add up to all jobs. RUNNING, WAITING and REPEATING jobs are
 * counted there, too. */
enum fleet_sum {
	FLEET_SUM_FINE,
	FLEET_SUM_RUNNING,
	FLEET_SUM_FAILED,
	FLEET_SUM_OVERDUE,
	FLEET_SUM_SILENT,
	FLEET_SUM_LOST,
	FLEET_SUM_WAITING,
	FLEET_SUM_REPEATING,
	FLEET_SUMS
};
/* Shows jobs of hosts, for people or as JSON. `s3once fleet` shows all jobs. `s3once status` shows
 * those whose target is its operand, or above or below that. */
struct fleet_view {
	struct command_frame *frame;
	/* Takes a line for people, without its newline. NULL: the frame prints it. */
	void (*put)(void *arg, const char *line);
	void *put_arg;
	int only_wrong; /* jobs that are fine are counted, but not shown, unless they wait or repeat
			   for long */
	/* The failures of the job's last run, one a line. Set it before each job. NULL: only the
	 * last error of the run is shown. */
	const char *failures;
	/* Counted by fleet_print_job(). Zero them to start. */
	uint64_t jobs, sums[FLEET_SUMS];
};
void fleet_print_job(struct fleet_view *view, const struct fleet_job *job);
