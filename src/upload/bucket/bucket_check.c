/* Checks that this is the bucket of these marks. Before it trusts a mark, the run checks that S3
 * still has the witness. If --bucket-id-object names an object, that object is the witness, and is
 * written again before a lifecycle rule deletes it.
 *
 * feed.c checks the bucket before it reads the first mark, and prove.c before it proves a file. In
 * between, the steps of files call bucket_ensure_trusted() about done marks. push.c keeps a witness
 * when the run ends. No object of a file is judged here. */
#include "upload/bucket/bucket_check.h"
#include "base/clock.h"
#include "base/log.h"
#include "marks/witness.h"
#include "upload/run_manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the most tries, one for each time that another uploader has written the row */
#define TRIES_MAX 5
/* time limit of bucket_save_witness(), at the end of the run */
#define SAVE_WITHIN_NS   (5 * NS_PER_S)
#define ROW_IS_CONTESTED "other uploaders keep writing what the marks know of the bucket: run again"

/* The id object is written again once it is this old. Lifecycle rules count days, and many jobs run
 * once a day. Such a job writes it each time, even if it begins some hours earlier than the day
 * before. */
#define REFRESH_AFTER_S (12 * 3600)

static const char id_object_content[] =
	"This object lets s3once tell this bucket from another one of the same name.\n";

/* Reads the id in the id object, which has this key. *ret_id is "" if there is no object. The table
 * id in the object is not compared, since jobs with different marks may share the object. Returns
 * false with a sentence if the object cannot be read or has no id. */
static bool read_id(const struct witness_asking *asking, const char *key,
	char ret_id[static S3_ID_MAX + 1], struct problem *ret_problem)
{
	const struct witness_wanted wanted = {.key = key};
	struct s3_object object = {0};
	ret_id[0] = '\0';
	const enum witness_look look = witness_look(asking, &wanted, &object, ret_problem);
	if (look == LOOK_GONE)
		return true;
	if (look != LOOK_THERE) {
		problem_prefix(ret_problem, "--bucket-id-object %s cannot be looked at%s",
			quote(key).text,
			look == LOOK_REFUSED ? ": allow s3:GetObject and s3:ListBucket" : "");
		return false;
	}
	if (strlen(object.meta.claim_id) != ID_CHARS || object.size != sizeof id_object_content - 1)
		return problem_error(ret_problem, false,
			"--bucket-id-object %s is an object of other use: name another key",
			quote(key).text);
	memcpy(ret_id, object.meta.claim_id, ID_CHARS + 1);
	return true;
}

/* The time of a check. AT_START: before the run has read a mark. Only then can the generation of
 * the run still change, and only then does a request to stop end the check at once, since no upload
 * is under way yet. */
enum check_time { AT_START, LATER };

/* One check of the bucket. */
struct checking {
	struct run *run;
	enum check_time time;
	struct witness_asking asking;
	struct bucket_row row; /* as last read or written */
	enum witness_answer answer;
	struct witness_shown shown; /* if the answer is SHOWN */
	struct problem *problem;
};

/* State of the key before we write the id object: absent, or this very id object. */
enum id_before { ID_IS_NEW, ID_IS_THERE };

/* Writes the id object, with the id and the table id in its metadata. With ID_IS_NEW,
 * returns REFUSED if an object with this key exists already. */
static enum outcome put_id(struct checking *check, const char *key, const char *id,
	enum id_before before, struct problem *ret_problem)
{
	struct sums sums;
	struct s3_object object;
	const struct s3 *s3 = check->run->s3;
	const enum checksum checksum = s3_checksum(s3);
	const size_t bytes = sizeof id_object_content - 1;
	const struct http_body body = {.bytes = bytes, .memory = id_object_content};
	struct s3_put put = {
		.target = {.key = key, .content_type = "text/plain"},
		.body = &body,
		.sums = &sums,
		.checksum = checksum,
		.condition = {.if_none_match = before == ID_IS_NEW},
		.limits = check->asking.limits,
	};
	snprintf(put.meta.table_id, sizeof put.meta.table_id, "%s",
		check->run->space.settings.table_id);
	snprintf(put.meta.claim_id, sizeof put.meta.claim_id, "%s", id);
	if (digest_bytes(s3_wanted_digests(s3, checksum), id_object_content, bytes, &sums))
		return outcome_no_memory(ret_problem);
	return s3_put_unless_there(check->asking.s3, &put, &object, ret_problem);
}

/* Replaces the row of the bucket by `next`, and notes it in check->row. Returns REFUSED if another
 * uploader has written the row since it was read. In a dry run nothing is written, but check->row
 * becomes `next` all the same, so that the run shows the consequences. */
