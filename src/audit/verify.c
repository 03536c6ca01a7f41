#include "audit/verify.h"
#include "audit/expected.h"
#include "audit/inspect.h"
#include "audit/object_stream.h"
#include "audit/verify_tasks.h"
#include "base/clock.h"
#include "base/quote.h"
#include "manifest/manifest_name.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two calls of progress() so many keys are merged at least. */
#define KEYS_PER_GLANCE 100

/* The merge of both streams. */
struct merging {
	const struct verify *verify;
	struct store_conn *store;
	struct s3_conn *s3;
	struct expected *expected;
	struct object_stream *objects;
	struct mark_row *mark;           /* the next one, owned; NULL: none any more */
	const struct object_row *object; /* likewise, borrowed */
	bool object_has_mark;
	struct verify_tasks tasks;
	char after[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* all up to this key was merged */
	uint64_t told_ns;
};

static enum outcome next_mark(struct merging *merging, struct problem *ret_problem)
{
	do {
		free(merging->mark);
		merging->mark = NULL;
		const enum outcome o =
			expected_next(merging->expected, &merging->mark, ret_problem);
		if (o != OUTCOME_OK) {
			problem_prefix(ret_problem, "the marks cannot be read");
			return o;
		}
	} while (merging->mark && merging->mark->state == MARK_FORGOTTEN);
	return OUTCOME_OK;
}

/* What was compared so far is right all the same: of a mark whose object the listing does not have
 * at its place, a HEAD has decided. */
static void leave_listing(struct merging *merging, const struct problem *why)
{
	const struct verify_visitor *visitor = &merging->verify->visitor;
	const char *server = s3_server(merging->verify->s3);
	struct problem problem;
	merging->object = NULL;
	problem_set(&problem,
		"%s, and calls itself '%s'; from there on each file is compared by a HEAD, as with "
		"--head, and objects that have no mark are not looked for",
		why->text, quote(server).text);
	visitor->warned(visitor->arg, &problem);
}

static enum outcome next_object(struct merging *merging, struct problem *ret_problem)
{
	merging->object_has_mark = false;
	const enum outcome o = object_stream_next(merging->objects, &merging->object, ret_problem);
	if (o == OUTCOME_OK && merging->object)
		verify_tasks_count_listed(&merging->tasks);
	if (o == OUTCOME_UNSUPPORTED) {
		leave_listing(merging, ret_problem);
		return OUTCOME_OK;
	}
	if (o == OUTCOME_DENIED)
		problem_prefix(ret_problem,
			"the bucket's listing is refused; allow s3:ListBucket of the bucket");
	else if (o != OUTCOME_OK)
		problem_prefix(ret_problem, "the bucket cannot be listed");
	return o;
}

static enum outcome begin_merging(struct merging *merging, struct problem *ret_problem)
{
	const struct verify *verify = merging->verify;
	const struct call_limits limits = {.abandon = verify->visitor.is_stopped,
		.abandon_arg = verify->visitor.arg,
		.patience_ms = verify->patience_ms};
	if (store_conn_new(verify->store, &merging->store) < 0 ||
		s3_conn_new(verify->s3, &merging->s3) < 0 ||
		object_stream_new(merging->s3, verify->range.prefix, verify->range.after, &limits,
			&merging->objects) < 0) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		return OUTCOME_LOCAL;
	}
	enum outcome o = expected_new(merging->store, verify->space, &verify->range, &limits,
		&merging->expected, ret_problem);
	if (o == OUTCOME_OK)
		o = next_object(merging, ret_problem);
	return o == OUTCOME_OK ? next_mark(merging, ret_problem) : o;
}

/* What the listing alone says of a mark; false: a closer look is needed. */
static bool is_settled(const struct merging *merging, const struct object_row *object,
	enum finding *ret, struct problem *ret_problem)
{
	const struct mark_row *mark = merging->mark;
	*ret = mark->state == MARK_DONE ? FINDING_SAME : inspect_state(mark->state, ret_problem);
	if (mark->state != MARK_DONE)
		return true;
	return object && inspect_listed(mark, object->size, object->etag) &&
	       (merging->verify->by == VERIFY_BY_LISTING ||
		       !verify_subset_has(&merging->verify->subset, mark->key));
}

/* The next mark, with its object or NULL. False: the run has ended. */
static bool merge_mark(struct merging *merging, const struct object_row *object)
{
	struct problem problem = {0};
	enum finding finding;
	struct mark_row *mark = merging->mark;
	if (is_settled(merging, object, &finding, &problem)) {
		verify_tasks_tell(&merging->tasks, finding, mark->object_key, &problem);
		return true;
	}
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s", mark->object_key);
	merging->mark = NULL;
	return verify_tasks_add(&merging->tasks, mark, key, merging->after);
}

bool verify_is_own(const struct verify *verify, const char *key)
{
	return manifest_is_key(key) || (verify->id_object && strcmp(verify->id_object, key) == 0);
}

static void pass_key(struct merging *merging, const char *key)
{
	snprintf(merging->after, sizeof merging->after, "%s", key);
}

/* Whether an object without a mark may have had one that `gc --keep-marks` has removed: the object
 * was stored before its mark said done. */
