/* Checks that S3 still has an object of a done mark, before such marks are trusted. It tries the
 * witness first, and then a few samples. Runs, verify, forget and gc call it. Nothing is written.
 * An answer that may come from a proxy instead of S3 does not count. */
#include "marks/witness.h"
#include "aws/retry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "marks/mark_stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DONE_SAMPLES 8
#define NEWEST       (DONE_SAMPLES / 2) /* list[0..NEWEST) are those that were marked last */
#define MARKS_MAX    20000              /* the most marks to read, once one of them says done */
#define WAIT_MIN_MS  250
#define WAIT_LONG_MS 20000 /* the wait doubles until it is at least this long */
#define NAMED_MAX    3     /* the most keys in a sentence */

/* An object that should exist according to a mark of the bucket. */
struct done_sample {
	char key[KEY_BYTES_MAX + 1]; /* key of the object */
	char etag[S3_ETAG_MAX + 1];
	int64_t at_s; /* time of the mark's last change */
};
/* A few of these objects. */
struct done_samples {
	struct done_sample list[DONE_SAMPLES];
	unsigned n;
};

static void keep_sample(struct done_sample *at, const char *key, const struct mark *mark)
{
	const int n = snprintf(at->key, sizeof at->key, "%s%s", key, mark->done.suffix);
	snprintf(at->etag, sizeof at->etag, "%s", mark->done.etag);
	at->at_s = mark->at_s;
	if (n >= (int)sizeof at->key) /* too long to be a key in S3 */
		at->key[0] = '\0';
}

/* Considers the nth done mark, counted from 0, as a sample. The first half of the list keeps the
 * marks that were changed last. The second half is a random choice of the others. */
static void consider_sample(
	struct done_samples *samples, uint64_t nth, const char *key, const struct mark *mark)
{
	struct done_sample *oldest = &samples->list[0], sample;
	keep_sample(&sample, key, mark);
	if (samples->n < NEWEST) {
		samples->list[samples->n++] = sample;
		return;
	}
	for (unsigned i = 1; i < NEWEST; i++)
		if (samples->list[i].at_s < oldest->at_s)
			oldest = &samples->list[i];
	if (sample.at_s > oldest->at_s) {
		const struct done_sample newer = sample;
		sample = *oldest;
		*oldest = newer;
	}
	/* Reservoir sampling: each of the others stays with the same probability, however many are
	 * read. */
	const uint64_t place =
		samples->n < DONE_SAMPLES ? samples->n++ : NEWEST + random_below(nth + 1 - NEWEST);
	if (place < DONE_SAMPLES)
		samples->list[place] = sample;
}

/* Reads marks of one shard, and considers those that say done as samples. Reads max_marks of them,
 * or more until *n_done, the number of done marks so far, is not 0. */
static enum outcome sample_shard(const struct witness_asking *asking, struct mark_pages *pages,
	unsigned shard, unsigned max_marks, struct done_samples *samples, uint64_t *n_done,
	struct problem *ret_problem)
{
	const struct packed_mark *row;
	for (unsigned n = 0; !*n_done || n < max_marks; n++) {
		const enum outcome o =
			mark_pages_seek(pages, asking->marks, shard, "", NULL, &row, ret_problem);
		if (o != OUTCOME_OK || !row)
			return o;
		const struct mark mark = mark_unpack(row);
		if (mark.state == MARK_DONE)
			consider_sample(samples, (*n_done)++, row->key, &mark);
		free(mark_pages_take(pages, shard));
	}
	return OUTCOME_OK;
}

/* Takes samples of the done marks. Half of the samples are the marks that were changed last, since
 * a lifecycle rule deletes the oldest objects first. The other half are a random choice. About
 * 20,000 marks are read. If none of these says done, more are read until one does, so that there is
 * no sample only if no mark is done. */