static enum outcome write_row(struct checking *check, const struct bucket_row *next)
{
	struct bucket_row row = *next, seen;
	enum outcome o = OUTCOME_OK;
	if (!check->run->dry)
		o = bucket_row_write(check->asking.marks, &check->run->space, &row,
			&check->asking.limits, &seen, check->problem);
	if (o == OUTCOME_OK)
		check->row = row;
	return o;
}

/* Begins the next generation of marks (--bucket new), in which no mark is done yet. Returns REFUSED
 * if another uploader has written the row since it was read. */
static enum outcome begin_generation(struct checking *check)
{
	struct bucket_row next = {.generation = check->row.generation + 1};
	memcpy(next.version, check->row.version, sizeof next.version);
	const enum outcome o = write_row(check, &next);
	if (o == OUTCOME_OK)
		check->run->space.generation = next.generation;
	check->answer = WITNESS_NOTHING; /* no mark of the new generation says done */
	return o;
}

/* Reads the id of the object that --bucket-id-object names, and makes the object if there is none.
 * Returns OK, or SETUP with a sentence if that fails or if the object belongs to another program.
 */
static enum outcome find_or_make_id(struct checking *check, char ret_id[static S3_ID_MAX + 1])
{
	const struct run *run = check->run;
	const char *key = run->options.bucket_id_object;
	char id[S3_ID_MAX + 1];
	if (!read_id(&check->asking, key, ret_id, check->problem))
		return OUTCOME_SETUP;
	if (*ret_id)
		return OUTCOME_OK;
	/* The id is always a new one. Jobs with other marks may know an old one, and would mistake
	 * any bucket with it for their own. If another uploader makes the object first (REFUSED),
	 * its id is read below. */
	random_id(id);
	const enum outcome o = put_id(check, key, id, ID_IS_NEW, check->problem);
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED) {
		problem_prefix(
			check->problem, "--bucket-id-object %s cannot be written", quote(key).text);
		return OUTCOME_SETUP;
	}
	if (!read_id(&check->asking, key, ret_id, check->problem))
		return OUTCOME_SETUP;
	if (!*ret_id)
		return (enum outcome)problem_error(check->problem, OUTCOME_SETUP,
			"--bucket-id-object %s was written and is not there", quote(key).text);
	return OUTCOME_OK;
}

/* Records in the row the key and the id of the object that --bucket-id-object names. Returns SETUP
 * with a sentence if there is no such object, and REFUSED if another uploader has written the row
 * since it was read. Does nothing without the option, if the row has this key and an id already,
 * and in a dry run. */
static enum outcome record_id_object(struct checking *check)
{
	const char *key = check->run->options.bucket_id_object;
	struct bucket_row next = check->row;
	char id[S3_ID_MAX + 1];
	const bool is_recorded = key && *next.id && strcmp(next.id_key, key) == 0;
	if (!key || check->run->dry || is_recorded)
		return OUTCOME_OK;
	const enum outcome o = find_or_make_id(check, id);
	if (o != OUTCOME_OK)
		return o;
	snprintf(next.id_key, sizeof next.id_key, "%s", key);
	memcpy(next.id, id, sizeof next.id);
	check->answer = WITNESS_SHOWN;
	return write_row(check, &next);
}

/* Writes the id object again, if that is the witness and has grown old. */
static void refresh_id_object(struct checking *check)
{
	const struct bucket_row *row = &check->row;
	const int64_t age_s = check->shown.id_age_s; /* -1: the witness is another object */
	struct problem problem = {0};
	if (age_s >= REFRESH_AFTER_S &&
		put_id(check, row->id_key, row->id, ID_IS_THERE, &problem) != OUTCOME_OK)
		log_warning("%s is %lld hours old and cannot be written again, so that a "
			    "lifecycle rule may delete it: %s",
			quote(row->id_key).text, (long long)age_s / 3600, problem.text);
}

/* Checks the witness, and acts on the answer. If the witness is gone, this begins a new generation
 * of marks (with may_begin_anew), goes on (with --bucket same), or fails. If S3 refuses to show
 * objects, this begins a new generation (with may_begin_anew) or goes on.
 *
 * After that, record_id_object() takes or makes the object that --bucket-id-object names. It fails
 * if S3 refuses to show that object. Returns REFUSED if another uploader has written the row
 * meanwhile. */
