/* Checks the server's real behaviour in PutObject and multipart uploads, for `s3once doctor`: the
 * proof of an upload, the checksums that it verifies, and the conditions that it honours, even with
 * several concurrent writers. s3_set_support() notes in the struct s3 which conditions hold, and
 * doctor_marks.c later records that with the marks. */
#include "cli/doctor/doctor.h"
#include "marks/judge_object.h"
#include <stdlib.h>
#include <string.h>

/* The content that is put first, and the content that is to replace it. */
static const char first[] = "s3once doctor was here\n", other[] = "s3once doctor was here again\n";

/* Checks whether a HEAD, or at least the reply to PutObject, proves the stored content. `sums` are
 * those that were sent, and `reply` is the object according to the reply. */
static void check_proof(struct doctor_bucket *bucket, const char *key, const struct sums *sums,
	const struct s3_object *reply)
{
	static const char what[] = "proof";
	struct doctor *doctor = bucket->doctor;
	const struct s3_target target = {.key = key};
	struct s3_object seen = {0};
	struct problem problem = {0};
	const enum outcome outcome =
		s3_head_object(bucket->conn, &target, &doctor->limits, &seen, &problem);
	/* The reply to PutObject does not have the size; HEAD does. */
	const bool by_reply = proof_whole(sums, reply, SIZE_UNKNOWN) == PROOF_YES;
	if (outcome == OUTCOME_OK && proof_whole(sums, &seen, SIZE_KNOWN) == PROOF_YES)
		doctor_report(
			doctor, DOCTOR_OK, what, "HEAD shows that the object is what was sent");
	else if (outcome == OUTCOME_OK)
		doctor_report(doctor, by_reply ? DOCTOR_WARNING : DOCTOR_FAILURE, what,
			"HEAD shows no checksum to compare with%s",
			by_reply ? ", but the reply to PutObject does: what is there already "
				   "cannot be distinguished from other content"
				 : ", nor does the reply to PutObject: no upload can be proven");
	else
		doctor_report_error(doctor, by_reply ? DOCTOR_WARNING : DOCTOR_FAILURE, what,
			by_reply ? "s3:GetObject to recognise content that is there already"
				 : "s3:GetObject, since the reply to PutObject proves nothing",
			outcome, &problem);
}

enum verifies { VERIFIES_NO, VERIFIES_YES, VERIFIES_UNKNOWN };

/* Finds out whether the server verifies this kind of digest (DIGEST_OF()), by an object with a
 * wrong one: a server that verifies it refuses the object. UNKNOWN: the request failed for another
 * reason. */
static enum verifies try_digest(struct doctor_bucket *bucket, unsigned kind)
{
	/* Where the signature covers the payload, as over plain HTTP, the SHA-256 of the payload is
	 * sent as well. It is right, so that only the digest on trial can be a reason to refuse the
	 * object. (CHECKSUM_MD5 means no checksum header, so that SHA-256 is wanted only for the
	 * signature.) If SHA-256 itself is on trial, it is sent once, and is wrong. */
	const unsigned for_signature =
		s3_wanted_digests(bucket->s3, CHECKSUM_MD5) & DIGEST_SHA256 & ~kind;
	struct problem problem = {0};
	const struct doctor_probe probe = {.key = doctor_new_key(bucket),
		.content = first,
		.is_new = true,
		.kinds = kind | for_signature,
		.spoil = kind};
	const enum outcome outcome = doctor_put(bucket->conn, bucket, &probe, NULL, NULL, &problem);
	/* INVALID: a server may have an error code of its own for a wrong digest. */
	if (outcome == OUTCOME_BAD_DIGEST || outcome == OUTCOME_INVALID)
		return VERIFIES_YES;
	return outcome == OUTCOME_OK ? VERIFIES_NO : VERIFIES_UNKNOWN;
}

/* Reports which digest the server verifies: the one that push sends, or at least Content-MD5.
 * `reply` is that to an object which was sent with its right digests. */