static enum outcome take_samples(
	const struct witness_asking *asking, struct done_samples *ret, struct problem *ret_problem)
{
	const struct mark_pages_options options = {
		.space = asking->space, .limits = asking->limits, .is_consistent = true};
	const unsigned shards = asking->space->settings.shards;
	struct mark_pages *pages;
	enum outcome o = OUTCOME_OK;
	uint64_t n_done = 0;
	if (mark_pages_new(&options, &pages))
		return outcome_no_memory(ret_problem);
	for (unsigned i = 0; i < shards && o == OUTCOME_OK; i++)
		o = sample_shard(asking, pages, i, MARKS_MAX / shards, ret, &n_done, ret_problem);
	mark_pages_free(pages);
	return o;
}

/* Whether an object is the wanted one. The proof is the kept etag, the kept id, which its metadata
 * has in place of a claim, or our metadata for this very key. A page of HTML and the headers of
 * another object prove nothing. */
static bool is_wanted(const struct witness_asking *asking, const struct witness_wanted *wanted,
	const struct s3_object *object)
{
	if (wanted->id)
		return *object->meta.claim_id && strcmp(object->meta.claim_id, wanted->id) == 0;
	if (!wanted->etag)
		return true;
	const bool has_etag = *wanted->etag && strcmp(object->etag, wanted->etag) == 0;
	const bool has_our_metadata =
		settings_had_id(&asking->space->settings, object->meta.table_id) &&
		object->meta.written_for == S3_WRITTEN_FOR_THIS;
	return has_etag || has_our_metadata;
}

/* Sends a HEAD with each of the caller's keys, until one is not refused. INVALID or DENIED may mean
 * that the object is encrypted with another key, or with none. So the last HEAD has no key: that of
 * the NULL at the end of the list, or the only one if there is no list. */
static enum outcome head_with_any_key(const struct witness_asking *asking, const char *object_key,
	const struct call_limits *limits, struct s3_object *ret, struct problem *ret_problem)
{
	struct s3_target target = {.key = object_key};
	const struct s3_headers *const *key = asking->keys;
	enum outcome o;
	do {
		target.headers = key ? *key : NULL;
		o = s3_head_object(asking->s3, &target, limits, ret, ret_problem);
	} while ((o == OUTCOME_INVALID || o == OUTCOME_DENIED) && key && *key++);
	return o;
}

/* Explains a GET that contradicts the HEAD before it: one that shows the object, or that is refused
 * although the HEAD was not. */
static void explain_contradiction(
	const char *object_key, bool head_was_denied, enum outcome get, struct problem *ret_problem)
{
	if (get == OUTCOME_OK && head_was_denied)
		s3_explain_refused_head(object_key, ret_problem);
	else if (get == OUTCOME_OK)
		problem_set(ret_problem,
			"HEAD says that there is no object %s, and GET shows it: a cache or proxy "
			"on the way answers HEAD by itself: exempt the host of S3 from it",
			quote(object_key).text);
	else if (get == OUTCOME_DENIED && !head_was_denied)
		problem_prefix(ret_problem,
			"HEAD says that there is no object %s, and GET is refused: check the proxy "
			"and the policy",
			quote(object_key).text);
}

/* Sends a GET after a HEAD that was refused (`head_was_denied`), or that found no object. The reply
 * to a HEAD cannot show whether S3 itself has answered. A GET can, since only S3 names NoSuchKey
 * and AccessDenied.
 *
 * A refused GET counts only if the HEAD was refused, too: if HEAD was answered with 404, and the
 * GET is refused, something on the way blocks GETs. */
static enum witness_look confirm_by_get(const struct witness_asking *asking, const char *object_key,
	bool head_was_denied, const struct call_limits *limits, enum outcome *ret_outcome,
	struct problem *ret_problem)
{
	const struct s3_target target = {
		.key = object_key, .headers = asking->keys ? *asking->keys : NULL};
	const enum outcome o = s3_get_first_byte(asking->s3, &target, limits, ret_problem);
	*ret_outcome = o;
	explain_contradiction(object_key, head_was_denied, o, ret_problem);
	if (!*ret_problem->code) /* this answer gives no code, so it may not come from S3 */
		return LOOK_NO_ANSWER;
	if (o == OUTCOME_ABSENT)
		return LOOK_GONE;
	if (o == OUTCOME_DENIED && head_was_denied)
		return LOOK_REFUSED;
	return o == OUTCOME_INVALID ? LOOK_ENCRYPTED : LOOK_NO_ANSWER;
}