static enum outcome check_witness(struct checking *check, bool may_begin_anew)
{
	struct run *run = check->run;
	struct bucket_row *row = &check->row;
	const char *id_object = run->options.bucket_id_object;
	/* An earlier version of this program has written rows that have the id of the id object,
	 * but not its key. For such a row the key is the one that --bucket-id-object names. */
	if (*row->id && !*row->id_key && id_object)
		snprintf(row->id_key, sizeof row->id_key, "%s", id_object);
	check->answer = witness_ask(&check->asking, row, &check->shown, check->problem);
	enum outcome o = OUTCOME_OK;
	switch (check->answer) {
	case WITNESS_NO_ANSWER:
		return OUTCOME_SETUP;
	case WITNESS_BEGUN_ANEW: /* another uploader has begun a generation: the caller reads the
				    row again */
		return OUTCOME_REFUSED;
	case WITNESS_GONE:
		if (may_begin_anew)
			o = begin_generation(check);
		else if (run->options.bucket_is != S3ONCE_BUCKET_SAME)
			return OUTCOME_SETUP;
		else /* record_id_object() then takes or makes the object */
			row->id[0] = '\0';
		break;
	case WITNESS_REFUSED:
		log_info("S3 refuses to show objects, so that nothing shows whether the bucket is "
			 "the one that the marks are about: %s",
			check->problem->text);
		if (may_begin_anew)
			o = begin_generation(check);
		if (id_object) /* record_id_object() then reports the missing permission */
			row->id[0] = '\0';
		break;
	case WITNESS_SHOWN:
		if (!run->dry)
			refresh_id_object(check);
		break;
	case WITNESS_NOTHING: /* no mark is done, so there is no object to check */
		break;
	}
	return o == OUTCOME_OK ? record_id_object(check) : o;
}

/* Reads the row and checks the witness, and repeats that each time another uploader has written the
 * row.
 *
 * Before any mark is read, the generation of the run becomes that of the row. With --bucket new the
 * run then begins a new generation, unless another uploader has begun one since the row was first
 * read here. In that case the run uses that one. */
static enum outcome check_until_settled(struct checking *check)
{
	struct run *run = check->run;
	int first_generation = 0;
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		enum outcome o = bucket_row_read(check->asking.marks, &run->space,
			&check->asking.limits, &check->row, check->problem);
		if (o != OUTCOME_OK)
			return o;
		if (i == 0)
			first_generation = check->row.generation;
		if (check->time == AT_START)
			run->space.generation = check->row.generation;
		if (run->space.generation != check->row.generation)
			return (enum outcome)problem_error(check->problem, OUTCOME_SETUP,
				"another uploader has begun anew with --bucket new: run again");
		const bool may_begin_anew = check->time == AT_START &&
					    run->options.bucket_is == S3ONCE_BUCKET_NEW &&
					    check->row.generation == first_generation;
		o = check_witness(check, may_begin_anew);
		if (o != OUTCOME_REFUSED)
			return o;
	}
	return (enum outcome)problem_error(check->problem, OUTCOME_SETUP, ROW_IS_CONTESTED);
}

/* Checks the bucket and keeps the answer in the run. Returns false with a sentence. The caller
 * holds run->locked.mutex. */
static bool check_bucket_locked(struct run *run, struct store_conn *marks, enum check_time time,
	struct problem *ret_problem)
{
	struct checking check = {
		.run = run,
		.time = time,
		.asking = {.marks = marks,
			.space = &run->space,
			.keys = object_rules_keys(run->bodies.rules),
			.limits = run_limits(run)},
		.problem = ret_problem,
	};
	if (time == AT_START)
		check.asking.limits.abandon = run_poll_is_stopping;
	if (s3_conn_new(run->s3, &check.asking.s3))
		return problem_error(ret_problem, false, PROBLEM_NO_DESCRIPTORS);
	const bool good = check_until_settled(&check) == OUTCOME_OK;
	s3_conn_free(check.asking.s3);
	if (!good)
		return false;
	run->locked.bucket = check.row;
	/* If the witness is gone, a run comes here only with --bucket same, by which the user
	 * vouches for the bucket. */
	run->locked.is_proven = check.answer == WITNESS_SHOWN || check.answer == WITNESS_GONE;
	/* the witness is a file's object, not an id object */
	if (check.answer == WITNESS_SHOWN && !*check.row.id) {
		memcpy(run->locked.proven_key, check.shown.key, sizeof run->locked.proven_key);
		memcpy(run->locked.proven_etag, check.shown.etag, sizeof run->locked.proven_etag);
	}
	atomic_store(&run->has_witness, check.answer != WITNESS_NOTHING);
	if (check.answer != WITNESS_NOTHING) /* with NOTHING, no request was sent to S3 */
		atomic_store(&run->bucket_answers, true);
	return true;
}

bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem)
{
	uv_mutex_lock(&run->locked.mutex);
	const bool good = check_bucket_locked(run, marks, AT_START, ret_problem);
	uv_mutex_unlock(&run->locked.mutex);
	return good;
}

/* Fails the run with this problem. A run that is over has another reason for its end. */
static void fail_unless_over(struct run *run, const struct problem *problem)
{
	if (!run_is_over(run))
		run_fail(run, problem);
}

bool bucket_ensure_trusted(struct run *run, struct store_conn *marks)
{
	if (atomic_load(&run->has_witness))
		return true;
	struct problem problem = {0};
	/* Another thread may have made the check while this one waited for the mutex. */
	uv_mutex_lock(&run->locked.mutex);
	bool good =
		atomic_load(&run->has_witness) || check_bucket_locked(run, marks, LATER, &problem);
	uv_mutex_unlock(&run->locked.mutex);
	/* A mark says done, but according to the check none does. */
	if (good && !atomic_load(&run->has_witness))
		good = problem_error(
			&problem, false, "marks that said done are gone a moment later: run again");
	if (!good)
		fail_unless_over(run, &problem);
	return good;
}

bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *c,
	const struct version *version)
{
	const struct in_s3 done = {.file = c, .version = version, .event = S3ONCE_EVENT_SKIPPED};
	if (!bucket_ensure_trusted(run, marks))
		return false;
	run_report_in_s3(run, &done, c->size);
	free(c);
	return true;
}

bool bucket_ensure_witness(
	struct run *run, struct store_conn *marks, const char *key, const char *etag)
{
	const struct call_limits limits = run_limits(run);
	struct problem problem = {0};
	bool good = true;
	if (atomic_load(&run->has_witness))
		return true;
	uv_mutex_lock(&run->locked.mutex);
	for (unsigned i = 0; good && !atomic_load(&run->has_witness) && i < TRIES_MAX; i++) {
		struct bucket_row row = run->locked.bucket, seen;
		snprintf(row.last_key, sizeof row.last_key, "%s", key);
		snprintf(row.last_etag, sizeof row.last_etag, "%s", etag);
		const enum outcome o =
			bucket_row_write(marks, &run->space, &row, &limits, &seen, &problem);
		if (o == OUTCOME_OK) {
			run->locked.bucket = row;
			run->locked.is_proven = true;
			atomic_store(&run->has_witness, true);
		} else {
			/* Another uploader has written the row since this run read it. Its witness
			 * is as good as this object, once S3 has shown it: check_bucket_locked()
			 * reads the row, and checks that witness. If the row has no witness, the
			 * next try adds this object to it. */
			good = o == OUTCOME_REFUSED &&
			       check_bucket_locked(run, marks, LATER, &problem);
		}
	}
	if (good && !atomic_load(&run->has_witness))
		good = problem_error(&problem, false, ROW_IS_CONTESTED);
	uv_mutex_unlock(&run->locked.mutex);
	if (!good)
		fail_unless_over(run, &problem);
	return good;
}

void bucket_note_object(struct run *run, const char *key, const char *etag)
{
	atomic_store(&run->bucket_answers, true);
	uv_mutex_lock(&run->locked.mutex);
	snprintf(run->locked.proven_key, sizeof run->locked.proven_key, "%s", key);
	snprintf(run->locked.proven_etag, sizeof run->locked.proven_etag, "%s", etag);
	uv_mutex_unlock(&run->locked.mutex);
}

/* All workers have ended, so the mutex is not needed. */
void bucket_save_witness(struct run *run, struct store_conn *marks)
{
	struct bucket_row row = run->locked.bucket, seen;
	struct problem problem = {0};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + SAVE_WITHIN_NS};
	/* the object that was proven last in this run; "": there is none */
	const char *key = run->locked.proven_key, *etag = run->locked.proven_etag;
	const bool is_in_row = strcmp(row.last_key, key) == 0 && strcmp(row.last_etag, etag) == 0;
	const bool has_news = *key && !is_in_row;
	if (run_is_stopping(run) || run->dry || !has_news)
		return;
	/* Without proof that this is the bucket, the row must not be written. If the row has the id
	 * of an id object, that object stays the witness. */
	if (!run->locked.is_proven || *row.id)
		return;
	memcpy(row.last_key, key, sizeof row.last_key);
	memcpy(row.last_etag, etag, sizeof row.last_etag);
	enum outcome o = bucket_row_write(marks, &run->space, &row, &limits, &seen, &problem);
	/* REFUSED means that another uploader has kept a witness meanwhile, which is as good. */
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("what is known of the bucket could not be kept: %s", problem.text);
}