static void check_digests(struct doctor_bucket *bucket, const struct s3_object *reply)
{
	static const char what[] = "checksums";
	struct doctor *doctor = bucket->doctor;
	const enum checksum checksum = s3_checksum(bucket->s3);
	/* The header of this checksum; NULL: no checksum but Content-MD5 is sent. */
	const char *header = checksum_kinds[checksum].header;
	/* A server that keeps the checksum has shown it in its reply to PutObject. */
	const bool is_kept = reply->sum.text[0] && reply->sum.kind == checksum;
	const enum verifies by_sum = header ? try_digest(bucket, DIGEST_OF(checksum)) : VERIFIES_NO;
	const enum verifies by_md5 = try_digest(bucket, DIGEST_MD5);
	if (by_sum == VERIFIES_YES && is_kept)
		doctor_report(
			doctor, DOCTOR_OK, what, "%s is verified and kept by the server", header);
	else if (by_md5 == VERIFIES_YES && !header)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"no x-amz-checksum- header is sent, as asked for (checksum, "
			"request_checksum_calculation); Content-MD5 is verified, which costs CPU");
	else if (by_md5 == VERIFIES_YES)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"%s is %s by this server; Content-MD5 is verified, and sent instead",
			header, is_kept ? "not verified" : "ignored");
	else if (by_md5 == VERIFIES_NO)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"this server verifies neither %s%sContent-MD5: a byte that changes on the "
			"way is noticed only afterwards",
			header ? header : "", header ? " nor " : "");
	else
		doctor_report(doctor, DOCTOR_WARNING, what, "could not be tried out");
}

static const char part_content[] = "a part of s3once doctor\n";

/* A multipart upload with one part, which has the sums of the whole object. */
struct trial_upload {
	struct doctor_bucket *bucket;
	struct s3_conn *conn;
	struct s3_target target;
	struct sums sums;
	char *id;            /* the upload id; NULL: no upload is open */
	struct s3_part part; /* the part according to UploadPart's reply */
	bool is_listed;      /* ListParts has shown the part with its checksum */
	bool trails;         /* the part is sent with its checksum after it */
};

/* Creates an upload and sends one part. Sets upload->sums, upload->id and upload->part. If the id
 * is set, even after an error, the upload is open, and end_upload() has to end it. */
