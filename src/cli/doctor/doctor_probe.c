/* The objects that the checks of a bucket make. */
#include "cli/doctor/doctor.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *doctor_key_of(struct doctor_bucket *bucket, const char *end)
{
	assert(bucket->n_keys < DOCTOR_KEYS_MAX);
	char *key = bucket->keys[bucket->n_keys++];
	snprintf(key, sizeof bucket->keys[0], "%s%s", bucket->prefix, end);
	return key;
}

const char *doctor_key(struct doctor_bucket *bucket)
{
	char end[16];
	snprintf(end, sizeof end, "-%u", bucket->n_keys);
	return doctor_key_of(bucket, end);
}

enum outcome doctor_put(struct s3_conn *conn, const struct doctor_bucket *bucket,
	const struct doctor_probe *probe, struct sums *ret_sums, struct s3_object *ret,
	struct problem *ret_problem)
{
	const struct http_body body = {.bytes = strlen(probe->content), .memory = probe->content};
	const enum checksum checksum = s3_checksum(bucket->s3);
	struct digest digest;
	struct call_limits limits = bucket->doctor->limits;
	struct s3_condition condition = probe->condition;
	if (probe->is_new && s3_knows(bucket->s3, S3_PUT_CONDITION) != S3_NO)
		condition.if_none_match = true;
	if (probe->spoil)
		limits.attempts = 1;
	if (digest_init(&digest,
		    probe->kinds ? probe->kinds : s3_wanted_digests(bucket->s3, checksum)) < 0) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	digest_update(&digest, probe->content, strlen(probe->content));
	digest_finish(&digest, ret_sums);
	digest_clear(&digest);
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		if (probe->spoil & DIGEST_OF(kind))
			((unsigned char *)ret_sums)[checksum_kinds[kind].at] ^= 1;
	const struct s3_put wanted = {.target = {.key = probe->key, .headers = probe->headers},
		.body = &body,
		.sums = ret_sums,
		.checksum = checksum,
		.condition = condition,
		.limits = limits};
	return s3_put_object(conn, &wanted, ret, ret_problem);
}
