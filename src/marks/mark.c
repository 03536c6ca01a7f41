/* How a mark is written: each change under the condition that fences it. */
#include "base/clock.h"
#include "marks/mark_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct item_key mark_item_key(const struct mark_ref *ref, char partition[static PARTITION_MAX])
{
	mark_partition(ref->space, mark_shard(ref->key, ref->space->settings.shards), partition);
	return (struct item_key){partition, ref->key};
}

enum outcome mark_seen(
	enum outcome o, struct item *present, struct mark *ret_seen, struct problem *ret_problem)
{
	*ret_seen = (struct mark){0};
	if (o == OUTCOME_REFUSED && mark_from_item(present, ret_seen)) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	item_clear(present);
	return o;
}

static enum outcome update(const struct mark_ref *ref, const struct changes *changes,
	const struct condition *conditions, size_t n_conditions, struct mark *ret_seen,
	struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item present = {0};
	enum outcome o = ref->conn->store->ops->write(ref->conn, mark_item_key(ref, partition),
		&(struct item_write){.changes = changes->list,
			.n_changes = changes->n,
			.conditions = conditions,
			.n_conditions = n_conditions,
			.may_sync_later = ref->may_sync_later},
		&ref->limits, &present, ret_problem);
	return mark_seen(o, &present, ret_seen, ret_problem);
}

/* Any refusal may be the echo of our own write, even on a first try: curl resends on a reused
 * connection that drops. */
static bool is_our_mark(const struct mark_ref *ref, const char *claim, const struct mark *mark)
{
	return mark->state == MARK_CLAIMED && strcmp(mark->session, ref->session) == 0 &&
	       strcmp(mark->claim, claim) == 0;
}

int64_t mark_now_s(const struct mark_ref *ref)
{
	return store_time_s(ref->conn->store);
}

static int64_t changed_at_s(const struct mark_ref *ref)
{
	return ref->at_s ? ref->at_s : mark_now_s(ref);
}

static int claim_item(const struct mark_ref *ref, const char *claim, struct item *ret)
{
	int error = item_set_string(ret, "state", mark_state_name(MARK_CLAIMED));
	if (!error)
		error = item_set_string(ret, "session", ref->session);
	if (!error)
		error = item_set_string(ret, "claim", claim);
	if (!error)
		error = item_set_string(ret, "source", ref->source);
	if (!error && *ref->suffix)
		error = item_set_string(ret, "suffix", ref->suffix);
	if (!error)
		error = item_set_number(ret, "tries", 1);
	if (!error)
		error = item_set_number(ret, "at", mark_now_s(ref));
	return error;
}

