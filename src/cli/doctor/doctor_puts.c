#include "aws/settings.h"
#include "cli/doctor/doctor.h"
#include "upload/body/proof.h"
#include <string.h>

static const char first[] = "s3once doctor was here\n", other[] = "s3once doctor was here again\n";

/* Sends one PutObject. `spoil` says which of the digests is made wrong. */
struct probe {
	const char *content;
	struct s3_condition condition;
	unsigned kinds, spoil;
};

static enum outcome put(struct doctor_bucket *bucket, const struct probe *probe,
	struct sums *ret_sums, struct s3_object *ret, struct problem *ret_problem)
{
	const struct http_body body = {.bytes = strlen(probe->content), .memory = probe->content};
	struct digest digest;
	struct call_limits once = bucket->doctor->limits;
	once.attempts = probe->spoil ? 1 : once.attempts;
	if (digest_init(&digest, probe->kinds) < 0) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	digest_update(&digest, probe->content, strlen(probe->content));
	digest_finish(&digest, ret_sums);
	digest_clear(&digest);
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		if (probe->spoil & DIGEST_OF(kind))
			((unsigned char *)ret_sums)[checksum_kinds[kind].at] ^= 1;
	const struct s3_put wanted = {.target = {.key = bucket->key},
		.body = &body,
		.sums = ret_sums,
		.checksum = s3_checksum(bucket->s3),
		.condition = probe->condition,
		.limits = once};
	return s3_put_object(bucket->conn, &wanted, ret, ret_problem);
}

static void check_proof(
	struct doctor_bucket *bucket, const struct sums *sums, const struct s3_object *put)
{
	static const char what[] = "proof";
	struct doctor *doctor = bucket->doctor;
	const struct s3_target target = {.key = bucket->key};
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
	const struct probe probe = {.content = first, .kinds = kind | payload, .spoil = kind};
	enum outcome outcome = put(bucket, &probe, &sums, &object, &problem);
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

static void check_if_none_match(struct doctor_bucket *bucket, enum outcome at_first)
{
	static const char what[] = "conditional put";
	const struct probe again = {.content = other,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)),
		.condition = {.if_none_match = true}};
	struct doctor *doctor = bucket->doctor;
	struct sums sums;
	struct s3_object object;
	struct problem problem = {0};
	enum outcome outcome = at_first == OUTCOME_UNSUPPORTED
				       ? at_first
				       : put(bucket, &again, &sums, &object, &problem);
	if (outcome == OUTCOME_REFUSED)
		doctor_find(doctor, DOCTOR_OK, what,
			"If-None-Match is honoured: no object is replaced unasked");
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_UNSUPPORTED)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"If-None-Match is %s by this server: push looks right before each upload "
			"instead, and what someone else writes in between is replaced",
			outcome == OUTCOME_OK ? "ignored" : "refused");
	else
		doctor_refused(doctor, DOCTOR_WARNING, what, "s3:PutObject", outcome, &problem);
}

/* What a PUT under If-Match does with the right etag and with a wrong one. */
static void check_if_match(struct doctor_bucket *bucket)
{
	static const char what[] = "conditional replace";
	struct doctor *doctor = bucket->doctor;
	const unsigned kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3));
	const struct probe plain = {.content = first, .kinds = kinds};
	struct sums sums;
	struct s3_object object = {0}, ignored;
	struct problem problem = {0};
	enum outcome outcome = put(bucket, &plain, &sums, &object, &problem), wrong = outcome;
	if (outcome == OUTCOME_OK) {
		const struct probe right = {
			.content = other, .kinds = kinds, .condition = {.if_match = object.etag}};
		outcome = put(bucket, &right, &sums, &ignored, &problem);
		wrong = put(bucket, &right, &sums, &ignored, &problem);
	}
	const bool is_honoured = outcome == OUTCOME_OK && wrong == OUTCOME_REFUSED;
	if (is_honoured)
		s3_learn(bucket->s3, S3_IF_MATCH, true);
	if (is_honoured)
		doctor_find(doctor, DOCTOR_OK, what, "If-Match is honoured");
	else if (outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED ||
		 outcome == OUTCOME_UNSUPPORTED)
		doctor_find(doctor, DOCTOR_WARNING, what,
			"If-Match is %s by this server: --if-changed=replace looks right before "
			"the upload instead",
			outcome == OUTCOME_OK        ? "ignored"
			: outcome == OUTCOME_REFUSED ? "not read as RFC 9110 writes it"
						     : "refused");
	else
		doctor_refused(doctor, DOCTOR_WARNING, what, "s3:PutObject", outcome, &problem);
}

bool doctor_puts(struct doctor_bucket *bucket)
{
	struct doctor *doctor = bucket->doctor;
	struct probe probe = {.content = first,
		.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) | DIGEST_MD5,
		.condition = {.if_none_match = true}};
	struct sums sums;
	struct s3_object object = {0};
	struct problem problem = {0};
	enum outcome conditional = put(bucket, &probe, &sums, &object, &problem);
	enum outcome outcome = conditional;
	probe.condition.if_none_match = false;
	if (conditional == OUTCOME_UNSUPPORTED)
		outcome = put(bucket, &probe, &sums, &object, &problem);
	if (outcome != OUTCOME_OK) {
		doctor_refused(doctor, DOCTOR_FAILURE, "put", "s3:PutObject", outcome, &problem);
		return false;
	}
	doctor_find(doctor, DOCTOR_OK, "put", "PutObject works");
	check_proof(bucket, &sums, &object);
	check_digests(bucket, &object);
	check_if_none_match(bucket, conditional);
	check_if_match(bucket);
	return true;
}
