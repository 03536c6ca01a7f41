#include "base/clock.h"
#include "base/quote.h"
#include "base/random.h"
#include "cli/doctor/doctor.h"
#include "cli/signals.h"
#include "marks/bucket_conditions.h"
#include "s3/s3.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_WARN_S 60 /* well before requests are refused */
#define UPLOADS_MAX  64 /* that one run of the probes can leave, retries included */

static bool check_reachable(struct doctor_bucket *bucket, const char *name)
{
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	const enum outcome outcome = s3_look_for_bucket(bucket->conn, &doctor->limits, &problem);
	char region[64];
	service_region(s3_service(bucket->s3), region, sizeof region);
	if (outcome == OUTCOME_OK)
		doctor_find(doctor, DOCTOR_OK, "bucket", "%s is there, in %s", quote(name).text,
			quote(region).text);
	else if (outcome == OUTCOME_DENIED)
		doctor_find(doctor, DOCTOR_OK, "bucket",
			"whether %s is there cannot be seen without s3:ListBucket, which push does "
			"not need",
			quote(name).text);
	else if (outcome == OUTCOME_ABSENT)
		doctor_find(doctor, DOCTOR_FAILURE, "bucket",
			"there is no bucket %s: create it, or check its name and the endpoint",
			quote(name).text);
	else
		doctor_refused(
			doctor, DOCTOR_FAILURE, "bucket", "s3:ListBucket", outcome, &problem);
	return outcome == OUTCOME_OK || outcome == OUTCOME_DENIED;
}

static void check_clock(struct doctor_bucket *bucket)
{
	long long off_s = (long long)(clock_wall_ns() / (int64_t)NS_PER_S -
				      service_time_s(s3_service(bucket->s3)));
	if (llabs(off_s) < CLOCK_WARN_S)
		doctor_find(bucket->doctor, DOCTOR_OK, "clock", "as the server's");
	else
		doctor_find(bucket->doctor, DOCTOR_WARNING, "clock",
			"%lld s %s the server's: requests are signed by the server's time; set "
			"this host's",
			llabs(off_s), off_s > 0 ? "ahead of" : "behind");
}

static void check_lifecycle(struct doctor_bucket *bucket, const char *prefix)
{
	static const char what[] = "lifecycle rule";
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	unsigned days = 0;
	enum outcome outcome =
		s3_get_abort_days(bucket->conn, prefix, &doctor->limits, &days, &problem);
	if (outcome == OUTCOME_OK && days)
		doctor_find(doctor, DOCTOR_OK, what, "unfinished uploads are aborted after %u days",
			days);
	else if (outcome == OUTCOME_OK)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"nothing aborts uploads that nobody finishes, and they cost as much as "
			"objects: add a rule with AbortIncompleteMultipartUpload");
	else if (outcome == OUTCOME_DENIED)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"cannot be seen without s3:GetLifecycleConfiguration: have one that aborts "
			"unfinished uploads");
	else
		doctor_find(doctor, DOCTOR_WARNING, what,
			"this server shows none: unfinished uploads stay until somebody aborts "
			"them");
}

/* Says that something may be left. */
static void tell_left(struct doctor_bucket *bucket, const char *what, const char *permission,
	enum outcome outcome, const struct problem *problem)
{
	struct problem named = *problem;
	problem_prefix(&named, "%s may be left, remove them", what);
	doctor_refused(bucket->doctor, DOCTOR_WARNING, "clean-up", permission, outcome, &named);
}

struct left {
	char *keys[UPLOADS_MAX], *ids[UPLOADS_MAX];
	size_t n;
};

static int keep_upload(void *arg, const struct s3_upload *upload)
{
	struct left *left = arg;
	left->keys[left->n] = strdup(upload->key);
	left->ids[left->n] = strdup(upload->upload_id);
	if (!left->keys[left->n] || !left->ids[left->n]) {
		free(left->keys[left->n]);
		free(left->ids[left->n]);
		return -1;
	}
	return ++left->n == UPLOADS_MAX;
}

