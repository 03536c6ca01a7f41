#include "upload/bucket/bucket_doubt.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/bucket/bucket_evidence.h"
#include "upload/run_manifest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_MAX      3
#define KEEP_WITHIN_NS (5 * NS_PER_S) /* at the end, when all else is done */

enum group_of_marks { OTHERS, IN_DOUBT, GROUPS };

struct parked {
	struct bucket_skip skip;
	struct version version; /* of the mark, if there is a manifest */
	enum group_of_marks group;
	bool is_gone;
};

struct bucket_doubt {
	struct s3_conn *s3;
	atomic_bool open[GROUPS]; /* its marks are not believed yet */
	bool is_new;              /* no earlier run was in doubt */
	struct {
		uv_mutex_t mutex;      /* held while one is looked for */
		bool is_shown[GROUPS]; /* an object of this group was seen */
		unsigned looks[GROUPS], gone[GROUPS];
		struct parked parked[GROUPS * LOOKS_MAX];
		unsigned n_parked;
	} locked;
};

int bucket_doubt_new(struct run *run, bool others_are_shown, bool is_new)
{
	struct bucket_doubt *doubt = calloc(1, sizeof *doubt);
	int error = doubt ? s3_conn_new(run->s3, &doubt->s3) : -ENOMEM;
	if (error) {
		free(doubt);
		return error;
	}
	uv_mutex_init(&doubt->locked.mutex);
	atomic_store(&doubt->open[OTHERS], !others_are_shown);
	doubt->locked.is_shown[OTHERS] = others_are_shown;
	atomic_store(&doubt->open[IN_DOUBT], true);
	doubt->is_new = is_new;
	run->doubt = doubt;
	return 0;
}

void bucket_doubt_free(struct run *run)
{
	struct bucket_doubt *doubt = run->doubt;
	if (!doubt)
		return;
	for (unsigned i = 0; i < doubt->locked.n_parked; i++)
		free(doubt->locked.parked[i].skip.candidate);
	s3_conn_free(doubt->s3);
	uv_mutex_destroy(&doubt->locked.mutex);
	free(doubt);
	run->doubt = NULL;
}

bool bucket_is_in_doubt(const struct run *run)
{
	return run->doubt &&
	       (atomic_load(&run->doubt->open[OTHERS]) || atomic_load(&run->doubt->open[IN_DOUBT]));
}

static enum group_of_marks group_of(const struct run *run, int64_t at_s)
{
	const struct bucket_row *row = &run->bucket;
	return row->doubt_from_s && at_s >= row->doubt_from_s &&
			       (!row->doubt_to_s || at_s < row->doubt_to_s)
		       ? IN_DOUBT
		       : OTHERS;
}

static void stop_in_doubt(struct run *run)
{
	const struct bucket_doubt *doubt = run->doubt;
	struct problem problem;
	struct text keys = TEXT(1500);
	for (unsigned i = 0; i < doubt->locked.n_parked; i++)
		if (doubt->locked.parked[i].is_gone)
			text_addf(&keys, "%s%s", text_string(&keys)[0] ? ", " : "",
				quote(doubt->locked.parked[i].skip.candidate->object).text);
	problem_set(&problem,
		"bucket %s at %s does not hold %s, although the marks say that it was uploaded, "
		"and nothing shows that such marks are about this bucket: the objects were deleted, "
		"or it is another bucket; " BUCKET_WAY_OUT,
		run->options.bucket, quote(run->aws->s3_endpoint).text, text_string(&keys));
	text_clear(&keys);
	run_fail(run, &problem);
}

static void release_group(struct run *run, enum group_of_marks group)
{
	struct bucket_doubt *doubt = run->doubt;
	unsigned kept = 0;
	for (unsigned i = 0; i < doubt->locked.n_parked; i++) {
		const struct parked *parked = &doubt->locked.parked[i];
		struct candidate *c = parked->skip.candidate;
		const struct report_file about = {c->path, c->object, c->size};
		struct problem said;
		if (parked->group != group) {
			doubt->locked.parked[kept++] = *parked;
			continue;
		}
		if (parked->skip.said)
			problem_set(&said, "%s", parked->skip.said);
		report_file(
			&run->report, parked->skip.event, &about, parked->skip.said ? &said : NULL);
		if (parked->skip.event == S3ONCE_EVENT_SKIPPED)
			run_manifest_add(run, &(struct in_s3){.file = c,
						      .version = &parked->version,
						      .event = parked->skip.event});
		free(c);
	}
	doubt->locked.n_parked = kept;
	atomic_store(&doubt->open[group], false);
}