static bool is_aged(const struct merging *merging, const struct object_row *object)
{
	const int64_t age_s = store_time_s(merging->verify->store) - object->modified_s;
	return !merging->object_has_mark && merging->verify->keep_marks_s &&
	       !verify_is_own(merging->verify, object->key) && object->modified_s >= 0 &&
	       age_s > 0 && (uint64_t)age_s >= merging->verify->keep_marks_s;
}

/* One step of the merge: what comes first is done. False: the run has ended. */
static bool merge_next_key(struct merging *merging, enum outcome *ret_outcome, struct problem *ret)
{
	const struct object_row *object = merging->object;
	const int order = !merging->mark ? 1
			  : !object      ? -1
					 : strcmp(merging->mark->object_key, object->key);
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s", order > 0 ? object->key : merging->mark->object_key);
	if (order > 0) {
		if (is_aged(merging, object))
			verify_tasks_tell(&merging->tasks, FINDING_AGED, key, NULL);
		else if (!merging->object_has_mark && !verify_is_own(merging->verify, key) &&
			 !verify_tasks_add(&merging->tasks, NULL, key, merging->after))
			return false;
		*ret_outcome = next_object(merging, ret);
	} else {
		merging->object_has_mark |= order == 0;
		if (!merge_mark(merging, order == 0 ? object : NULL))
			return false;
		*ret_outcome = next_mark(merging, ret);
	}
	pass_key(merging, key);
	return *ret_outcome == OUTCOME_OK;
}

static void tell_progress(struct merging *merging)
{
	const uint64_t now = clock_boot_ns();
	if (now - merging->told_ns < NS_PER_S)
		return;
	merging->told_ns = now;
	verify_tasks_progress(&merging->tasks);
}

static bool is_stopped(const struct merging *merging)
{
	const struct verify_visitor *visitor = &merging->verify->visitor;
	return visitor->is_stopped(visitor->arg);
}

/* OK: all keys were merged, or it was stopped. *ret_all: all were. */
static enum outcome merge(struct merging *merging, bool *ret_all, struct problem *ret_problem)
{
	enum outcome o = begin_merging(merging, ret_problem);
	bool goes_on = o == OUTCOME_OK;
	for (unsigned n = 1; goes_on && (merging->mark || merging->object); n++) {
		goes_on = !is_stopped(merging) && merge_next_key(merging, &o, ret_problem);
		if (n % KEYS_PER_GLANCE == 0)
			tell_progress(merging);
	}
	*ret_all = goes_on;
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

/* What the threads and the merge came to. */
static enum outcome conclude(struct merging *merging, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem)
{
	struct verify_tasks *tasks = &merging->tasks;
	verify_tasks_finish(tasks);
	const char *left = tasks->locked.left_after;
	if (o == OUTCOME_OK && tasks->locked.outcome != OUTCOME_OK) {
		o = tasks->locked.outcome;
		*ret_problem = tasks->locked.problem;
	}
	ret->counts = tasks->locked.counts;
	ret->is_complete = o == OUTCOME_OK && is_all && !left;
	snprintf(ret->after, sizeof ret->after, "%s",
		left && strcmp(left, merging->after) < 0 ? left : merging->after);
	return o;
}

static void end_merging(struct merging *merging)
{
	verify_tasks_clear(&merging->tasks);
	expected_free(merging->expected);
	object_stream_free(merging->objects);
	free(merging->mark);
	store_conn_free(merging->store);
	if (merging->s3)
		s3_conn_free(merging->s3);
	free(merging);
}

enum outcome verify_run(
	const struct verify *verify, struct verify_end *ret, struct problem *ret_problem)
{
	struct merging *merging = calloc(1, sizeof *merging);
	bool is_all = false;
	*ret = (struct verify_end){0};
	if (!merging) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	merging->verify = verify;
	merging->told_ns = clock_boot_ns();
	if (verify->range.after)
		pass_key(merging, verify->range.after);
	enum outcome o = OUTCOME_LOCAL;
	if (verify_tasks_init(&merging->tasks, verify, ret_problem) == 0)
		o = merge(merging, &is_all, ret_problem);
	o = conclude(merging, o, is_all, ret, ret_problem);
	end_merging(merging);
	return o;
}

enum outcome verify_one(const struct verify *verify, const char *key, struct verify_end *ret,
	struct problem *ret_problem)
{
	struct inspection look;
	enum finding finding = FINDING_ERROR;
	*ret = (struct verify_end){0};
	if (inspect_init(&look, verify) < 0) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		inspect_clear(&look);
		return OUTCOME_LOCAL;
	}
	const enum outcome o = inspect_key(&look, key, &finding, ret_problem);
	ret->counts.looked_at = 1;
	ret->counts.bytes_read = look.bytes_read;
	ret->is_complete = o == OUTCOME_OK;
	if (o == OUTCOME_OK) {
		ret->counts.of[finding] = 1;
		if (finding != FINDING_UNFINISHED && finding != FINDING_NOTHING)
			verify->visitor.found(verify->visitor.arg, finding, key,
				finding == FINDING_SAME || finding == FINDING_MISSING
					? NULL
					: ret_problem);
	}
	inspect_clear(&look);
	return o;
}
