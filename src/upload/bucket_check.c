#include "upload/bucket_check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/bucket_id_object.h"
#include <stdio.h>
#include <string.h>

#define KEEP_WITHIN_NS (5 * NS_PER_S) /* at the end, when all else is done */
#define TURNS_MAX      5              /* each is another uploader's write of the row */

/* What an object of late says of the bucket. */
enum evidence { EVIDENCE_NONE, EVIDENCE_THERE, EVIDENCE_GONE };

enum likeness { IS_SAME, IS_OTHER, IS_UNKNOWN, CANNOT_TELL };

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

/* Answered, though with a refusal: the service does not tell. What did not come through at all is
 * another matter. */
static bool is_not_told(enum outcome outcome, const struct problem *problem)
{
	switch (outcome) {
	case OUTCOME_OK:
	case OUTCOME_ABSENT:
	case OUTCOME_DENIED:
	case OUTCOME_INVALID:
	case OUTCOME_UNSUPPORTED:
		return true;
	case OUTCOME_LOST:
	case OUTCOME_TRANSIENT:
		return problem->status != 0;
	default:
		return false;
	}
}

/* A proxy that passes only buckets on may answer anything to a request above them. */
static bool has_no_listing(enum outcome outcome, const struct problem *problem)
{
	return is_not_told(outcome, problem) ||
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
	if (o != OUTCOME_OK && is_not_told(o, check->problem))
		log_info("GetBucketAcl tells nothing of the bucket: %s", check->problem->text);
	return is_not_told(o, check->problem);
}

/* Whether the object that a run proved last is there. False: that cannot be found out now. */
static bool look_at_last(struct check *check)
{
	const struct bucket_row *row = &check->row;
	const struct s3_target target = {.key = row->last_key};
	struct s3_object object = {0};
	if (!*row->last_key || check->last_was_looked_at)
		return true;
	check->last_was_looked_at = true;
	enum outcome o =
		s3_head_object(check->s3, &target, &check->limits, &object, check->problem);
	/* With other content somebody else wrote it since, which says nothing. */
	if (o == OUTCOME_OK &&
		(!strcmp(object.etag, row->last_etag) ||
			!strcmp(object.meta.table, check->run->space.settings.table_id)))
		check->last = EVIDENCE_THERE;
	else if (o == OUTCOME_ABSENT)
		check->last = EVIDENCE_GONE;
	return is_not_told(o, check->problem);
}

static void add_identity(struct text *t, const struct s3_identity *told)
{
	if (*told->created)
		text_addf(t, "created %s", quote(told->created).text);
	if (*told->owner)
		text_addf(
			t, "%sowned by %s", *told->created ? " and " : "", quote(told->owner).text);
}

#define WAY_OUT                                                                                    \
	"check the endpoint and the credentials; if the bucket was deleted and made anew, run "    \
	"once with --new-bucket, which sets these marks aside and looks at each object"

static enum likeness tell_other(struct check *check)
{
	const struct s3once_options *o = &check->run->options;
	struct text before = TEXT(1000), now = TEXT(1000);
	char when[32] = "an earlier run";
	if (check->row.at_s > 0)
		clock_format_iso(check->row.at_s, when);
	add_identity(&before, &check->row.told);
	add_identity(&now, &check->told);
	if (differs(check->told.created, check->row.told.created) ||
		differs(check->told.owner, check->row.told.owner))
		problem_set(check->problem,
			"bucket %s at %s is not the bucket that the marks are about: that one was "
			"%s, this one was %s; " WAY_OUT,
			o->bucket, quote(check->run->aws->s3_endpoint).text, text_string(&before),
			text_string(&now));
	else
		problem_set(check->problem,
			"bucket %s at %s does not hold %s, which was there at %s, and nothing else "
			"tells that it is the bucket that the marks are about: it was emptied, or it "
			"is another one; " WAY_OUT,
			o->bucket, quote(check->run->aws->s3_endpoint).text,
			quote(check->row.last_key).text, when);
	text_clear(&before);
	text_clear(&now);
	return IS_OTHER;
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
	if (check->last == EVIDENCE_GONE && (is_different || !check->run->options.reupload))
		return tell_other(check);
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
		"bucket %s at %s is not the bucket that the marks are about: %s %s; " WAY_OUT,
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

/* The row as it is to be from now on. */
static bool next_row(struct check *check, enum likeness likeness, struct bucket_row *ret)
{
	struct bucket_row next = check->row;
	if (likeness == IS_OTHER) {
		memset(&next, 0, sizeof next);
		next.generation = check->row.generation + 1;
		memcpy(next.version, check->row.version, sizeof next.version);
	}
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
	       !strcmp(a->object_id, b->object_id) && a->object_is_made == b->object_is_made;
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
		if (likeness == IS_UNKNOWN && may_begin_anew)
			likeness = IS_OTHER;
		enum outcome o = settle(check, likeness);
		check->run->space.generation = check->row.generation;
		if (o != OUTCOME_REFUSED)
			return o == OUTCOME_OK;
	}
	problem_set(check->problem,
		"other uploaders keep writing what the marks know of the bucket: run again");
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
		    check_and_settle(&check);
	run->bucket = check.row;
	s3_conn_free(check.s3);
	return good;
}

void bucket_saw_object(struct run *run, const char *key, const char *etag)
{
	pthread_mutex_lock(&run->locked.mutex);
	snprintf(run->locked.last_key, sizeof run->locked.last_key, "%s", key);
	snprintf(run->locked.last_etag, sizeof run->locked.last_etag, "%s", etag);
	pthread_mutex_unlock(&run->locked.mutex);
}

void bucket_keep_last(struct run *run, struct store_conn *marks)
{
	struct bucket_row row = run->bucket, seen;
	struct problem problem = {0};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + KEEP_WITHIN_NS};
	if (!*run->locked.last_key || atomic_load(&run->stop))
		return;
	memcpy(row.last_key, run->locked.last_key, sizeof row.last_key);
	memcpy(row.last_etag, run->locked.last_etag, sizeof row.last_etag);
	enum outcome o = bucket_row_write(marks, &run->space, &row, &limits, &seen, &problem);
	/* Refused: another uploader has kept one of its own meanwhile, which is as good. */
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("what is known of the bucket could not be kept: %s", problem.text);
}
