#include "cli/doctor/doctor.h"
#include "marks/judge.h"
#include <stdlib.h>
#include <string.h>

static const char content[] = "a part of s3once doctor\n";

/* One upload of one part. */
struct trial_upload {
	struct doctor_bucket *bucket;
	struct s3_conn *conn;
	struct s3_target target;
	struct sums sums;
	char *id; /* or NULL */
	bool is_open;
	struct s3_part part;
	struct problem problem;
};

static bool report_failed_call(
	struct trial_upload *upload, const char *permission, enum outcome outcome)
{
	if (outcome != OUTCOME_OK)
		doctor_refused(upload->bucket->doctor, DOCTOR_FAILURE, "multipart", permission,
			outcome, &upload->problem);
	return outcome != OUTCOME_OK;
}

/* Creates an upload and sends one part. */
static enum outcome begin_upload(struct trial_upload *upload)
{
	struct doctor_bucket *bucket = upload->bucket;
	const struct call_limits *limits = &bucket->doctor->limits;
	const struct http_body body = {.bytes = strlen(content), .memory = content};
	struct digest digest;
	const enum checksum checksum = s3_checksum(bucket->s3);
	if (digest_init(&digest, s3_wanted_digests(bucket->s3, checksum) | DIGEST_MD5) < 0) {
		problem_set(&upload->problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	digest_update(&digest, content, strlen(content));
	digest_finish(&digest, &upload->sums);
	digest_clear(&digest);
	const struct s3_create create = {
		.target = upload->target, .checksum = checksum, .limits = *limits};
	struct s3_created created = {0};
	enum outcome outcome = s3_create_upload(upload->conn, &create, &created, &upload->problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	upload->id = created.upload_id;
	upload->is_open = true;
	const struct s3_part_put put = {.target = upload->target,
		.upload_id = upload->id,
		.part_number = 1,
		.body = &body,
		.sums = &upload->sums,
		.checksum = checksum,
		.limits = *limits};
	return s3_upload_part(upload->conn, &put, &upload->part, &upload->problem);
}

static int differs_from_part(void *arg, const struct s3_part *part)
{
	struct trial_upload *upload = arg;
	return !(part->part_number == 1 && proof_part(&upload->sums, part) == PROOF_YES);
}

static void check_list(struct trial_upload *upload)
{
	static const char what[] = "list parts";
	struct doctor *doctor = upload->bucket->doctor;
	enum outcome outcome = s3_list_parts(upload->conn, &upload->target, upload->id,
		&doctor->limits, differs_from_part, upload, &upload->problem);
	if (outcome == OUTCOME_OK)
		doctor_find(doctor, DOCTOR_OK, what,
			"ListParts shows parts with their checksums: an upload that broke off goes "
			"on where it was");
	else if (outcome == OUTCOME_LOCAL)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"ListParts shows no checksum of a part: after an interruption all parts "
			"are sent again");
	else if (outcome == OUTCOME_DENIED || outcome == OUTCOME_SETUP)
		doctor_refused(doctor, DOCTOR_FAILURE, what, "s3:ListMultipartUploadParts", outcome,
			&upload->problem);
	else
		doctor_find(doctor, DOCTOR_WARNING, what,
			"this server does not list parts (%s): an upload that broke off is started "
			"again",
			upload->problem.text);
}

static enum outcome complete_upload(struct trial_upload *upload, bool if_none_match)
{
	struct s3_object object;
	enum outcome outcome;
	const struct s3_complete wanted = {.target = upload->target,
		.upload_id = upload->id,
		.parts = &upload->part,
		.n_parts = 1,
		.checksum = s3_checksum(upload->bucket->s3),
		.whole = &upload->sums,
		.condition = {.if_none_match = if_none_match},
		.limits = upload->bucket->doctor->limits};
	outcome = s3_complete_upload(upload->conn, &wanted, &object, &upload->problem);
	upload->is_open = outcome != OUTCOME_OK;
	return outcome;
}

static enum outcome end_upload(struct trial_upload *upload)
{
	enum outcome outcome = OUTCOME_OK;
	const struct call_limits limits = doctor_tidy_limits(upload->bucket->doctor);
	if (upload->id && upload->is_open)
		outcome = s3_abort_upload(
			upload->conn, upload->target.key, upload->id, &limits, &upload->problem);
	free(upload->id);
	upload->id = NULL;
	upload->is_open = false;
	return outcome;
}

/* One that is begun only to be aborted. */
static void check_abort(struct trial_upload *upload)
{
	struct doctor *doctor = upload->bucket->doctor;
	if (report_failed_call(upload, "s3:PutObject", begin_upload(upload)))
		return;
	enum outcome outcome = end_upload(upload);
	if (outcome == OUTCOME_OK || outcome == OUTCOME_NO_UPLOAD)
		doctor_find(doctor, DOCTOR_OK, "abort", "AbortMultipartUpload works");
	else
		doctor_refused(doctor, DOCTOR_WARNING, "abort", "s3:AbortMultipartUpload", outcome,
			&upload->problem);
}

/* Several writers complete uploads of their own under one key. */
static enum outcome prepare_complete(void *arg, unsigned round, struct problem *ret_problem)
{
	struct trial_upload *upload = arg;
	upload->target.key = doctor_key(upload->bucket);
	return OUTCOME_OK;
}

static enum outcome write_complete(void *arg, struct racer *racer, struct problem *ret_problem)
{
	const struct trial_upload *shared = arg;
	struct trial_upload upload = {
		.bucket = shared->bucket, .conn = racer->s3, .target = shared->target};
	enum outcome outcome = begin_upload(&upload);
	racer_ready(racer);
	if (outcome == OUTCOME_OK)
		outcome = complete_upload(&upload, true);
	*ret_problem = upload.problem;
	end_upload(&upload);
	return outcome;
}

/* Completes an upload over an object that is there, which is to be refused. */
static void check_condition(struct trial_upload *upload)
{
	static const char what[] = "conditional complete";
	static const char else_push[] = "push looks right before it completes an upload instead";
	struct doctor *doctor = upload->bucket->doctor;
	struct trial_upload contested = {.bucket = upload->bucket};
	const struct race race = {.s3 = upload->bucket->s3,
		.prepare = prepare_complete,
		.write = write_complete,
		.arg = &contested};
	if (report_failed_call(upload, "s3:PutObject", begin_upload(upload)))
		return;
	enum outcome outcome = complete_upload(upload, true);
	if (outcome == OUTCOME_REFUSED)
		doctor_tell_race(upload->bucket, &race, what, "If-None-Match",
			S3_COMPLETE_CONDITION, else_push);
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_UNSUPPORTED)
		doctor_find(doctor, DOCTOR_WARNING, what, "If-None-Match is %s by this server: %s",
			outcome == OUTCOME_OK ? "ignored" : "refused", else_push);
	else
		doctor_refused(
			doctor, DOCTOR_WARNING, what, "s3:PutObject", outcome, &upload->problem);
}

/* With the condition, which a policy may demand, unless the server does not know it. */
static enum outcome complete_first(struct trial_upload *upload)
{
	const enum outcome outcome = complete_upload(upload, true);
	return outcome == OUTCOME_UNSUPPORTED ? complete_upload(upload, false) : outcome;
}

static void try_out(struct trial_upload *upload)
{
	if (report_failed_call(upload, "s3:PutObject", begin_upload(upload)))
		return;
	check_list(upload);
	if (report_failed_call(upload, "s3:PutObject", complete_first(upload)))
		return;
	doctor_find(upload->bucket->doctor, DOCTOR_OK, "multipart",
		"create, upload of a part and complete work");
	end_upload(upload);
	check_condition(upload);
	end_upload(upload);
	check_abort(upload);
}

void doctor_multipart(struct doctor_bucket *bucket)
{
	struct trial_upload upload = {
		.bucket = bucket, .conn = bucket->conn, .target = {.key = doctor_key(bucket)}};
	try_out(&upload);
	end_upload(&upload);
}
