/* What the commands about marks and their objects share: the bucket, which they open besides the
 * marks, and how they tell of marks. */
#pragma once
#include "audit/fleet.h"
#include "audit/forget.h"
#include "audit/object_stream.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options/values.h"
#include <stdatomic.h>

#define MANIFEST_PATIENCE_MS 60000 /* with each request for one */
/* A bucket, and what is known of it. Zero it to start. */
struct audit_bucket {
	struct mark_space space;    /* of the marks */
	struct s3_headers *headers; /* with the key of the caller's own; NULL: none was given */
	struct audit_place place;   /* its s3 is NULL if that was not asked for */
	EVP_PKEY *public_key;       /* of manifests; NULL: none was given */
	struct manifest_place manifests; /* of the above; its limits may be set */
};
/* Opens the marks that were chosen, and the bucket that they are about, whose objects are encrypted
 * with the key of a file, which may be NULL. A signal ends the requests. False: the frame says why.
 * Close it in any case, before frame_end(). */
bool audit_open(struct command_frame *frame, const char *bucket, bool needs_s3,
	const char *key_file, struct audit_bucket *ret);
/* The same without marks, for the commands that read manifests: the key of the URL is the prefix of
 * the runs. Both files may be NULL. The requests have MANIFEST_PATIENCE_MS, and no signal ends them.
 * The code is S3ONCE_EXIT_SETUP from then on. */
bool audit_open_manifests(struct command_frame *frame, const struct s3_url *url,
	const char *key_file, const char *public_key_file, struct audit_bucket *ret);
void audit_close(struct audit_bucket *bucket);
/* The exit code of forget and gc: what went wrong is left to the frame unless a signal was the
 * reason. `is_wrong`: something that was told is not in order. */
int audit_code(struct command_frame *frame, bool ok, int stopped_by, bool is_wrong);
/* A prefix as push makes it, of the key of a URL: "logs" stands for "logs/". */
struct audit_prefix {
	char text[KEY_BYTES_MAX + 2];
};
struct audit_prefix audit_prefix(const char *key);

/* --json, an int. */
extern const struct option audit_json_options[];

/* What `forget` and `gc` did about marks, told to people or as JSON, and counted. */
struct fates {
	struct output *output;
	const char *bucket;
	int json;
	atomic_ulong counts[FATES], all;
};
/* For struct mark_teller; arg is the fates. Thread-safe. */
void fates_tell(void *arg, const struct mark_told *told);
/* The event that ends a run: how many marks had each of these fates. */
json_t *fates_json(
	const struct fates *fates, const char *event, const enum mark_fate *which, size_t n);

/* The jobs of hosts, told to people or as JSON: by `s3once fleet`, and by `s3once status` of those
 * that upload what it was asked about. The sums are over the jobs that were told. */
enum fleet_sum { FLEET_SUM_FINE, FLEET_SUMS = 6 };
struct fleet_view {
	struct output *output;
	int json, only_wrong; /* what is fine is not told */
	/* What failed in the job's last run, line by line; NULL: only its last error is told. Set
	 * it before each job. */
	const char *failures;
	/* Counted as they are told; zero them to start. */
	uint64_t jobs, sums[FLEET_SUMS];
};
void fleet_tell_job(struct fleet_view *view, const struct fleet_job *job);
