/* What the server really does with uploads, for `s3once doctor`: PutObject and multipart uploads,
 * with what proves them, the checksums that it verifies, and the conditions that it honours, also
 * when several write at once. What it learns of the conditions is kept in *s3, for the marks. */
#include "aws/settings.h"
#include "cli/doctor/doctor.h"
#include "marks/judge.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char first[] = "s3once doctor was here\n", other[] = "s3once doctor was here again\n";

static void check_proof(struct doctor_bucket *bucket, const char *key, const struct sums *sums,
	const struct s3_object *put)
{
	static const char what[] = "proof";
	struct doctor *doctor = bucket->doctor;
	const struct s3_target target = {.key = key};
	struct s3_object seen = {0};
	struct problem problem = {0};
	enum outcome outcome =
		s3_head_object(bucket->conn, &target, &doctor->limits, &seen, &problem);
	bool by_reply = proof_whole(sums, put, false) == PROOF_YES;
	if (outcome == OUTCOME_OK && proof_whole(sums, &seen, true) == PROOF_YES)
		doctor_find(doctor, DOCTOR_OK, what, "HEAD shows that the object is what was sent");
	else if (outcome == OUTCOME_OK)
		doctor_find(doctor, by_reply ? DOCTOR_WARNING : DOCTOR_FAILURE, what,
			"HEAD shows no checksum to compare with%s",
			by_reply ? ", but the reply to PutObject does: what is there already "
				   "cannot be distinguished from other content"
				 : ", nor does the reply to PutObject: no upload can be proven");
	else
		doctor_refused(doctor, by_reply ? DOCTOR_WARNING : DOCTOR_FAILURE, what,
			by_reply ? "s3:GetObject to recognise content that is there already"
				 : "s3:GetObject, since the reply to PutObject proves nothing",
			outcome, &problem);
}

/* Whether PutObject notices a digest that is wrong. 1 or 0, or -1 if that cannot be known. */
static int notices(struct doctor_bucket *bucket, unsigned kind)
{
	const unsigned payload =
		s3_wanted_digests(bucket->s3, CHECKSUM_MD5) & DIGEST_SHA256 & ~kind;
	struct sums sums;
	struct s3_object object;
	struct problem problem = {0};
	const struct doctor_probe probe = {.key = doctor_key(bucket),
		.content = first,
		.is_new = true,
		.kinds = kind | payload,
		.spoil = kind};
	enum outcome outcome = doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	return outcome == OUTCOME_BAD_DIGEST || outcome == OUTCOME_INVALID ? 1
	       : outcome == OUTCOME_OK                                     ? 0
									   : -1;
}

static void check_digests(struct doctor_bucket *bucket, const struct s3_object *put_object)
{
	static const char what[] = "checksums";
	struct doctor *doctor = bucket->doctor;
	const enum checksum checksum = s3_checksum(bucket->s3);
	const char *header = checksum_kinds[checksum].header;
	const bool is_kept = put_object->sum.text[0] && put_object->sum.kind == checksum;
	int by_sum = header ? notices(bucket, DIGEST_OF(checksum)) : 0;
	int by_md5 = notices(bucket, DIGEST_MD5);
	if (by_sum > 0 && is_kept)
		doctor_find(
			doctor, DOCTOR_OK, what, "%s is verified and kept by the server", header);
	else if (by_md5 > 0 && !header)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"no x-amz-checksum- header is sent, as asked for (checksum, "
			"request_checksum_calculation); Content-MD5 is verified, which costs CPU");
	else if (by_md5 > 0)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"%s is %s by this server; Content-MD5 is verified and sent instead, which "
			"costs CPU",
			header, is_kept ? "not verified" : "ignored");
	else if (by_md5 == 0)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"this server verifies neither %s%sContent-MD5: a byte that changes on the "
			"way is noticed only afterwards",
			header ? header : "", header ? " nor " : "");
	else
		doctor_find(doctor, DOCTOR_WARNING, what, "could not be tried out");
}

/* One that several writers put at once, and what they know of it. */
struct contested {
	struct doctor_bucket *bucket;
	const char *key;
	bool replaces;
	struct s3_object object; /* that is to be replaced */
};

static enum outcome prepare_put(void *arg, unsigned round, struct problem *ret_problem)
{
	struct contested *contested = arg;
	struct doctor_bucket *bucket = contested->bucket;
	struct sums sums;
	contested->key = doctor_key(bucket);
	const struct doctor_probe plain = {.key = contested->key, .content = first, .is_new = true};
	return contested->replaces ? doctor_put(bucket->conn, bucket, &plain, &sums,
					     &contested->object, ret_problem)
				   : OUTCOME_OK;
}

/* Each writes content of its own, since the etag of equal content would still be that which the
 * others name. */
static enum outcome write_put(void *arg, struct racer *racer, struct problem *ret_problem)
{
	const struct contested *contested = arg;
	struct sums sums;
	struct s3_object object;
	char content[64];
	snprintf(content, sizeof content, "writer %u of s3once doctor\n", racer->number);
	const struct doctor_probe probe = {.key = contested->key,
		.content = content,
		.condition = {.if_none_match = !contested->replaces,
			.if_match = contested->replaces ? contested->object.etag : NULL}};
	racer_ready(racer);
	return doctor_put(racer->s3, contested->bucket, &probe, &sums, &object, ret_problem);
}

/* Says what a race of this header came to. If exactly one writer won each round, *s3 learns that
 * the condition is honoured. `else_push` is what push does instead. */
