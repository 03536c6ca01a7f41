#include "audit/collect.h"
#include "audit/collect_upload.h"
#include "audit/forget.h"
#include "aws/wait.h"
#include "base/clock.h"
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define WAITED_FOR_MAX 1000

/* A claim of a session that may live, as far as is known yet. */
struct waited_for {
	char *key; /* owned */
	uint64_t until_ns;
};

struct collection {
	const struct collect_options *options;
	struct {
		uv_mutex_t mutex;
		struct waited_for list[WAITED_FOR_MAX];
		size_t n;
	} locked;
};

static bool is_older(const struct collect_options *options, int64_t at_s, uint64_t age_s)
{
	const int64_t now_s = store_time_s(options->place.store);
	return age_s < (uint64_t)INT64_MAX / 2 && at_s <= now_s - (int64_t)age_s;
}

/* What may be done about a mark. */
enum chore { CHORE_NONE, CHORE_TELL_DAMAGE, CHORE_ABORT, CHORE_FORGET };

struct condition_of_mark {
	enum mark_state state;
	bool has_upload;
	int64_t at_s;
};

static enum chore chore_of(
	const struct collect_options *options, const struct condition_of_mark *mark)
{
	if (mark->state == MARK_UNREADABLE)
		return CHORE_TELL_DAMAGE;
	if (mark->state == MARK_FORGOTTEN)
		return is_older(options, mark->at_s, MARK_FORGOTTEN_KEEP_S + 1) ? CHORE_FORGET
										: CHORE_NONE;
	if (mark->has_upload && mark->state != MARK_DONE)
		return is_older(options, mark->at_s, options->keep_uploads_s) ? CHORE_ABORT
									      : CHORE_NONE;
	return mark->state != MARK_ABSENT && is_older(options, mark->at_s, options->keep_marks_s)
		       ? CHORE_FORGET
		       : CHORE_NONE;
}

static enum outcome forget_leftover(const struct leftover *leftover, struct problem *ret_problem)
{
	const bool is_told = leftover->mark->state != MARK_FORGOTTEN;
	const struct mark_ref ref = leftover_ref(leftover);
	if (leftover->options->only_show) {
		if (is_told)
			leftover_tell(leftover, FATE_FORGETTABLE, "", NULL);
		return OUTCOME_OK;
	}
	const enum outcome o = mark_forget(&ref, leftover->mark, ret_problem);
	if (o == OUTCOME_REFUSED && is_told)
		leftover_tell(
			leftover, FATE_KEPT, "another uploader has changed it meanwhile", NULL);
	else if (o == OUTCOME_OK && is_told)
		leftover_tell(leftover, FATE_FORGOTTEN, "", NULL);
	/* A row that expires is only in the way of nobody. */
	return o == OUTCOME_REFUSED || (o == OUTCOME_DENIED && !is_told) ? OUTCOME_OK : o;
}

/* Remembers a claim whose session may live. Whoever looks again knows until when. */
static void wait_for(struct collection *collection, const struct leftover *leftover)
{
	struct session_info info;
	session_recall(leftover->options->session, leftover->mark->session, &info);
	char *key = strdup(leftover->key);
	uv_mutex_lock(&collection->locked.mutex);
	const bool has_room = key && collection->locked.n < WAITED_FOR_MAX;
	if (has_room)
		collection->locked.list[collection->locked.n++] =
			(struct waited_for){key, clock_boot_ns() + info.lease_ns + 2 * NS_PER_S};
	uv_mutex_unlock(&collection->locked.mutex);
	if (has_room)
		return;
	free(key);
	leftover_tell(leftover, FATE_KEPT, "its uploader may live: run gc again", NULL);
}

