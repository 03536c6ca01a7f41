#include "upload/bucket_check.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "marks/bucket_conditions.h"
#include "upload/bucket_doubt.h"
#include "upload/bucket_evidence.h"
#include "upload/bucket_id_object.h"
#include <stdio.h>
#include <string.h>

#define TURNS_MAX 5 /* each is another uploader's write of the row */

enum likeness {
	IS_SAME,
	IS_OTHER,
	IS_IN_DOUBT, /* the object that was proven last is gone, and nothing else shows anything */
	IS_UNKNOWN,
	CANNOT_TELL
};

struct check {
	struct run *run;
	struct store_conn *marks;
	struct s3_conn *s3;
	struct call_limits limits;
	struct bucket_row row;        /* as the marks have it */
	struct s3_identity told;      /* as the service tells it now */
	char object_id[ID_CHARS + 1]; /* of --bucket-id-object, as it is now */
	enum evidence last;           /* of row.last_key */
	bool last_was_looked_at;
	enum likeness likeness;
	bool doubt_is_new; /* this run is the first in doubt */
	struct problem *problem;
};

/* Nothing is under way yet that could be finished first. */
static bool is_stopped(void *arg)
{
	struct run *run = arg;
	return atomic_load(&run->stop) > 0 || run_is_over(run);
}

static bool differs(const char *now, const char *before)
{
	return *now && *before && strcmp(now, before) != 0;
}

/* A proxy that passes only buckets on may answer anything to a request above them. */
static bool has_no_listing(enum outcome outcome, const struct problem *problem)
{
	return is_answered(outcome, problem) ||
	       (outcome == OUTCOME_SETUP && (problem->status / 100 == 3 || problem->status == 404));
}

/* Two questions at most; the second one only where the first does not show this bucket. */
static bool ask_service(struct check *check)
{
	enum outcome o =
		s3_identify_by_listing(check->s3, &check->limits, &check->told, check->problem);
	if (o == OUTCOME_OK && *check->told.owner)
		return true;
	if (o != OUTCOME_OK && !has_no_listing(o, check->problem))
		return false;
	if (o != OUTCOME_OK)
		log_info("ListBuckets tells nothing of the bucket: %s", check->problem->text);
	o = s3_identify_by_acl(check->s3, &check->limits, &check->told, check->problem);
	if (o != OUTCOME_OK && is_answered(o, check->problem))
		log_info("GetBucketAcl tells nothing of the bucket: %s", check->problem->text);
	return is_answered(o, check->problem);
}

/* Whether the object that a run proved last is there. False: that cannot be found out now. */
static bool look_at_last(struct check *check)
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

static enum likeness tell_other(struct check *check)
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

static void warn_of_doubt(const struct check *check)
{
	struct problem problem;
	problem_set(&problem,
		"bucket %s at %s does not hold %s, which an earlier run uploaded and verified, and "
		"nothing else shows that it is the same bucket; new files are uploaded, but the run "
		"ends before it skips a file if the objects of such files are gone too",
		check->run->options.bucket, quote(check->run->aws->s3_endpoint).text,
		quote(check->row.last_key).text);
	report_run(&check->run->report, S3ONCE_EVENT_WARNING, &problem);
}

/* What is told differs, and the object that was proven last could not be looked at. */
static enum likeness judge_difference(struct check *check)
{
	bool has_marks;
	const bool only_created = !differs(check->told.owner, check->row.told.owner);
	if (bucket_has_marks(check->marks, &check->run->space, &check->limits, &has_marks,
		    check->problem) != OUTCOME_OK)
		return CANNOT_TELL;
	if (!has_marks)
		return IS_SAME;
	/* Amazon S3 API Reference, "Bucket": this date can change when making changes to the
	 * bucket, such as editing its bucket policy. */
	if (!only_created || !s3_is_aws(check->run->s3))
		return tell_other(check);
	log_warning(
		"the creation date of bucket %s was %s and is %s now, as it may be after its "
		"policy was edited; allow s3:GetObject and s3:ListBucket so that it can be told "
		"from another bucket, or use --bucket-id-object",
		quote(check->run->options.bucket).text, quote(check->row.told.created).text,
		quote(check->told.created).text);
	return IS_SAME;
}