enum outcome mark_claim(const struct mark_ref *ref, struct claim *ret, struct mark *ret_seen,
	struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	struct claim claim = {0};
	random_id(claim.id);
	*ret_seen = (struct mark){0};
	if (claim_item(ref, claim.id, &item)) {
		item_clear(&item);
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	struct condition absent = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL};
	enum outcome o = ref->conn->store->ops->write(ref->conn, mark_item_key(ref, partition),
		&(struct item_write){.item = &item,
			.conditions = &absent,
			.n_conditions = 1,
			.may_sync_later = ref->may_sync_later},
		&ref->limits, &present, ret_problem);
	item_clear(&item);
	o = mark_seen(o, &present, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && is_our_mark(ref, claim.id, ret_seen)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	if (o == OUTCOME_OK)
		*ret = claim;
	return o;
}

enum outcome mark_take(const struct mark_ref *ref, struct mark *old, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct claim claim = {.taken_over = true};
	random_id(claim.id);
	struct changes c = {0};
	changes_set_text(&c, "state", mark_state_name(MARK_CLAIMED));
	changes_set_text(&c, "session", ref->session);
	changes_set_text(&c, "claim", claim.id);
	changes_set_text(&c, "source", ref->source);
	changes_set_number(&c, "tries", old->tries + 1);
	changes_set_number(&c, "at", changed_at_s(ref));
	changes_unset(&c, "error");
	if (*ref->suffix || *old->suffix)
		changes_set_or_unset(&c, "suffix", ref->suffix);
	if (old->state == MARK_FORGOTTEN)
		changes_unset(&c, "expires");
	/* The state too: a mark that became done in between keeps its session and claim. And the
	 * upload: a late record of it would leave us without its id. */
	const struct condition as_seen[] = {mark_equals("state", mark_state_name(old->state)),
		mark_equals_or_absent("session", old->session),
		mark_equals_or_absent("claim", old->claim),
		mark_equals_or_absent("upload", old->upload.id)};
	enum outcome o = update(ref, &c, as_seen, 4, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && is_our_mark(ref, claim.id, ret_seen)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	if (o == OUTCOME_OK) {
		open_upload_move(&claim.upload, &old->upload);
		claim.before = *old;
		*old = (struct mark){0};
		*ret = claim;
	}
	return o;
}

enum outcome mark_record_upload(const struct mark_ref *ref, struct claim *claim,
	struct open_upload *upload, struct problem *ret_problem)
{
	struct changes c = {0};
	changes_set_upload(&c, upload);
	changes_set_number(&c, "at", mark_now_s(ref));
	const struct condition fence[] = {mark_equals("state", mark_state_name(MARK_CLAIMED)),
		mark_equals("session", ref->session), mark_equals("claim", claim->id),
		mark_equals_or_absent("upload", claim->upload.id)};
	struct mark present;
	enum outcome o = update(ref, &c, fence, 4, &present, ret_problem);
	if (o == OUTCOME_REFUSED && is_our_mark(ref, claim->id, &present) && present.upload.id &&
		strcmp(present.upload.id, upload->id) == 0)
		o = OUTCOME_OK;
	mark_clear(&present);
	if (o == OUTCOME_OK)
		open_upload_move(&claim->upload, upload);
	return o;
}

static bool same_version(const struct version *a, const struct version *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->mtime_is_shared == b->mtime_is_shared && strcmp(a->sum, b->sum) == 0;
}

/* What only some versions have. A mark that was there before may have had it of an earlier one. */
static void set_optional(struct changes *c, const struct version *version, bool was_there)
{
	if (version->mtime_is_shared)
		changes_set_number(c, "mtime_shared", 1);
	else if (was_there)
		changes_unset(c, "mtime_shared");
	if (version->etag_is_md5)
		changes_set_number(c, "md5", 1);
	else if (was_there)
		changes_unset(c, "md5");
	if (version->part_bytes)
		changes_set_number(c, "parts", (int64_t)version->part_bytes);
	else if (was_there)
		changes_unset(c, "parts");
	if (*version->parts_sum)
		changes_set_text(c, "parts_sum", version->parts_sum);
	else if (was_there)
		changes_unset(c, "parts_sum");
	if (*version->content || was_there)
		changes_set_or_unset(c, "content", version->content);
	if (version->object_bytes)
		changes_set_number(c, "object_size", (int64_t)version->object_bytes);
	else if (was_there)
		changes_unset(c, "object_size");
	if (version->object_bytes || was_there)
		changes_set_or_unset(c, "object_sum", version->object_sum);
	if (*version->version_id || was_there)
		changes_set_or_unset(c, "version_id", version->version_id);
}

enum outcome mark_done(const struct mark_ref *ref, const struct claim *claim,
	const struct version *version, struct mark *ret_seen, struct problem *ret_problem)
{
	struct changes c = {0};
	changes_set_text(&c, "state", mark_state_name(MARK_DONE));
	changes_set_number(&c, "size", (int64_t)version->size);
	changes_set_number(&c, "mtime", version->mtime_ns);
	changes_set_text(&c, "sum", version->sum);
	changes_set_text(&c, "etag", version->etag);
	set_optional(&c, version, claim->taken_over);
	if (strcmp(version->suffix, ref->suffix) != 0) /* else the claim has written it */
		changes_set_or_unset(&c, "suffix", version->suffix);
	changes_set_number(&c, "at", mark_now_s(ref));
	/* A claim has no error, and only some have an upload: half of the request's length. */
	if (claim->taken_over || claim->upload.id)
		changes_unset_upload(&c);
	if (claim->taken_over)
		changes_unset_newer(&c);
	const struct condition fence[] = {mark_equals("state", mark_state_name(MARK_CLAIMED)),
		mark_equals("session", ref->session), mark_equals("claim", claim->id)};
	enum outcome o = update(ref, &c, fence, 3, ret_seen, ret_problem);
	if (o == OUTCOME_REFUSED && ret_seen->state == MARK_DONE &&
		same_version(&ret_seen->done, version)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	return o;
}

/* `c` has the further changes. */
static enum outcome fail_mark(const struct mark_ref *ref, const struct claim *claim,
	const char *error, struct changes *c, struct problem *ret_problem)
{
	changes_set_text(c, "state", mark_state_name(MARK_FAILED));
	changes_set_text(c, "error", error);
	changes_set_number(c, "at", changed_at_s(ref));
	const struct condition fence[] = {mark_equals("state", mark_state_name(MARK_CLAIMED)),
		mark_equals("session", ref->session), mark_equals("claim", claim->id)};
	struct mark present;
	enum outcome o = update(ref, c, fence, 3, &present, ret_problem);
	mark_clear(&present);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_fail(const struct mark_ref *ref, const struct claim *claim, const char *error,
	struct problem *ret_problem)
{
	struct changes c = {0};
	return fail_mark(ref, claim, error, &c, ret_problem);
}

enum outcome mark_release(const struct mark_ref *ref, const struct claim *claim, const char *error,
	struct problem *ret_problem)
{
	struct changes c = {0};
	changes_unset_upload(&c);
	return fail_mark(ref, claim, error, &c, ret_problem);
}

/* Updates a done mark that is still exactly as it was seen. */
static enum outcome update_done(const struct mark_ref *ref, const struct changes *changes,
	const struct mark *old, struct mark *ret_present, struct problem *ret_problem)
{
	char old_mtime[24];
	snprintf(old_mtime, sizeof old_mtime, "%" PRId64, old->done.mtime_ns);
	const struct condition as_seen[] = {mark_equals("state", mark_state_name(MARK_DONE)),
		mark_equals_or_absent("session", old->session),
		mark_equals_or_absent("claim", old->claim),
		{"mtime", CONDITION_EQUALS, VALUE_NUMBER, old_mtime}};
	return update(ref, changes, as_seen, 4, ret_present, ret_problem);
}

enum outcome mark_note_newer(const struct mark_ref *ref, const struct mark *old, uint64_t size,
	int64_t mtime_ns, struct problem *ret_problem)
{
	struct changes c = {0};
	struct mark present;
	changes_set_number(&c, "newer_size", (int64_t)size);
	changes_set_number(&c, "newer_mtime", mtime_ns);
	enum outcome o = update_done(ref, &c, old, &present, ret_problem);
	mark_clear(&present);
	return o;
}

enum outcome mark_refresh(const struct mark_ref *ref, const struct mark *old, int64_t mtime_ns,
	struct problem *ret_problem)
{
	struct changes c = {0};
	changes_set_number(&c, "mtime", mtime_ns);
	changes_set_number(&c, "at", mark_now_s(ref));
	if (old->has_newer)
		changes_unset_newer(&c);
	if (old->done.mtime_is_shared)
		changes_unset(&c, "mtime_shared");
	struct mark present;
	enum outcome o = update_done(ref, &c, old, &present, ret_problem);
	const struct asked refreshed = {old->done.size, mtime_ns, ""};
	if (o == OUTCOME_REFUSED && mark_says(&present, &refreshed) == SAYS_DONE &&
		strcmp(present.done.sum, old->done.sum) == 0)
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

enum outcome mark_get(const struct mark_ref *ref, struct mark *ret, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item item = {0};
	enum outcome o = ref->conn->store->ops->get(
		ref->conn, mark_item_key(ref, partition), true, &ref->limits, &item, ret_problem);
	*ret = (struct mark){0};
	if (o == OUTCOME_ABSENT)
		o = OUTCOME_OK;
	else if (o == OUTCOME_OK && mark_from_item(&item, ret)) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	item_clear(&item);
	return o;
}