static enum outcome begin_upload(struct trial_upload *upload, struct problem *ret_problem)
{
	struct doctor_bucket *bucket = upload->bucket;
	const struct call_limits *limits = &bucket->doctor->limits;
	const struct http_body body = {.bytes = strlen(part_content), .memory = part_content};
	const enum checksum checksum = s3_checksum(bucket->s3);
	const struct s3_create create = {
		.target = upload->target, .checksum = checksum, .limits = *limits};
	struct s3_created created = {0};
	/* With an MD5, the etag proves the part where ListParts shows no checksum of it.
	 * s3_wanted_digests() leaves MD5 out if replies to writes have a checksum. */
	if (digest_bytes(s3_wanted_digests(bucket->s3, checksum) | DIGEST_MD5, body.memory,
		    body.bytes, &upload->sums))
		return outcome_no_memory(ret_problem);
	const enum outcome outcome = s3_create_upload(upload->conn, &create, &created, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	upload->id = created.upload_id;
	const struct s3_trailing trailing = {.kinds = DIGEST_OF(checksum), .sums = &upload->sums};
	const struct s3_put put = {.target = upload->target,
		.upload_id = upload->id,
		.part_number = 1,
		.body = &body,
		.trailing = upload->trails ? &trailing : NULL,
		.sums = &upload->sums,
		.checksum = checksum,
		.limits = *limits};
	return s3_upload_part(upload->conn, &put, &upload->part, ret_problem);
}

enum complete_condition { UNCONDITIONAL, IF_NONE_MATCH };

/* Completes the upload, and then frees its id. With IF_NONE_MATCH it is completed only if its key
 * has no object yet. After an error the upload counts as open, and the id stays. */
static enum outcome complete_upload(
	struct trial_upload *upload, enum complete_condition condition, struct problem *ret_problem)
{
	struct s3_object object;
	const struct s3_complete wanted = {.target = upload->target,
		.upload_id = upload->id,
		.parts = &upload->part,
		.n_parts = 1,
		.checksum = s3_checksum(upload->bucket->s3),
		.whole = &upload->sums,
		.condition = {.if_none_match = condition == IF_NONE_MATCH},
		.limits = upload->bucket->doctor->limits};
	const enum outcome outcome =
		s3_complete_upload(upload->conn, &wanted, &object, ret_problem);
	if (outcome == OUTCOME_OK) {
		free(upload->id);
		upload->id = NULL;
	}
	return outcome;
}

/* Aborts the upload, even after a signal, and frees its id. Also OK if no upload is open. */
static enum outcome end_upload(struct trial_upload *upload, struct problem *ret_problem)
{
	enum outcome outcome = OUTCOME_OK;
	const struct call_limits limits = doctor_tidy_limits(upload->bucket->doctor);
	if (upload->id)
		outcome = s3_abort_upload(
			upload->conn, upload->target.key, upload->id, &limits, ret_problem);
	free(upload->id);
	upload->id = NULL;
	return outcome;
}

/* A kind of write with a condition. */
struct conditional {
	const char *what;       /* name of the check */
	const char *header;     /* name of the header that has the condition */
	const char *permission; /* as in doctor_report_error() */
	const char *else_push;  /* push's behaviour if the server does not honour the condition */
	enum s3_feature feature;
	bool replaces; /* by If-Match, an existing object; false: by If-None-Match, for a new one */
	bool completes; /* it completes a multipart upload; false: it is a PutObject */
};
static const struct conditional if_absent = {.what = "conditional put",
	.header = "If-None-Match",
	.permission = "s3:PutObject",
	.else_push =
		"push looks before each upload instead; what is written in between is replaced",
	.feature = S3_PUT_CONDITION};
static const struct conditional if_same = {.what = "conditional replace",
	.header = "If-Match",
	.permission =
		"s3:GetObject for If-Match, or are under a policy that lets objects only be made: "
		"--if-changed=replace can replace nothing here",
	.else_push = "--if-changed=replace checks the object just before the upload instead",
	.feature = S3_IF_MATCH,
	.replaces = true};
static const struct conditional if_absent_at_end = {.what = "conditional complete",
	.header = "If-None-Match",
	.permission = "s3:PutObject",
	.else_push = "push looks for an object just before it completes an upload instead",
	.feature = S3_COMPLETE_CONDITION,
	.completes = true};

/* A write with a condition to one key. In a race several writers try it at once. */
struct contested {
	struct doctor_bucket *bucket;
	const struct conditional *write;
	const char *key;
	struct s3_object object; /* the object that is to be replaced, if write->replaces */
};

/* The `prepare` of a race: chooses a new key and, if write->replaces, puts the object there that is
 * to be replaced. */
static enum outcome prepare_write(void *arg, unsigned round, struct problem *ret_problem)
{
	struct contested *contested = arg;
	struct doctor_bucket *bucket = contested->bucket;
	contested->key = doctor_new_key(bucket);
	const struct doctor_probe plain = {.key = contested->key, .content = first, .is_new = true};
	return contested->write->replaces ? doctor_put(bucket->conn, bucket, &plain, NULL,
						    &contested->object, ret_problem)
					  : OUTCOME_OK;
}

/* Puts an object only if there is none yet, or only if it is still contested->object. */
static enum outcome put_under_condition(struct s3_conn *conn, const struct contested *contested,
	const char *content, struct problem *ret_problem)
{
	const bool replaces = contested->write->replaces;
	const struct doctor_probe probe = {.key = contested->key,
		.content = content,
		.condition = {.if_none_match = !replaces,
			.if_match = replaces ? contested->object.etag : NULL}};
	return doctor_put(conn, contested->bucket, &probe, NULL, NULL, ret_problem);
}

/* The `write` of a race. Each writer puts content of its own: with equal content the etag would not
 * change, and If-Match would hold for the other writers as well. */
static enum outcome write_one(void *arg, struct racer *racer, struct problem *ret_problem)
{
	const struct contested *contested = arg;
	struct trial_upload upload = {
		.bucket = contested->bucket, .conn = racer->s3, .target = {.key = contested->key}};
	char content[64];
	struct problem ignored; /* the problem of the abort: the race is decided by then */
	if (!contested->write->completes) {
		snprintf(content, sizeof content, "writer %u of s3once doctor\n", racer->number);
		racer_await_start(racer);
		return put_under_condition(racer->s3, contested, content, ret_problem);
	}
	enum outcome outcome = begin_upload(&upload, ret_problem);
	racer_await_start(racer); /* after an error, too: the other writers wait for this one */
	if (outcome == OUTCOME_OK)
		outcome = complete_upload(&upload, IF_NONE_MATCH, ret_problem);
	end_upload(&upload, &ignored);
	return outcome;
}

/* Lets several writers try the write at once, unless the server is AWS, and reports the result. The
 * condition is honoured if exactly one writer won each round. s3_set_support() notes whether it is.
 */
static void judge_race(struct contested *contested)
{
	const struct conditional *write = contested->write;
	struct s3 *s3 = contested->bucket->s3;
	struct doctor *doctor = contested->bucket->doctor;
	const struct race race = {
		.s3 = s3, .prepare = prepare_write, .write = write_one, .arg = contested};
	struct problem why = {0}; /* why the race was inconclusive */
	const unsigned winners = s3_is_aws(s3) ? 1 : race_run(&race, &why);
	s3_set_support(s3, write->feature, winners == 1 ? S3_YES : S3_NO);
	if (winners == 1)
		doctor_report(doctor, DOCTOR_OK, write->what, "%s is honoured%s", write->header,
			s3_is_aws(s3) ? "" : ", also when several write at once");
	else if (winners > 1)
		doctor_report(doctor, DOCTOR_WARNING, write->what,
			"%s is honoured only when one writes after another: of %u that wrote at "
			"once %u were told that they had won, so %s",
			write->header, RACE_WRITERS, winners, write->else_push);
	else
		doctor_report(doctor, DOCTOR_WARNING, write->what,
			"%s is honoured when one writes after another; what happens when several "
			"write at once could not be tried out, so %s: %s",
			write->header, write->else_push, why.text);
}

/* Reports whether the server honours a condition. `outcome` is that of one write with a condition
 * that does not hold. If the server has not refused it, nothing is noted, since doctor keeps only
 * the conditions that are honoured. */
static void judge_condition(
	struct contested *contested, enum outcome outcome, const struct problem *problem)
{
	const struct conditional *write = contested->write;
	struct doctor *doctor = contested->bucket->doctor;
	if (outcome == OUTCOME_REFUSED) /* as it should be */
		judge_race(contested);
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_UNSUPPORTED)
		doctor_report(doctor, DOCTOR_WARNING, write->what, "%s is %s by this server: %s",
			write->header, outcome == OUTCOME_OK ? "ignored" : "refused",
			write->else_push);
	else
		doctor_report_error(
			doctor, DOCTOR_WARNING, write->what, write->permission, outcome, problem);
}

