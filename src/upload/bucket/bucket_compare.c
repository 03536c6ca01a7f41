#include "upload/bucket/bucket_compare.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/bucket/bucket_id_object.h"
#include <string.h>

bool bucket_differs(const char *now, const char *before)
{
	return *now && *before && strcmp(now, before) != 0;
}

/* A proxy that passes only buckets on may answer anything to a request above them. */
static bool has_no_listing(enum outcome outcome, const struct problem *problem)
{
	return is_answered(outcome, problem) ||
	       (outcome == OUTCOME_SETUP && (problem->status / 100 == 3 || problem->status == 404));
}

/* Sends two requests at most, and the second one only if the first does not show this bucket. */
static bool ask_service(struct bucket_comparison *check)
{
	enum outcome o =
		s3_identify_by_listing(check->s3, &check->limits, &check->told, check->problem);
	if (o == OUTCOME_OK && *check->told.owner)
		return true;
	if (o != OUTCOME_OK && !has_no_listing(o, check->problem))
		return false;
	if (o != OUTCOME_OK)
		log_info("ListBuckets shows nothing of the bucket: %s", check->problem->text);
	o = s3_identify_by_acl(check->s3, &check->limits, &check->told, check->problem);
	if (o != OUTCOME_OK && is_answered(o, check->problem))
		log_info("GetBucketAcl shows nothing of the bucket: %s", check->problem->text);
	return is_answered(o, check->problem);
}

/* Finds out whether the object that a run proved last is there. False: this cannot be found out
 * now. */
static bool look_at_last(struct bucket_comparison *check)
{
	const struct uploaded last = {check->row.last_key, check->row.last_etag};
	if (!*last.key || check->last_was_looked_at)
		return true;
	check->last_was_looked_at = true;
	return bucket_look_at(
		check->run, check->s3, &last, &check->limits, &check->last, check->problem);
}

static void add_identity(struct text *t, const struct s3_identity *told)
{
	if (*told->created)
		text_addf(t, "created %s", quote(told->created).text);
	if (*told->owner)
		text_addf(
			t, "%sowned by %s", *told->created ? " and " : "", quote(told->owner).text);
}

static enum bucket_likeness tell_other(struct bucket_comparison *check)
{
	const struct s3once_options *o = &check->run->options;
	struct text before = TEXT(1000), now = TEXT(1000);
	add_identity(&before, &check->row.told);
	add_identity(&now, &check->told);
	problem_set(check->problem,
		"bucket %s at %s is not the bucket that the marks are about: that one was "
		"%s, this one was %s; " BUCKET_WAY_OUT,
		o->bucket, quote(check->run->aws->s3_endpoint).text, text_string(&before),
		text_string(&now));
	text_clear(&before);
	text_clear(&now);
	return IS_OTHER;
}

/* The service's answer differs, and the object that was proven last could not be looked at. */
static enum bucket_likeness judge_difference(struct bucket_comparison *check)
{
	bool has_marks;
	const bool only_created = !bucket_differs(check->told.owner, check->row.told.owner);
	if (bucket_has_marks(check->marks, &check->run->space, &check->limits, &has_marks,
		    check->problem) != OUTCOME_OK)
		return CANNOT_TELL;
	if (!has_marks)
		return IS_SAME;
	/* Amazon S3 API Reference, "Bucket": this date can change when making changes to the
	 * bucket, such as editing its bucket policy. */
	if (!only_created || !s3_is_aws(check->run->s3))
		return tell_other(check);
	log_warning("the creation date of bucket %s was %s and is %s now, as it may be after its "
		    "policy was edited; allow s3:GetObject and s3:ListBucket so that a run can "
		    "recognise the bucket by an object, or use --bucket-id-object",
		quote(check->run->options.bucket).text, quote(check->row.told.created).text,
		quote(check->told.created).text);
	return IS_SAME;
}

static enum bucket_likeness judge_evidence(struct bucket_comparison *check, bool is_different)
{
	if (!look_at_last(check))
		return CANNOT_TELL;
	if (check->last == EVIDENCE_THERE)
		return IS_SAME;
	if (check->last == EVIDENCE_GONE)
		return is_different ? tell_other(check) : IS_IN_DOUBT;
	if (is_different)
		return judge_difference(check);
	log_info("nothing that the service shows says whether the bucket is the one that the "
		 "marks are about");
	return IS_UNKNOWN;
}

static enum bucket_likeness likeness_of_bucket(struct bucket_comparison *check)
{
	const struct bucket_row *row = &check->row;
	/* Where the service has no date, the object says more than an owner does. */
	if (*row->version && !*row->told.created) {
		if (!look_at_last(check))
			return CANNOT_TELL;
		if (check->last == EVIDENCE_THERE)
			return IS_SAME;
	}
	if (!ask_service(check))
		return CANNOT_TELL;
	if (!*row->version)
		return IS_SAME;
	const bool is_different = bucket_differs(check->told.created, row->told.created) ||
				  bucket_differs(check->told.owner, row->told.owner);
	if (!is_different && *check->told.created && *row->told.created)
		return IS_SAME;
	return judge_evidence(check, is_different);
}

static enum bucket_likeness compare_by_object(struct bucket_comparison *check)
{
	const char *key = check->run->options.bucket_id_object;
	if (!bucket_id_object_read(
		    check->s3, key, &check->limits, check->object_id, check->problem))
		return CANNOT_TELL;
	if (!check->row.object_is_made)
		return likeness_of_bucket(check);
	if (strcmp(check->object_id, check->row.object_id) == 0)
		return IS_SAME;
	problem_set(check->problem,
		"bucket %s at %s is not the bucket that the marks are about: %s %s; " BUCKET_WAY_OUT,
		check->run->options.bucket, quote(check->run->aws->s3_endpoint).text,
		quote(key).text,
		*check->object_id ? "identifies another one" : "is not there, which identified it");
	return IS_OTHER;
}

enum bucket_likeness bucket_compare(struct bucket_comparison *check)
{
	return check->run->options.bucket_id_object ? compare_by_object(check)
						    : likeness_of_bucket(check);
}