static void tell_race(struct doctor_bucket *bucket, const struct race *race, const char *what,
	const char *header, enum s3_ability ability, const char *else_push)
{
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	const unsigned winners = s3_is_aws(bucket->s3) ? 1 : doctor_race(race, &problem);
	s3_learn(bucket->s3, ability, winners == 1);
	if (winners == 1)
		doctor_find(doctor, DOCTOR_OK, what, "%s is honoured%s", header,
			s3_is_aws(bucket->s3) ? "" : ", also when several write at once");
	else if (winners > 1)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"%s is honoured only when one writes after another: of %u that wrote at "
			"once %u were told that they had won, so %s",
			header, DOCTOR_WRITERS, winners, else_push);
	else
		doctor_find(doctor, DOCTOR_WARNING, what,
			"%s is honoured when one writes after another; what happens when several "
			"write at once could not be tried out, so %s: %s",
			header, else_push, problem.text);
}

static void check_if_none_match(struct doctor_bucket *bucket, const char *key, bool is_refused)
{
	static const char what[] = "conditional put";
	static const char else_push[] = "push looks right before each upload instead, and what "
					"someone else writes in between is replaced";
	const struct doctor_probe again = {
		.key = key, .content = other, .condition = {.if_none_match = true}};
	struct doctor *doctor = bucket->doctor;
	struct contested contested = {.bucket = bucket};
	const struct race race = {
		.s3 = bucket->s3, .prepare = prepare_put, .write = write_put, .arg = &contested};
	struct sums sums;
	struct s3_object object;
	struct problem problem = {0};
	enum outcome outcome =
		is_refused ? OUTCOME_UNSUPPORTED
			   : doctor_put(bucket->conn, bucket, &again, &sums, &object, &problem);
	if (outcome == OUTCOME_REFUSED)
		tell_race(bucket, &race, what, "If-None-Match", S3_PUT_CONDITION, else_push);
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_UNSUPPORTED)
		doctor_find(doctor, DOCTOR_WARNING, what, "If-None-Match is %s by this server: %s",
			outcome == OUTCOME_OK ? "ignored" : "refused", else_push);
	else
		doctor_refused(doctor, DOCTOR_WARNING, what, "s3:PutObject", outcome, &problem);
}

/* What a PUT under If-Match does with the right etag and with a wrong one. */
static void check_if_match(struct doctor_bucket *bucket)
{
	static const char what[] = "conditional replace";
	static const char else_push[] =
		"--if-changed=replace looks right before the upload instead";
	struct doctor *doctor = bucket->doctor;
	struct contested contested = {.bucket = bucket, .replaces = true};
	const struct race race = {
		.s3 = bucket->s3, .prepare = prepare_put, .write = write_put, .arg = &contested};
	struct sums sums;
	struct s3_object ignored;
	struct problem problem = {0};
	enum outcome outcome = prepare_put(&contested, 0, &problem), wrong = outcome;
	if (outcome == OUTCOME_OK) {
		const struct doctor_probe right = {.key = contested.key,
			.content = other,
			.condition = {.if_match = contested.object.etag}};
		outcome = doctor_put(bucket->conn, bucket, &right, &sums, &ignored, &problem);
		wrong = outcome == OUTCOME_OK ? doctor_put(bucket->conn, bucket, &right, &sums,
							&ignored, &problem)
					      : outcome;
	}
	if (outcome == OUTCOME_OK && wrong == OUTCOME_REFUSED)
		tell_race(bucket, &race, what, "If-Match", S3_IF_MATCH, else_push);
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED ||
		 outcome == OUTCOME_UNSUPPORTED)
		doctor_find(doctor, DOCTOR_WARNING, what, "If-Match is %s by this server: %s",
			outcome == OUTCOME_OK        ? "ignored"
			: outcome == OUTCOME_REFUSED ? "not read as RFC 9110 writes it"
						     : "refused",
			else_push);
	else if (outcome == OUTCOME_DENIED)
		doctor_refused(doctor, DOCTOR_WARNING, what,
			"s3:GetObject for If-Match, or are under a policy that lets objects only be "
			"made: --if-changed=replace can replace nothing here",
			outcome, &problem);
	else
		doctor_refused(doctor, DOCTOR_WARNING, what, "s3:PutObject", outcome, &problem);
}

bool doctor_puts(struct doctor_bucket *bucket)
{
	struct doctor *doctor = bucket->doctor;
	const struct doctor_probe probe = {.key = doctor_key(bucket),
		.content = first,
		.is_new = true,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) | DIGEST_MD5};
	struct sums sums;
	struct s3_object object = {0};
	struct problem problem = {0};
	enum outcome conditional =
		doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	enum outcome outcome = conditional;
	if (conditional == OUTCOME_UNSUPPORTED) {
		s3_learn(bucket->s3, S3_PUT_CONDITION, false);
		outcome = doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	}
	if (outcome != OUTCOME_OK) {
		doctor_refused(doctor, DOCTOR_FAILURE, "put", "s3:PutObject", outcome, &problem);
		return false;
	}
	doctor_find(doctor, DOCTOR_OK, "put", "PutObject works");
	check_proof(bucket, probe.key, &sums, &object);
	check_digests(bucket, &object);
	check_if_none_match(bucket, probe.key, conditional == OUTCOME_UNSUPPORTED);
	check_if_match(bucket);
	return true;
}

static const char part_content[] = "a part of s3once doctor\n";

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
	const struct http_body body = {.bytes = strlen(part_content), .memory = part_content};
	struct digest digest;
	const enum checksum checksum = s3_checksum(bucket->s3);
	if (digest_init(&digest, s3_wanted_digests(bucket->s3, checksum) | DIGEST_MD5) < 0) {
		problem_set(&upload->problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	digest_update(&digest, part_content, strlen(part_content));
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
		tell_race(upload->bucket, &race, what, "If-None-Match", S3_COMPLETE_CONDITION,
			else_push);
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

static void try_uploads(struct trial_upload *upload)
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
	try_uploads(&upload);
	end_upload(&upload);
}