/* Uploads whose id is not known, since a signal came before the reply. */
static void abort_uploads(struct doctor_bucket *bucket)
{
	const struct call_limits limits = doctor_tidy_limits(bucket->doctor);
	struct left left = {0};
	struct problem problem = {0};
	enum outcome outcome = s3_list_uploads(
		bucket->conn, bucket->prefix, &limits, keep_upload, &left, &problem);
	for (size_t i = 0; i < left.n; i++) {
		enum outcome o =
			s3_abort_upload(bucket->conn, left.keys[i], left.ids[i], &limits, &problem);
		if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD)
			outcome = o;
		free(left.keys[i]);
		free(left.ids[i]);
	}
	if (outcome != OUTCOME_OK)
		tell_left(bucket, "uploads of probes", "s3:ListBucketMultipartUploads", outcome,
			&problem);
}

static void remove_probes(struct doctor_bucket *bucket)
{
	const struct call_limits limits = doctor_tidy_limits(bucket->doctor);
	struct problem problem = {0};
	enum outcome left = OUTCOME_OK;
	bucket->doctor->is_tidying = true;
	if (signals_came())
		abort_uploads(bucket);
	for (unsigned i = 0; i < bucket->n_keys; i++) {
		struct problem why = {0};
		const enum outcome outcome =
			s3_delete_object(bucket->conn, bucket->keys[i], &limits, &why);
		if (outcome == OUTCOME_OK || outcome == OUTCOME_ABSENT || left != OUTCOME_OK)
			continue;
		left = outcome;
		problem = why;
	}
	if (left != OUTCOME_OK) {
		struct text what = TEXT(4096);
		text_add(&what, "probe objects ");
		text_add_escaped_string(&what, bucket->prefix);
		text_add(&what, "*");
		tell_left(bucket, text_string(&what), "s3:DeleteObject, which push does not", left,
			&problem);
		text_clear(&what);
	}
	bucket->doctor->is_tidying = false;
}

/* Below the prefix as push makes it: "logs" stands for "logs/". */
static void name_probes(struct doctor_bucket *bucket, const char *prefix)
{
	char id[ID_CHARS + 1];
	size_t n = strlen(prefix);
	const char *slash = n && prefix[n - 1] != '/' ? "/" : "";
	random_id(id);
	snprintf(bucket->prefix, sizeof bucket->prefix, "%s%s.s3once-doctor-%s", prefix, slash, id);
}

void doctor_look_at_bucket(struct doctor *doctor, const struct s3_url *url)
{
	struct doctor_bucket bucket = {.doctor = doctor};
	struct problem problem = {0};
	const struct services *services = &doctor->services;
	if (s3_open(services->aws, services->http, url->bucket, &bucket.s3, &problem) < 0) {
		doctor_find(doctor, DOCTOR_FAILURE, "bucket", "%s", problem.text);
		return;
	}
	if (s3_conn_new(bucket.s3, &bucket.conn) < 0) {
		doctor_find(doctor, DOCTOR_FAILURE, "bucket", "out of memory or descriptors");
	} else if (check_reachable(&bucket, url->bucket)) {
		check_clock(&bucket);
		name_probes(&bucket, url->key);
		doctor_begin_probes(doctor);
		const bool works = doctor_puts(&bucket);
		if (works) {
			doctor_names(&bucket);
			doctor_settings(&bucket);
			doctor_multipart(&bucket);
		}
		if (works || signals_came())
			remove_probes(&bucket);
		doctor_end_probes(doctor);
		check_lifecycle(&bucket, url->key);
		if (works && !signals_came()) {
			snprintf(doctor->bucket, sizeof doctor->bucket, "%s", url->bucket);
			conditions_note(&doctor->conditions, bucket.s3);
		}
	}
	s3_conn_free(bucket.conn);
	s3_close(bucket.s3);
}