/* Checks If-Match by two PUTs with the etag that the object has at first. The server must accept
 * the first PUT, which replaces the object, and so must refuse the second. A server that refuses
 * the first PUT compares etags in another way than AWS. */
static void check_if_match(struct doctor_bucket *bucket)
{
	struct contested contested = {.bucket = bucket, .write = &if_same};
	struct problem problem = {0};
	enum outcome o = prepare_write(&contested, 0, &problem); /* as for a round */
	if (o == OUTCOME_OK)
		o = put_under_condition(bucket->conn, &contested, other, &problem);
	if (o == OUTCOME_REFUSED) {
		doctor_report(bucket->doctor, DOCTOR_WARNING, if_same.what,
			"If-Match is not read as RFC 9110 writes it by this server: %s",
			if_same.else_push);
		return;
	}
	/* After any other failure the second PUT is not sent, and that failure is reported. */
	if (o == OUTCOME_OK)
		o = put_under_condition(bucket->conn, &contested, other, &problem);
	judge_condition(&contested, o, &problem);
}

bool doctor_try_puts(struct doctor_bucket *bucket)
{
	struct doctor *doctor = bucket->doctor;
	/* With an MD5, the etag proves the object where HEAD shows no checksum. s3_wanted_digests()
	 * leaves MD5 out if replies to writes have a checksum. */
	const struct doctor_probe probe = {.key = doctor_new_key(bucket),
		.content = first,
		.is_new = true,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) | DIGEST_MD5};
	struct contested contested = {.bucket = bucket, .write = &if_absent, .key = probe.key};
	struct sums sums;
	struct s3_object object = {0};
	struct problem problem = {0};
	/* The probe is new, so it has If-None-Match. A server that refuses the header gets the
	 * probe once more without it. */
	enum outcome outcome = doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	const bool refuses_header = outcome == OUTCOME_UNSUPPORTED;
	if (refuses_header) {
		s3_set_support(bucket->s3, S3_PUT_CONDITION, S3_NO);
		outcome = doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	}
	if (outcome != OUTCOME_OK) {
		doctor_report_error(
			doctor, DOCTOR_FAILURE, "put", "s3:PutObject", outcome, &problem);
		return false;
	}
	doctor_report(doctor, DOCTOR_OK, "put", "PutObject works");
	check_proof(bucket, probe.key, &sums, &object);
	check_digests(bucket, &object);
	/* The key has an object now, so If-None-Match has to refuse another one. */
	outcome = refuses_header ? OUTCOME_UNSUPPORTED
				 : put_under_condition(bucket->conn, &contested, other, &problem);
	judge_condition(&contested, outcome, &problem);
	check_if_match(bucket);
	return true;
}