static enum likeness judge_evidence(struct check *check, bool is_different)
{
	if (!look_at_last(check))
		return CANNOT_TELL;
	if (check->last == EVIDENCE_THERE)
		return IS_SAME;
	if (check->last == EVIDENCE_GONE)
		return is_different ? tell_other(check) : IS_IN_DOUBT;
	if (is_different)
		return judge_difference(check);
	log_info("nothing that the service tells shows whether the bucket is the one that the "
		 "marks are about");
	return IS_UNKNOWN;
}

static enum likeness compare(struct check *check)
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
	const bool is_different = differs(check->told.created, row->told.created) ||
				  differs(check->told.owner, row->told.owner);
	if (!is_different && *check->told.created && *row->told.created)
		return IS_SAME;
	return judge_evidence(check, is_different);
}

static enum likeness compare_by_object(struct check *check)
{
	const char *key = check->run->options.bucket_id_object;
	if (!bucket_id_object_read(
		    check->s3, key, &check->limits, check->object_id, check->problem))
		return CANNOT_TELL;
	if (!check->row.object_is_made)
		return compare(check);
	if (!strcmp(check->object_id, check->row.object_id))
		return IS_SAME;
	problem_set(check->problem,
		"bucket %s at %s is not the bucket that the marks are about: %s %s; " BUCKET_WAY_OUT,
		check->run->options.bucket, quote(check->run->aws->s3_endpoint).text,
		quote(key).text,
		*check->object_id ? "identifies another one" : "is not there, which identified it");
	return IS_OTHER;
}

/* What the row says of the object that identifies the bucket. Its id is in the row before the
 * object is made, so that uploaders that race make the same one. */
static bool next_object(struct check *check, struct bucket_row *next)
{
	struct run *run = check->run;
	const enum checksum checksum = s3_checksum(run->s3);
	const struct bucket_id_object wanted = {
		.key = run->options.bucket_id_object,
		.id = next->object_id,
		.table_id = run->space.settings.table_id,
		.checksum = checksum,
		.digests = s3_wanted_digests(run->s3, checksum),
	};
	if (!wanted.key || next->object_is_made || run->dry)
		return true;
	if (!*check->object_id && !*next->object_id) {
		random_id(next->object_id);
		return true;
	}
	if (!*check->object_id && !bucket_id_object_make(check->s3, &wanted, &check->limits,
					  check->object_id, check->problem))
		return false;
	memcpy(next->object_id, check->object_id, sizeof next->object_id);
	return next->object_is_made = true;
}

/* Nothing of this bucket may get into the row, or the next run would know it by that. */
static bool doubt_row(const struct check *check, struct bucket_row *ret)
{
	*ret = check->row;
	if (!ret->doubt_from_s)
		ret->doubt_from_s = store_time_s(check->marks->store);
	ret->doubt_to_s = 0;
	return true;
}

/* The row as it is to be from now on. */
static bool next_row(struct check *check, enum likeness likeness, struct bucket_row *ret)
{
	struct bucket_row next = check->row;
	if (likeness == IS_OTHER) {
		memset(&next, 0, sizeof next);
		next.generation = check->row.generation + 1;
		memcpy(next.version, check->row.version, sizeof next.version);
	}
	if (likeness == IS_IN_DOUBT)
		return doubt_row(check, ret);
	/* What was uploaded in doubt may be in another bucket. */
	if (likeness == IS_SAME && next.doubt_from_s && !next.doubt_to_s)
		next.doubt_to_s = store_time_s(check->marks->store);
	if (differs(check->told.created, next.told.created) ||
		differs(check->told.owner, next.told.owner))
		next.honours = 0;
	if (*check->told.created)
		memcpy(next.told.created, check->told.created, sizeof next.told.created);
	if (*check->told.owner)
		memcpy(next.told.owner, check->told.owner, sizeof next.told.owner);
	*ret = next;
	return next_object(check, ret);
}

