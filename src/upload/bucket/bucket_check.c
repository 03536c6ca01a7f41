#include "upload/bucket/bucket_check.h"
#include "base/log.h"
#include "base/quote.h"
#include "marks/bucket_conditions.h"
#include "upload/bucket/bucket_compare.h"
#include "upload/bucket/bucket_doubt.h"
#include "upload/bucket/bucket_id_object.h"
#include <string.h>

#define TURNS_MAX 5 /* each is another uploader's write of the row */

/* No upload is under way yet that would have to finish first. */
static bool is_stopped(void *arg)
{
	struct run *run = arg;
	return atomic_load(&run->stop) > 0 || run_is_over(run);
}

static void warn_of_doubt(const struct bucket_comparison *check)
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

/* What the row says of the object that identifies the bucket. Its id is in the row before the
 * object is made, so that uploaders that race make the same one. */
static bool next_object(struct bucket_comparison *check, struct bucket_row *next)
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

/* Nothing about this bucket may be written to the row, or the next run would take it for the right
 * one. */
static bool doubt_row(const struct bucket_comparison *check, struct bucket_row *ret)
{
	*ret = check->row;
	if (!ret->doubt_from_s)
		ret->doubt_from_s = store_time_s(check->marks->store);
	ret->doubt_to_s = 0;
	return true;
}

/* Sets the row as it is to be from now on. */
static bool next_row(
	struct bucket_comparison *check, enum bucket_likeness likeness, struct bucket_row *ret)
{
	struct bucket_row next = check->row;
	if (likeness == IS_OTHER) {
		memset(&next, 0, sizeof next);
		next.generation = check->row.generation + 1;
		memcpy(next.version, check->row.version, sizeof next.version);
	}
	if (likeness == IS_IN_DOUBT)
		return doubt_row(check, ret);
	/* Files that were uploaded in doubt may be in a different bucket. */
	if (likeness == IS_SAME && next.doubt_from_s && !next.doubt_to_s)
		next.doubt_to_s = store_time_s(check->marks->store);
	if (bucket_differs(check->told.created, next.told.created) ||
		bucket_differs(check->told.owner, next.told.owner))
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
	       strcmp(a->told.created, b->told.created) == 0 &&
	       strcmp(a->told.owner, b->told.owner) == 0 &&
	       strcmp(a->object_id, b->object_id) == 0 && a->object_is_made == b->object_is_made &&
	       a->doubt_from_s == b->doubt_from_s && a->doubt_to_s == b->doubt_to_s;
}

/* OUTCOME_REFUSED: the row is another one now, and check->row is that: by another uploader, or by
 * us with an id whose object is to be made next. */
static enum outcome settle_row(struct bucket_comparison *check, enum bucket_likeness likeness)
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

static bool check_and_settle(struct bucket_comparison *check)
{
	/* Once, whoever of several uploaders does it. */
	const unsigned generation = check->row.generation;
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		check->last_was_looked_at = false;
		check->last = EVIDENCE_NONE;
		check->run->space.generation = check->row.generation;
		enum bucket_likeness likeness = bucket_compare(check);
		const bool may_begin_anew =
			check->run->options.new_bucket && check->row.generation == generation;
		if (likeness == CANNOT_TELL || (likeness == IS_OTHER && !may_begin_anew))
			return false;
		if (may_begin_anew && (likeness == IS_UNKNOWN || likeness == IS_IN_DOUBT ||
					      check->row.doubt_from_s))
			likeness = IS_OTHER;
		check->likeness = likeness;
		check->doubt_is_new = !check->row.doubt_from_s;
		enum outcome o = settle_row(check, likeness);
		check->run->space.generation = check->row.generation;
		if (o != OUTCOME_REFUSED)
			return o == OUTCOME_OK;
	}
	problem_set(check->problem,
		"other uploaders keep writing what the marks know of the bucket: run again");
	return false;
}

static bool begin_doubt(struct bucket_comparison *check)
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
	struct bucket_comparison check = {
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
		conditions_recall(&check.row, run->s3, store_time_s(marks->store));
	s3_conn_free(check.s3);
	return good;
}
