/* What the commands about marks and their objects share: the bucket, which they open besides the
 * marks, and how they tell of marks. */
#pragma once
#include "audit/fleet.h"
#include "audit/forget.h"
#include "audit/object_stream.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options/url.h"
#include "cli/output.h"
#include <stdatomic.h>

/* The bucket that the marks of a frame are about. */
struct audit_bucket {
	struct mark_space space;
	struct s3 *s3;            /* NULL: it was not asked for */
	struct audit_place place; /* of the above. A signal ends its requests. */
};
/* Opens the marks and the bucket. False: the frame says why. Close it in any case, before
 * frame_end(). */
bool audit_open(
	struct command_frame *frame, const char *bucket, bool needs_s3, struct audit_bucket *ret);
void audit_close(struct audit_bucket *bucket);
/* The one operand: `what` ("s3://BUCKET[/PREFIX]") is asked for, and `if_none` said if it is
 * missing. False with a sentence. */
bool audit_read_url(
	struct command_frame *frame, const char *what, const char *if_none, struct s3_url *ret);
/* The exit code of forget and gc: what went wrong is left to the frame unless a signal was the
 * reason. `is_wrong`: something that was told is not in order. */
int audit_code(struct command_frame *frame, bool ok, int stopped_by, bool is_wrong);
/* A prefix as push makes it, of the key of a URL: "logs" stands for "logs/". */
struct audit_prefix {
	char text[KEY_BYTES_MAX + 2];
};
struct audit_prefix audit_prefix(const char *key);
bool audit_is_stopped(void *arg); /* whether a signal came */

/* --json, an int. */
extern const struct option audit_json_options[];

/* The key of the caller's own that objects are encrypted with. *ret stays NULL without a file.
 * False with a sentence. Free it in any case. */
bool audit_headers(const char *key_file, struct s3_headers **ret, struct problem *ret_problem);

#define MANIFEST_PATIENCE_MS 60000 /* with each request for one */
/* A bucket without marks, for the commands that read manifests. */
struct manifest_bucket {
	struct s3 *s3;
	struct s3_conn *conn;
	struct s3_headers *headers;
	EVP_PKEY *public_key;        /* NULL: none was given */
	struct manifest_place place; /* of the above; its limits may be set */
};
/* Opens the services and the bucket of the URL, whose key is the prefix of the runs. The files may
 * be NULL. False: the frame says why, and the code is S3ONCE_EXIT_SETUP. Close it in any case,
 * before frame_end(). */
bool manifest_bucket_open(struct command_frame *frame, const struct s3_url *url,
	const char *sse_c_key_file, const char *public_key_file, struct manifest_bucket *ret);
void manifest_bucket_close(struct manifest_bucket *bucket);

/* What `forget` and `gc` did about marks, told to people or as JSON, and counted. */
struct fates {
	struct output *output;
	const char *bucket;
	bool json;
	atomic_ulong counts[FATES];
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
	bool json;
	bool only_wrong; /* what is fine is not told */
	/* What failed in the job's last run, line by line; NULL: only its last error is told. Set
	 * it before each job. */
	const char *failures;
	/* Counted as they are told; zero them to start. */
	uint64_t jobs, sums[FLEET_SUMS];
};
void fleet_tell_job(struct fleet_view *view, const struct fleet_job *job);
