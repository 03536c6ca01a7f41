#include "audit/bucket_known.h"
#include "base/quote.h"
#include "base/text.h"
#include "marks/bucket_row.h"
#include <stdlib.h>
#include <string.h>

#define SAMPLES     16    /* objects that are looked at where nothing else tells */
#define SAMPLE_FROM 20000 /* marks that they are taken from */

struct identification {
	const struct audit_place *place;
	const struct audit_hand *hand;
	struct bucket_row row;
	struct s3_identity told;
	bool seen;     /* an object that the marks know is there */
	bool has_done; /* a mark says that one is */
};

static bool differs(const char *now, const char *before)
{
	return *now && *before && strcmp(now, before) != 0;
}

/* A HEAD that is refused shows nothing. */
static enum outcome look_at_sample(
	struct identification *id, const char *key, const char *etag, struct problem *ret_problem)
{
	const struct s3_target target = {.key = key};
	struct s3_object now = {0};
	const enum outcome o =
		s3_head_object(id->hand->s3, &target, &id->place->limits, &now, ret_problem);
	if (o == OUTCOME_OK)
		id->seen = (*etag && strcmp(now.etag, etag) == 0) ||
			   strcmp(now.meta.table, id->place->space->settings.table_id) == 0;
	return o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID ? OUTCOME_OK : o;
}

static enum outcome look_at_row(
	struct identification *id, const struct mark_row *row, struct problem *ret_problem)
{
	struct text key = TEXT(2048);
	text_add(&key, row->key);
	text_add(&key, row->suffix);
	enum outcome o = OUTCOME_LOCAL;
	if (key.error)
		problem_set(ret_problem, "out of memory");
	else
		o = look_at_sample(id, text_string(&key), row->etag, ret_problem);
	text_clear(&key);
	return o;
}

/* Every step'th of the first marks, the step doubled as often as there are too many. */
static enum outcome sample_marks(struct mark_stream *stream,
	struct mark_row *samples[static SAMPLES], struct problem *ret_problem)
{
	size_t n = 0, step = 1;
	for (size_t i = 0; i < SAMPLE_FROM; i++) {
		struct mark_row *row;
		const enum outcome o = mark_stream_next(stream, &row, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		if (!row)
			break;
		if (row->state != MARK_DONE || i % step) {
			free(row);
			continue;
		}
		if (n == SAMPLES) {
			for (size_t k = 0; k < SAMPLES; k += 2) {
				free(samples[k + 1]);
				samples[k / 2] = samples[k];
			}
			n = SAMPLES / 2;
			for (size_t k = n; k < SAMPLES; k++)
				samples[k] = NULL;
			step *= 2;
		}
		samples[n++] = row;
	}
	return OUTCOME_OK;
}

static enum outcome look_at_samples(struct identification *id, struct problem *ret_problem)
{
	struct mark_row *samples[SAMPLES] = {0};
	struct mark_stream *stream;
	const struct mark_range all = {.prefix = ""};
	if (mark_stream_new(id->hand->marks, id->place->space, &all, &id->place->limits, &stream)) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	enum outcome o = sample_marks(stream, samples, ret_problem);
	mark_stream_free(stream);
	id->has_done = samples[0];
	for (size_t i = 0; i < SAMPLES; i++) {
		if (samples[i] && o == OUTCOME_OK && !id->seen)
			o = look_at_row(id, samples[i], ret_problem);
		free(samples[i]);
	}
	return o;
}

/* What the service says of the bucket itself. It may say nothing. */
static enum outcome ask_service(struct identification *id, struct problem *ret_problem)
{
	enum outcome o = s3_look_for_bucket(id->hand->s3, &id->place->limits, ret_problem);
	if (o == OUTCOME_ABSENT)
		problem_set(ret_problem,
			"there is no bucket %s: check its name, the endpoint and the region",
			quote(id->place->space->bucket).text);
	if (o == OUTCOME_ABSENT || o == OUTCOME_SETUP)
		return OUTCOME_SETUP;
	if (o != OUTCOME_OK && o != OUTCOME_DENIED)
		return o;
	o = s3_identify_by_listing(id->hand->s3, &id->place->limits, &id->told, ret_problem);
	const bool is_answered = o == OUTCOME_DENIED || o == OUTCOME_UNSUPPORTED ||
				 o == OUTCOME_INVALID || o == OUTCOME_ABSENT || o == OUTCOME_SETUP;
	return is_answered ? OUTCOME_OK : o;
}

static enum outcome look_for_objects(struct identification *id, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	if (*id->row.last_key)
		o = look_at_sample(id, id->row.last_key, id->row.last_etag, ret_problem);
	return o == OUTCOME_OK && !id->seen ? look_at_samples(id, ret_problem) : o;
}

enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	const char *bucket, struct problem *ret_problem)
{
	struct identification id = {.place = place, .hand = hand};
	enum outcome o =
		bucket_row_read(hand->marks, place->space, &place->limits, &id.row, ret_problem);
	if (o == OUTCOME_OK)
		o = ask_service(&id, ret_problem);
	if (o != OUTCOME_OK && o != OUTCOME_SETUP)
		problem_prefix(ret_problem,
			"whether it is the bucket that the marks are about cannot be found out");
	if (o != OUTCOME_OK)
		return o;
	const bool is_other = differs(id.told.created, id.row.told.created) ||
			      differs(id.told.owner, id.row.told.owner);
	const bool is_in_doubt = id.row.doubt_from_s && !id.row.doubt_to_s;
	if (*id.told.created && *id.row.told.created && !is_other && !is_in_doubt)
		return OUTCOME_OK;
	o = look_for_objects(&id, ret_problem);
	if (o != OUTCOME_OK || id.seen)
		return o;
	if (!*id.row.version && !id.has_done) {
		problem_set(ret_problem,
			"there are no marks of bucket %s at this endpoint: check the name, the "
			"endpoint and --marks",
			quote(bucket).text);
		return OUTCOME_SETUP;
	}
	problem_set(ret_problem,
		"nothing shows that bucket %s is the one that the marks are about: the service shows "
		"%s, and none of the uploaded objects that it was asked for; check the endpoint and the "
		"credentials",
		quote(bucket).text,
		is_other ? "another creation date or owner" : "no creation date to compare");
	return OUTCOME_SETUP;
}