/* `may_wait`: a claim whose session may live is looked at again later. *ret_waits: it is to be. */
static enum outcome deal_with(struct collection *collection, const struct leftover *leftover,
	bool may_wait, bool *ret_waits, struct problem *ret_problem)
{
	const struct collect_options *options = leftover->options;
	const struct mark *mark = leftover->mark;
	const struct condition_of_mark now = {mark->state, mark->upload.id != NULL, mark->at_s};
	const enum chore chore = chore_of(options, &now);
	bool is_over = true;
	uint64_t again_ns;
	*ret_waits = false;
	if (chore == CHORE_NONE)
		return OUTCOME_OK;
	if (chore == CHORE_TELL_DAMAGE) {
		leftover_tell(leftover, FATE_DAMAGED, "", NULL);
		return OUTCOME_OK;
	}
	if (mark->state == MARK_CLAIMED) {
		const enum outcome o = session_is_over(options->session, leftover->hand->marks,
			mark->session, &is_over, &again_ns, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
	*ret_waits = !is_over;
	if (!is_over && may_wait)
		wait_for(collection, leftover);
	if (!is_over)
		return OUTCOME_OK;
	return chore == CHORE_ABORT ? collect_upload(leftover, ret_problem)
				    : forget_leftover(leftover, ret_problem);
}

static enum outcome look_at_key(struct collection *collection, const struct audit_hand *hand,
	const char *key, bool may_wait, bool *ret_waits, struct problem *ret_problem)
{
	struct mark mark = {0};
	struct leftover leftover = {collection->options, hand, key, &mark};
	const struct mark_ref ref = leftover_ref(&leftover);
	enum outcome o = mark_get(&ref, &mark, ret_problem);
	*ret_waits = false;
	if (o == OUTCOME_OK)
		o = deal_with(collection, &leftover, may_wait, ret_waits, ret_problem);
	mark_clear(&mark);
	return o;
}

static enum outcome look_at_row(void *arg, const struct audit_hand *hand,
	const struct mark_row *row, struct problem *ret_problem)
{
	struct collection *collection = arg;
	bool waits;
	const struct condition_of_mark was = {row->state, row->has_upload, row->at_s};
	if (chore_of(collection->options, &was) == CHORE_NONE)
		return OUTCOME_OK;
	return look_at_key(collection, hand, row->key, true, &waits, ret_problem);
}

/* Until its session is over, or has shown for a lease that it lives. */
static enum outcome look_until(struct collection *collection, const struct audit_hand *hand,
	const struct waited_for *one, struct problem *ret_problem)
{
	const struct collect_options *options = collection->options;
	bool waits = true, has_ended = false;
	enum outcome o = OUTCOME_OK;
	while (waits && o == OUTCOME_OK && !has_ended) {
		has_ended = clock_boot_ns() > one->until_ns ||
			    wait_within(&options->place.limits, 500, ret_problem) != OUTCOME_OK;
		o = look_at_key(collection, hand, one->key, false, &waits, ret_problem);
	}
	if (waits && o == OUTCOME_OK) {
		struct mark mark = {.state = MARK_CLAIMED};
		const struct leftover leftover = {options, hand, one->key, &mark};
		leftover_tell(&leftover, FATE_KEPT, "its uploader lives", NULL);
	}
	return o;
}

/* Unless it went wrong before (`o`). */
static enum outcome look_again(
	struct collection *collection, enum outcome o, struct problem *ret_problem)
{
	struct audit_hand hand;
	if (audit_hand_open(&collection->options->place, &hand) && o == OUTCOME_OK) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	for (size_t i = 0; i < collection->locked.n; i++) {
		if (o == OUTCOME_OK)
			o = look_until(collection, &hand, &collection->locked.list[i], ret_problem);
		free(collection->locked.list[i].key);
	}
	audit_hand_clear(&hand);
	return o;
}

enum outcome collect(
	const struct collect_options *options, const char *prefix, struct problem *ret_problem)
{
	struct collection *collection = calloc(1, sizeof *collection);
	const struct mark_range range = {.prefix = prefix};
	const struct crew_work work = {look_at_row, collection};
	if (!collection) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	collection->options = options;
	uv_mutex_init(&collection->locked.mutex);
	enum outcome o = crew_walk(&options->place, &range, &work, ret_problem);
	o = look_again(collection, o, ret_problem);
	uv_mutex_destroy(&collection->locked.mutex);
	free(collection);
	return o;
}