static bool is_same_row(const struct bucket_row *a, const struct bucket_row *b)
{
	return *a->version && *b->version && a->generation == b->generation &&
	       !strcmp(a->told.created, b->told.created) && !strcmp(a->told.owner, b->told.owner) &&
	       !strcmp(a->object_id, b->object_id) && a->object_is_made == b->object_is_made &&
	       a->doubt_from_s == b->doubt_from_s && a->doubt_to_s == b->doubt_to_s;
}

/* OUTCOME_REFUSED: the row is another one now, and check->row is that: by another uploader, or by
 * us with an id whose object is to be made next. */
static enum outcome settle(struct check *check, enum likeness likeness)
{
	struct bucket_row next, seen;
	if (!next_row(check, likeness, &next))
		return OUTCOME_SETUP;
	if (is_same_row(&next, &check->row) || check->run->dry) {
		check->row = next;
		return OUTCOME_OK;
	}
	enum outcome o = bucket_row_write(
		check->marks, &check->run->space, &next, &check->limits, &seen, check->problem);
	if (o == OUTCOME_OK && *next.object_id && !next.object_is_made)
		o = OUTCOME_REFUSED;
	else if (o == OUTCOME_REFUSED)
		next = seen;
	check->row = next;
	return o;
}

static bool check_and_settle(struct check *check)
{
	/* Once, whoever of several uploaders does it. */
	const unsigned generation = check->row.generation;
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		check->last_was_looked_at = false;
		check->last = EVIDENCE_NONE;
		check->run->space.generation = check->row.generation;
		enum likeness likeness = check->run->options.bucket_id_object
						 ? compare_by_object(check)
						 : compare(check);
		const bool may_begin_anew =
			check->run->options.new_bucket && check->row.generation == generation;
		if (likeness == CANNOT_TELL || (likeness == IS_OTHER && !may_begin_anew))
			return false;
		if (may_begin_anew && (likeness == IS_UNKNOWN || likeness == IS_IN_DOUBT ||
					      check->row.doubt_from_s))
			likeness = IS_OTHER;
		check->likeness = likeness;
		check->doubt_is_new = !check->row.doubt_from_s;
		enum outcome o = settle(check, likeness);
		check->run->space.generation = check->row.generation;
		if (o != OUTCOME_REFUSED)
			return o == OUTCOME_OK;
	}
	problem_set(check->problem,
		"other uploaders keep writing what the marks know of the bucket: run again");
	return false;
}

static bool begin_doubt(struct check *check)
{
	const bool is_in_doubt = check->likeness == IS_IN_DOUBT;
	if (is_in_doubt)
		warn_of_doubt(check);
	if (!check->row.doubt_from_s ||
		!bucket_doubt_new(check->run, !is_in_doubt, check->doubt_is_new))
		return true;
	problem_set(check->problem, PROBLEM_NO_DESCRIPTORS);
	return false;
}

bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem)
{
	struct check check = {
		.run = run,
		.marks = marks,
		.limits = {.abandon = is_stopped,
			.abandon_arg = run,
			.patience_ms = run->options.give_up_after_ms},
		.problem = ret_problem,
	};
	if (s3_conn_new(run->s3, &check.s3)) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		return false;
	}
	bool good = bucket_row_read(marks, &run->space, &check.limits, &check.row, ret_problem) ==
			    OUTCOME_OK &&
		    check_and_settle(&check) && begin_doubt(&check);
	run->bucket = check.row;
	if (good && !run->doubt)
		run->conditions_are_recalled =
			conditions_recall(&check.row, run->s3, store_time_s(marks->store));
	s3_conn_free(check.s3);
	return good;
}