/* Checks one object, without retrying. *ret_outcome is the outcome of the last request. */
static enum witness_look look_without_retry(const struct witness_asking *asking,
	const struct witness_wanted *wanted, const struct call_limits *limits,
	struct s3_object *ret, enum outcome *ret_outcome, struct problem *ret_problem)
{
	const enum outcome o = head_with_any_key(asking, wanted->key, limits, ret, ret_problem);
	*ret_outcome = o;
	if (o == OUTCOME_OK && is_wanted(asking, wanted, ret))
		return LOOK_THERE;
	/* The id of the request shows that the reply comes from S3 itself. */
	if (o == OUTCOME_OK && ret->has_request_id)
		return LOOK_ANOTHER;
	if (o == OUTCOME_OK)
		problem_set(ret_problem,
			"the reply to the look at %s has neither the etag nor the metadata of the "
			"object that was uploaded: check the endpoint",
			quote(wanted->key).text);
	if (o != OUTCOME_ABSENT && o != OUTCOME_DENIED && o != OUTCOME_INVALID)
		return LOOK_NO_ANSWER;
	return confirm_by_get(
		asking, wanted->key, o == OUTCOME_DENIED, limits, ret_outcome, ret_problem);
}

enum witness_look witness_look(const struct witness_asking *asking,
	const struct witness_wanted *wanted, struct s3_object *ret, struct problem *ret_problem)
{
	const uint64_t end_ns = clock_boot_ns() + asking->limits.patience_ms * NS_PER_MS;
	struct call_limits limits = asking->limits;
	uint64_t wait_ms = WAIT_MIN_MS;
	for (;;) {
		enum outcome o;
		const enum witness_look look =
			look_without_retry(asking, wanted, &limits, ret, &o, ret_problem);
		const uint64_t now_ns = clock_boot_ns();
		/* Wrong credentials, certificates and redirects are SETUP. */
		const bool is_for_good =
			o == OUTCOME_SETUP || o == OUTCOME_ABANDONED || o == OUTCOME_LOCAL;
		if (look != LOOK_NO_ANSWER || is_for_good || now_ns >= end_ns)
			return look;
		const uint64_t left_ms = (end_ns - now_ns) / NS_PER_MS + 1;
		limits.patience_ms = left_ms;
		if (wait_ms == WAIT_MIN_MS) /* the first time only */
			log_warning("%s; asking again for up to %llu s (--give-up-after)",
				ret_problem->text,
				(unsigned long long)(asking->limits.patience_ms / 1000));
		if (wait_within(&limits, wait_ms < left_ms ? wait_ms : left_ms, NULL) != OUTCOME_OK)
			return look;
		if (wait_ms < WAIT_LONG_MS)
			wait_ms *= 2;
	}
}

/* The objects that S3 did not show. */
struct missed {
	struct text keys;
	unsigned n;
	/* the problem of an object that may exist and is encrypted; or "" */
	struct problem encrypted;
};

/* Checks one object. If it is gone, or another has its key, the answer is NOTHING, and its key is
 * added to *missed. If it is encrypted with another key, the answer is also NOTHING, so that other
 * objects are checked. */
static enum witness_answer check_one(const struct witness_asking *asking,
	const struct witness_wanted *wanted, struct missed *missed, struct witness_shown *ret,
	struct problem *ret_problem)
{
	struct s3_object object = {0};
	const enum witness_look look = witness_look(asking, wanted, &object, ret_problem);
	if (look == LOOK_NO_ANSWER)
		return WITNESS_NO_ANSWER;
	if (look == LOOK_REFUSED)
		return WITNESS_REFUSED;
	if (look == LOOK_ENCRYPTED) {
		missed->encrypted = *ret_problem;
		return WITNESS_NOTHING;
	}
	if (look == LOOK_THERE) {
		snprintf(ret->key, sizeof ret->key, "%s", wanted->key);
		snprintf(ret->etag, sizeof ret->etag, "%s", object.etag);
		ret->id_age_s = wanted->id ? object.age_s : -1;
		return WITNESS_SHOWN;
	}
	if (missed->n++ < NAMED_MAX)
		text_addf(
			&missed->keys, "%s%s", missed->n > 1 ? ", " : "", quote(wanted->key).text);
	return WITNESS_NOTHING;
}