/* Notes whether ListParts shows the sent part, and proves it. Returns 0, so that the listing
 * continues. */
static int note_listed(void *arg, const struct s3_part *part)
{
	struct trial_upload *upload = arg;
	upload->is_listed = part->part_number == 1 && proof_part(&upload->sums, part) == PROOF_YES;
	return 0;
}

/* Checks whether push could resume this upload: ListParts has to prove the part. A refusal that
 * would also stop push is a failure. If the server cannot list parts, push begins such an upload
 * again, which is only a warning. */
static void check_list(struct trial_upload *upload)
{
	static const char what[] = "list parts";
	struct doctor *doctor = upload->bucket->doctor;
	struct problem problem = {0};
	const enum outcome outcome = s3_list_parts(upload->conn, &upload->target, upload->id,
		&doctor->limits, note_listed, upload, &problem);
	if (outcome == OUTCOME_OK && upload->is_listed)
		doctor_report(doctor, DOCTOR_OK, what,
			"ListParts shows parts with their checksums: a broken upload goes on");
	else if (outcome == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"ListParts shows no checksum: after a break all parts are sent again");
	else if (outcome == OUTCOME_DENIED || outcome == OUTCOME_SETUP)
		doctor_report_error(doctor, DOCTOR_FAILURE, what, "s3:ListMultipartUploadParts",
			outcome, &problem);
	else
		doctor_report(doctor, DOCTOR_WARNING, what,
			"the server does not list parts (%s): an upload that broke off begins anew",
			problem.text);
}

/* Completes the first upload of a key: with a condition, since a policy may demand it, and without
 * one if the server does not know it, which leaves the upload open. */
static enum outcome complete_first(struct trial_upload *upload, struct problem *ret_problem)
{
	const enum outcome outcome = complete_upload(upload, IF_NONE_MATCH, ret_problem);
	return outcome == OUTCOME_UNSUPPORTED ? complete_upload(upload, UNCONDITIONAL, ret_problem)
					      : outcome;
}