/* The mark is read for the etag. If the mark has changed by now, the object's metadata decides. */
static bool look_for(struct run *run, struct store_conn *marks, const char *key, enum evidence *ret)
{
	struct problem problem = {0};
	struct mark mark = {0};
	const struct call_limits limits = run_limits(run);
	const struct mark_ref ref = {
		.conn = marks, .space = &run->space, .key = key, .limits = limits};
	bool good = mark_get(&ref, &mark, &problem) == OUTCOME_OK;
	if (good) {
		char key_of_object[KEY_BYTES_MAX + SUFFIX_MAX + 1];
		snprintf(key_of_object, sizeof key_of_object, "%s%s", key, mark.done.suffix);
		const struct uploaded object = {
			key_of_object, mark.state == MARK_DONE ? mark.done.etag : ""};
		good = bucket_look_at(run, run->doubt->s3, &object, &limits, ret, &problem);
		if (good && *ret == EVIDENCE_THERE)
			bucket_saw_object(run, object.key, object.etag);
	}
	mark_clear(&mark);
	if (!good && !run_is_over(run))
		run_fail(run, &problem);
	return good;
}

static enum belief ask_evidence(
	struct run *run, struct store_conn *marks, const struct bucket_skip *skip)
{
	struct bucket_doubt *doubt = run->doubt;
	const enum group_of_marks group = group_of(run, skip->at_s);
	enum evidence evidence = EVIDENCE_NONE;
	if (!atomic_load(&doubt->open[group]))
		return BELIEF_YES;
	if (run_is_over(run) || !look_for(run, marks, skip->candidate->key, &evidence))
		return BELIEF_OVER;
	const unsigned looks = ++doubt->locked.looks[group];
	doubt->locked.gone[group] += evidence == EVIDENCE_GONE;
	doubt->locked.is_shown[group] |= evidence == EVIDENCE_THERE;
	/* Where objects may not be looked at, nothing can be compared. */
	if (evidence == EVIDENCE_THERE || (looks == LOOKS_MAX && !doubt->locked.gone[group])) {
		release_group(run, group);
		return BELIEF_YES;
	}
	struct parked *parked = &doubt->locked.parked[doubt->locked.n_parked++];
	*parked = (struct parked){
		.skip = *skip, .group = group, .is_gone = evidence == EVIDENCE_GONE};
	if (skip->version)
		parked->version = *skip->version;
	if (looks == LOOKS_MAX)
		stop_in_doubt(run);
	return BELIEF_PARKED;
}

enum belief bucket_believe(
	struct run *run, struct store_conn *marks, const struct bucket_skip *skip)
{
	struct bucket_doubt *doubt = run->doubt;
	if (!bucket_is_in_doubt(run))
		return BELIEF_YES;
	uv_mutex_lock(&doubt->locked.mutex);
	enum belief belief = ask_evidence(run, marks, skip);
	uv_mutex_unlock(&doubt->locked.mutex);
	return belief;
}

bool bucket_skip_done(struct run *run, struct store_conn *marks, struct candidate *c,
	const struct version *version)
{
	const struct bucket_skip skip = {c, c->known.at_s, S3ONCE_EVENT_SKIPPED, NULL, version};
	const struct report_file about = {c->path, c->object, c->size};
	const enum belief belief = bucket_believe(run, marks, &skip);
	if (belief == BELIEF_PARKED)
		return true;
	if (belief == BELIEF_YES) {
		report_file(&run->report, S3ONCE_EVENT_SKIPPED, &about, NULL);
		run_manifest_add(
			run, &(struct in_s3){
				     .file = c, .version = version, .event = S3ONCE_EVENT_SKIPPED});
	}
	free(c);
	return belief == BELIEF_YES;
}

void bucket_doubt_end(struct run *run)
{
	struct bucket_doubt *doubt = run->doubt;
	if (!doubt || atomic_load(&run->stop) || run_is_over(run))
		return;
	for (enum group_of_marks group = 0; group < GROUPS; group++)
		if (!doubt->locked.gone[group])
			release_group(run, group);
	if (doubt->locked.n_parked)
		stop_in_doubt(run);
}

/* The files that this run uploaded in doubt are in the same bucket as the others. */
static bool is_doubt_over(const struct bucket_doubt *doubt)
{
	return !doubt || (doubt->locked.is_shown[OTHERS] &&
				 (doubt->locked.is_shown[IN_DOUBT] ||
					 (doubt->is_new && !doubt->locked.gone[IN_DOUBT])));
}

/* Returns whether this changes the row. */
static bool take_last(struct run *run, struct bucket_row *row)
{
	if (!*run->locked.last_key)
		return false;
	if (is_doubt_over(run->doubt))
		row->doubt_from_s = row->doubt_to_s = 0;
	memcpy(row->last_key, run->locked.last_key, sizeof row->last_key);
	memcpy(row->last_etag, run->locked.last_etag, sizeof row->last_etag);
	return true;
}

void bucket_keep(struct run *run, struct store_conn *marks)
{
	struct bucket_row row = run->bucket, seen;
	struct problem problem = {0};
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + KEEP_WITHIN_NS};
	if (!*row.version || atomic_load(&run->stop) || run->dry ||
		(run->doubt && !run->doubt->locked.is_shown[OTHERS]))
		return;
	if (!take_last(run, &row))
		return;
	enum outcome o = bucket_row_write(marks, &run->space, &row, &limits, &seen, &problem);
	/* Refused: another uploader has kept one of its own meanwhile, which is as good. */
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("what is known of the bucket could not be kept: %s", problem.text);
}
