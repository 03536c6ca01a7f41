#include "upload/bucket/bucket_id_object.h"
#include "base/log.h"
#include "base/quote.h"
#include <stdio.h>
#include <string.h>

/* Lifecycle rules count days, and many jobs run once a day. */
#define REFRESH_AFTER_S (12 * 3600)

static const char content[] =
	"This object lets s3once tell this bucket from another one of the same name.\n";

/* Whatever store made it: jobs with marks of their own may share the object. "": it is not there.
 */
static bool read_id(const struct bucket_asking *asking, const char *key,
	char ret_id[static S3_ID_MAX + 1], struct problem *ret_problem)
{
	const struct bucket_wanted wanted = {.key = key};
	struct s3_object object = {0};
	ret_id[0] = '\0';
	switch (bucket_look(asking, &wanted, &object, ret_problem)) {
	case LOOK_GONE:
		return true;
	case LOOK_REFUSED:
		problem_prefix(ret_problem,
			"--bucket-id-object %s cannot be looked at: allow s3:GetObject and "
			"s3:ListBucket",
			quote(key).text);
		return false;
	case LOOK_THERE:
		break;
	case LOOK_ANOTHER:
	case LOOK_NO_ANSWER:
		problem_prefix(
			ret_problem, "--bucket-id-object %s cannot be looked at", quote(key).text);
		return false;
	}
	if (strlen(object.meta.claim) == ID_CHARS && object.size == sizeof content - 1) {
		memcpy(ret_id, object.meta.claim, ID_CHARS + 1);
		return true;
	}
	problem_set(ret_problem,
		"--bucket-id-object %s names an object that s3once did not put there for that: name "
		"another key",
		quote(key).text);
	return false;
}

/* If the server does not support conditional writes, none is used. */
static enum outcome put_id(struct s3 *s3, const struct bucket_asking *asking, const char *key,
	const char *id, bool must_be_new, struct problem *ret_problem)
{
	struct digest digest;
	struct sums sums;
	struct s3_object object;
	const enum checksum checksum = s3_checksum(s3);
	const struct http_body body = {.bytes = sizeof content - 1, .memory = content};
	struct s3_put put = {
		.target = {.key = key, .content_type = "text/plain"},
		.body = &body,
		.sums = &sums,
		.checksum = checksum,
		.condition = {.if_none_match = must_be_new},
		.limits = asking->limits,
	};
	snprintf(put.meta.table, sizeof put.meta.table, "%s", asking->space->settings.table_id);
	snprintf(put.meta.claim, sizeof put.meta.claim, "%s", id);
	if (digest_init(&digest, s3_wanted_digests(s3, checksum))) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	digest_update(&digest, content, sizeof content - 1);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	enum outcome o = s3_put_object(asking->s3, &put, &object, ret_problem);
	if (o != OUTCOME_UNSUPPORTED || !must_be_new)
		return o;
	put.condition = (struct s3_condition){0};
	return s3_put_object(asking->s3, &put, &object, ret_problem);
}

/* Uploaders that share the marks make the same object where there is none, so that a server that
 * ignores conditions does no harm. */
static void new_id(const struct mark_space *space, char ret_id[static ID_CHARS + 1])
{
	snprintf(ret_id, ID_CHARS + 1, "%.*s%08x", ID_CHARS - 8, space->settings.table_id,
		space->generation);
}

bool bucket_id_object_take(struct s3 *s3, const struct bucket_asking *asking, const char *key,
	struct bucket_row *row, struct problem *ret_problem)
{
	char id[S3_ID_MAX + 1];
	if (!read_id(asking, key, id, ret_problem))
		return false;
	if (!*id) {
		new_id(asking->space, id);
		const enum outcome o = put_id(s3, asking, key, id, true, ret_problem);
		if (o != OUTCOME_OK && o != OUTCOME_REFUSED) {
			problem_prefix(ret_problem, "--bucket-id-object %s cannot be written",
				quote(key).text);
			return false;
		}
		if (!read_id(asking, key, id, ret_problem))
			return false;
	}
	if (!*id) {
		problem_set(ret_problem, "--bucket-id-object %s was written and is not there",
			quote(key).text);
		return false;
	}
	snprintf(row->id_key, sizeof row->id_key, "%s", key);
	memcpy(row->id, id, sizeof row->id);
	return true;
}

void bucket_id_object_refresh(struct s3 *s3, const struct bucket_asking *asking,
	const struct bucket_row *row, int64_t age_s)
{
	struct problem problem = {0};
	if (age_s < REFRESH_AFTER_S)
		return;
	if (put_id(s3, asking, row->id_key, row->id, false, &problem) != OUTCOME_OK)
		log_warning("%s is %lld hours old and cannot be written again, so that a lifecycle "
			    "rule may delete it: %s",
			quote(row->id_key).text, (long long)age_s / 3600, problem.text);
}