/* Whether the object of this key has the content that was sent as its one part. */
static bool has_part_content(struct doctor_bucket *bucket, const struct s3_target *target)
{
	struct http_reply reply = {0};
	struct problem problem = {0};
	char etag[S3_ETAG_MAX + 1];
	const bool is_read = s3_get_small(bucket->conn, target, sizeof part_content,
				     &bucket->doctor->limits, &reply, etag, &problem) == OUTCOME_OK;
	const bool is_right = is_read && strcmp(text_string(&reply.body), part_content) == 0;
	http_reply_clear(&reply);
	return is_right;
}

/* Sends a part with its checksum after it, and returns whether the object has its content. */
static bool try_trailer(struct doctor_bucket *bucket)
{
	struct trial_upload upload = {.bucket = bucket,
		.conn = bucket->conn,
		.target = {.key = doctor_new_key(bucket)},
		.trails = true};
	struct problem problem = {0};
	const bool is_right = begin_upload(&upload, &problem) == OUTCOME_OK &&
			      proof_part(&upload.sums, &upload.part) == PROOF_YES &&
			      complete_first(&upload, &problem) == OUTCOME_OK &&
			      has_part_content(bucket, &upload.target);
	end_upload(&upload, &problem);
	return is_right;
}

/* Finds out whether a part may be sent with its checksum after it. A server without support for
 * that stores the framing as content, so the object is read back. Over plain HTTP, where parts are
 * never sent in this way, nothing is tried or reported. */
static void check_trailer(struct doctor_bucket *bucket)
{
	static const char what[] = "trailing checksum";
	s3_set_support(bucket->s3, S3_TRAILER, S3_YES); /* assumed for the trial */
	const bool may_be = s3_may_trail(bucket->s3, s3_checksum(bucket->s3));
	const bool is_right = may_be && try_trailer(bucket);
	s3_set_support(bucket->s3, S3_TRAILER, is_right ? S3_YES : S3_NO);
	if (may_be)
		doctor_report(bucket->doctor, DOCTOR_OK, what,
			is_right ? "x-amz-trailer is taken: parts are read once"
				 : "x-amz-trailer is not taken: parts are read twice, which costs "
				   "some CPU");
}

/* Makes three uploads. The first is completed. The second is completed under the same key, which
 * the condition has to refuse. The third is begun only to abort it. If one cannot be begun, or the
 * first cannot be completed, that is reported, and the rest is skipped. */
void doctor_try_multipart(struct doctor_bucket *bucket)
{
	struct doctor *doctor = bucket->doctor;
	struct contested contested = {.bucket = bucket, .write = &if_absent_at_end};
	struct trial_upload upload = {
		.bucket = bucket, .conn = bucket->conn, .target = {.key = doctor_new_key(bucket)}};
	struct problem problem = {0};
	enum outcome outcome = begin_upload(&upload, &problem);
	if (outcome == OUTCOME_OK) {
		check_list(&upload);
		outcome = complete_first(&upload, &problem);
	}
	if (outcome == OUTCOME_OK) {
		doctor_report(doctor, DOCTOR_OK, "multipart",
			"create, upload of a part and complete work");
		outcome = begin_upload(&upload, &problem);
	}
	if (outcome == OUTCOME_OK) {
		/* The upload is still open if the condition has refused it. */
		judge_condition(
			&contested, complete_upload(&upload, IF_NONE_MATCH, &problem), &problem);
		end_upload(&upload, &problem);
		outcome = begin_upload(&upload, &problem);
	}
	if (outcome != OUTCOME_OK) {
		doctor_report_error(
			doctor, DOCTOR_FAILURE, "multipart", "s3:PutObject", outcome, &problem);
		end_upload(&upload, &problem);
		return;
	}
	outcome = end_upload(&upload, &problem);
	if (outcome == OUTCOME_OK || outcome == OUTCOME_NO_UPLOAD)
		doctor_report(doctor, DOCTOR_OK, "abort", "AbortMultipartUpload works");
	else
		doctor_report_error(doctor, DOCTOR_WARNING, "abort", "s3:AbortMultipartUpload",
			outcome, &problem);
	check_trailer(bucket);
}