/* Checks a few objects of done marks, until S3 shows one. */
static enum witness_answer check_samples(const struct witness_asking *asking,
	const struct witness_wanted *witness, struct missed *missed, struct witness_shown *ret,
	struct problem *ret_problem)
{
	struct done_samples samples = {.n = 0};
	enum witness_answer answer = WITNESS_NOTHING;
	if (take_samples(asking, &samples, ret_problem) != OUTCOME_OK)
		return WITNESS_NO_ANSWER;
	for (unsigned i = 0; i < samples.n && answer == WITNESS_NOTHING; i++) {
		const struct done_sample *one = &samples.list[i];
		if (strcmp(one->key, witness->key) == 0 && strcmp(one->etag, witness->etag) == 0)
			continue; /* the witness was checked already */
		const struct witness_wanted wanted = {.key = one->key, .etag = one->etag};
		answer = check_one(asking, &wanted, missed, ret, ret_problem);
	}
	return answer;
}

/* Explains that S3 has shown no object. Returns NO_ANSWER if an encrypted one may be there, GONE if
 * objects are missing, and NOTHING if none is. */
static enum witness_answer explain_nothing(const struct witness_asking *asking,
	const struct missed *missed, struct problem *ret_problem)
{
	if (*missed->encrypted.text) {
		*ret_problem = missed->encrypted;
		problem_prefix(ret_problem,
			"the object by which bucket %s is recognised cannot be read with the keys "
			"that are given",
			asking->space->bucket);
		return WITNESS_NO_ANSWER;
	}
	if (!missed->n)
		return WITNESS_NOTHING;
	problem_set(ret_problem,
		"bucket %s at %s is not the bucket that the marks are about, or was "
		"emptied: check the endpoint and the credentials; if it is another bucket, "
		"push once with --bucket new, which checks each file again; if it is the "
		"same one, push once with --bucket same and --bucket-id-object KEY; "
		"uploaded objects that are gone: %s",
		asking->space->bucket, quote(asking->space->service).text,
		text_string(&missed->keys));
	return WITNESS_GONE;
}

enum witness_answer witness_ask(const struct witness_asking *asking, const struct bucket_row *row,
	struct witness_shown *ret, struct problem *ret_problem)
{
	const bool has_id = *row->id && *row->id_key;
	const struct witness_wanted witness = {.key = has_id ? row->id_key : row->last_key,
		.etag = row->last_etag,
		.id = has_id ? row->id : NULL};
	struct missed missed = {.keys = TEXT(NAMED_MAX * 1100)}; /* a key has 1024 bytes at most */
	struct bucket_row now;
	enum witness_answer answer = WITNESS_NOTHING;
	if (*witness.key)
		answer = check_one(asking, &witness, &missed, ret, ret_problem);
	if (answer == WITNESS_NOTHING && !has_id)
		answer = check_samples(asking, &witness, &missed, ret, ret_problem);
	if (answer == WITNESS_NOTHING)
		answer = explain_nothing(asking, &missed, ret_problem);
	text_clear(&missed.keys);
	if (answer != WITNESS_SHOWN)
		return answer;
	/* The row is read again. Another uploader may have begun a new generation meanwhile, and
	 * the shown object may be one that it has sent. Such an object proves nothing about the
	 * marks of the caller's generation. */
	if (bucket_row_read(asking->marks, asking->space, &asking->limits, &now, ret_problem) !=
		OUTCOME_OK)
		return WITNESS_NO_ANSWER;
	if (now.generation == asking->space->generation)
		return WITNESS_SHOWN;
	problem_set(ret_problem,
		"another uploader has begun anew with --bucket new meanwhile: run again");
	return WITNESS_BEGUN_ANEW;
}
