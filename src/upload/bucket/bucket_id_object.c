#include "upload/bucket/bucket_id_object.h"
#include "base/checksum.h"
#include "base/quote.h"
#include <stdio.h>
#include <string.h>

static const char content[] =
	"This object lets s3once tell this bucket from another one of the same name.\n";

static enum outcome read_id(struct s3_conn *conn, const char *key, const struct call_limits *limits,
	char ret_id[static ID_CHARS + 1], struct problem *ret_problem)
{
	const struct s3_target target = {.key = key};
	struct s3_object object = {0};
	enum outcome o = s3_head_object(conn, &target, limits, &object, ret_problem);
	ret_id[0] = '\0';
	if (o == OUTCOME_OK && strlen(object.meta.claim) != ID_CHARS) {
		problem_set(ret_problem,
			"--bucket-id-object %s names an object that s3once did not put there for "
			"that: name another key",
			quote(key).text);
		return OUTCOME_SETUP;
	}
	if (o == OUTCOME_OK)
		memcpy(ret_id, object.meta.claim, ID_CHARS + 1);
	else if (o == OUTCOME_DENIED)
		problem_prefix(ret_problem,
			"--bucket-id-object %s cannot be looked at: allow s3:GetObject and "
			"s3:ListBucket",
			quote(key).text);
	else if (o != OUTCOME_ABSENT)
		problem_prefix(
			ret_problem, "--bucket-id-object %s cannot be looked at", quote(key).text);
	return o;
}

bool bucket_id_object_read(struct s3_conn *conn, const char *key, const struct call_limits *limits,
	char ret_id[static ID_CHARS + 1], struct problem *ret_problem)
{
	enum outcome o = read_id(conn, key, limits, ret_id, ret_problem);
	return o == OUTCOME_OK || o == OUTCOME_ABSENT;
}

/* If the server does not support conditional writes, none is used. An uploader that does the same
 * at the same time writes the same id. */
static enum outcome put_id(struct s3_conn *conn, const struct s3_put *put, struct problem *problem)
{
	struct s3_object object;
	enum outcome o = s3_put_object(conn, put, &object, problem);
	if (o != OUTCOME_UNSUPPORTED)
		return o;
	struct s3_put plain = *put;
	plain.condition = (struct s3_condition){0};
	return s3_put_object(conn, &plain, &object, problem);
}

bool bucket_id_object_make(struct s3_conn *conn, const struct bucket_id_object *wanted,
	const struct call_limits *limits, char ret_id[static ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct digest digest;
	struct sums sums;
	const struct http_body body = {.bytes = sizeof content - 1, .memory = content};
	struct s3_put put = {
		.target = {.key = wanted->key, .content_type = "text/plain"},
		.body = &body,
		.sums = &sums,
		.checksum = wanted->checksum,
		.condition = {.if_none_match = true},
		.limits = *limits,
	};
	snprintf(put.meta.table, sizeof put.meta.table, "%s", wanted->table_id);
	snprintf(put.meta.claim, sizeof put.meta.claim, "%s", wanted->id);
	if (digest_init(&digest, wanted->digests)) {
		problem_set(ret_problem, "out of memory");
		return false;
	}
	digest_update(&digest, content, sizeof content - 1);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	enum outcome o = put_id(conn, &put, ret_problem);
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED)
		o = read_id(conn, wanted->key, limits, ret_id, ret_problem);
	else
		problem_prefix(ret_problem, "--bucket-id-object %s cannot be written",
			quote(wanted->key).text);
	if (o == OUTCOME_ABSENT)
		problem_set(ret_problem, "--bucket-id-object %s was written and is not there",
			quote(wanted->key).text);
	return o == OUTCOME_OK;
}
