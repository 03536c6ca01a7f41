/* The rows of marks in the store: each way in which a mark is read or written (docs/protocol.md,
 * "One file"). Every write has the condition that fences it. After a refusal, the mark may already
 * be the result of this very write, since a request may be sent twice. So the mark is compared with
 * the write. Runs, audits and gc call it. Nothing here touches a file or S3. */
#include "marks/mark_row.h"
#include "marks/mark_fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void claim_clear(struct claim *claim)
{
	mark_clear(&claim->before);
	open_upload_clear(&claim->upload);
	*claim = (struct claim){0};
}

static int64_t now_s(const struct mark_ref *ref)
{
	return store_time_s(ref->conn->store);
}

/* The time of the last change that mark_claim() and mark_fail() write. */
static int64_t changed_at_s(const struct mark_ref *ref)
{
	return ref->at_s ? ref->at_s : now_s(ref);
}

/* Makes the mark that this session has under this claim. A claim writes it, and every later write
 * has the condition that it is still there. */
static struct mark own_mark(const struct mark_ref *ref, const char *claim)
{
	struct mark mark = {.state = MARK_CLAIMED};
	snprintf(mark.session, sizeof mark.session, "%s", ref->session);
	snprintf(mark.claim, sizeof mark.claim, "%s", claim);
	snprintf(mark.claim_suffix, sizeof mark.claim_suffix, "%s", ref->suffix ? ref->suffix : "");
	return mark;
}

/* After a write with the outcome `o`: if it was refused, reads the present mark from the item.
 * Otherwise *ret_seen is an absent mark. ret_seen may be NULL. Clears the item. Returns `o`, or the
 * outcome of a failure. */
static enum outcome read_refused(
	enum outcome o, struct item *present, struct mark *ret_seen, struct problem *ret_problem)
{
	if (ret_seen)
		*ret_seen = (struct mark){0};
	if (o == OUTCOME_REFUSED && ret_seen && mark_from_item(present, ret_seen))
		o = outcome_no_memory(ret_problem);
	item_clear(present);
	return o;
}

/* Performs a write of a mark. If it is refused, *ret_seen is the present mark, the caller's to
 * clear. Otherwise *ret_seen is an absent mark. ret_seen may be NULL. */
static enum outcome write_mark(const struct mark_ref *ref, const struct row_write *write,
	struct mark *ret_seen, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item present = {0};
	const enum outcome o = row_perform(ref->conn, mark_key(ref->space, ref->key, partition),
		write, &ref->limits, &present, ret_problem);
	return read_refused(o, &present, ret_seen, ret_problem);
}

/* Whether a mark is the one that this claim has written. It is checked after a refusal, since any
 * refusal may be due to our own write. This holds even for a first try: if a reused connection
 * drops, curl resends. */
static bool is_our_mark(const struct mark_ref *ref, const char *claim, const struct mark *mark)
{
	return mark->state == MARK_CLAIMED && strcmp(mark->session, ref->session) == 0 &&
	       strcmp(mark->claim, claim) == 0;
}

/* Moves the mark that was seen into the claim that takes it over. */
static void move_seen(struct claim *claim, struct mark *seen)
{
	open_upload_move(&claim->upload, &seen->upload);
	claim->before = *seen;
	*seen = (struct mark){0};
}

/* Makes a new claim of the mark `seen`, the mark as the claim sets it, and the write that does so,
 * which borrows that mark. */
static void make_claim(const struct mark_ref *ref, const struct mark *seen, struct claim *claim,
	struct mark *mark, struct row_write *write)
{
	/* The claim of a forgotten mark is a take-over, too, since the mark is there. */
	*claim = (struct claim){.taken_over = seen->state != MARK_ABSENT};
	random_id(claim->id);
	*mark = own_mark(ref, claim->id);
	mark->tries = seen->tries + 1;
	mark->at_s = changed_at_s(ref);
	mark->source = mark->claim_source = (char *)(uintptr_t)ref->source; /* borrowed */
	memcpy(claim->suffix, mark->claim_suffix, sizeof claim->suffix);
	*write = (struct row_write){.kind = claim->taken_over ? ROW_UPDATES : ROW_PUTS,
		.may_sync_later = ref->may_sync_later};
	/* If the mark has a source, that stays, since an object under the key may have come from
	 * there. The source of this claim is then written beside it. */
	const unsigned source_columns = seen->source ? GROUP_CLAIM_SOURCE : GROUP_SOURCE;
	/* If neither mark has a suffix, there is nothing to set and nothing to remove. */
	const unsigned suffix_columns =
		*mark->claim_suffix || *seen->claim_suffix ? GROUP_CLAIM_SUFFIX : 0;
	row_set(write, &mark_table,
		GROUP_STATE | GROUP_OWNER | source_columns | suffix_columns | GROUP_TRIES |
			GROUP_AT,
		mark);
	if (claim->taken_over) {
		/* Otherwise time to live would remove the claim by the expiry of a forgotten
		 * mark. */
		row_unset(write, &mark_table,
			seen->state == MARK_FORGOTTEN ? GROUP_ERROR | GROUP_EXPIRES : GROUP_ERROR);
		/* Session and claim alone do not show all that may have happened since *seen was
		 * read. The mark may have become done, so the state is compared, too. Its session
		 * may have recorded an upload, so the upload id is compared: without the id, this
		 * run would neither resume nor abort that upload. */
		row_expect(write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_UPLOAD_ID, seen);
	} else {
		row_expect_test(write, "pk", CONDITION_ABSENT);
	}
}

/* Returns the outcome of a claim, given the outcome of its write. A write that was retried may be
 * refused because its first attempt did succeed. Then *ret_seen is our own mark: the outcome is OK,
 * and *ret_seen is cleared. */
static enum outcome claim_outcome(const struct mark_ref *ref, const struct claim *claim,
	enum outcome o, struct mark *ret_seen)
{
	if (o != OUTCOME_REFUSED || !is_our_mark(ref, claim->id, ret_seen))
		return o;
	mark_clear(ret_seen);
	return OUTCOME_OK;
}

enum outcome mark_claim(const struct mark_ref *ref, struct mark *seen, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct claim claim;
	struct mark mark;
	struct row_write write;
	make_claim(ref, seen, &claim, &mark, &write);
	const enum outcome o = claim_outcome(
		ref, &claim, write_mark(ref, &write, ret_seen, ret_problem), ret_seen);
	if (o == OUTCOME_OK) {
		move_seen(&claim, seen);
		*ret = claim;
	}
	return o;
}

void mark_begin_claim(const struct mark_ref *ref, struct mark_claiming *ret)
{
	const struct mark absent = {0};
	ret->ref = *ref;
	make_claim(&ret->ref, &absent, &ret->claim, &ret->mark, &ret->write);
	row_begin(ref->conn, mark_key(ref->space, ref->key, ret->partition), &ret->write,
		&ret->ref.limits, &ret->request);
}

enum outcome mark_end_claim(struct mark_claiming *claiming, struct claim *ret,
	struct mark *ret_seen, struct problem *ret_problem)
{
	struct store_conn *conn = claiming->ref.conn;
	struct item present = {0};
	const enum outcome written = conn->store->ops->end_write(conn, &present, ret_problem);
	const enum outcome o = claim_outcome(&claiming->ref, &claiming->claim,
		read_refused(written, &present, ret_seen, ret_problem), ret_seen);
	if (o == OUTCOME_OK)
		*ret = claiming->claim;
	return o;
}

void mark_pretend_claim(struct mark *seen, struct claim *ret)
{
	struct claim claim = {.taken_over = seen->state != MARK_ABSENT};
	move_seen(&claim, seen);
	*ret = claim;
}

enum outcome mark_record_upload(const struct mark_ref *ref, struct claim *claim,
	struct open_upload *upload, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark before = {.upload = claim->upload},
			  after = {.upload = *upload, .at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, GROUP_UPLOAD | GROUP_AT, &after);
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);
	row_expect(&write, &mark_table, GROUP_UPLOAD_ID, &before);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write. Then the mark records this upload. */
	const bool is_recorded = present.upload.id && strcmp(present.upload.id, upload->id) == 0;
	if (o == OUTCOME_REFUSED && is_our_mark(ref, claim->id, &present) && is_recorded)
		o = OUTCOME_OK;
	mark_clear(&present);
	if (o == OUTCOME_OK)
		open_upload_move(&claim->upload, upload);
	return o;
}

enum outcome mark_done(const struct mark_ref *ref, const struct claim *claim,
	const struct version *version, const char *source, struct mark *ret_seen,
	struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark mark = {.state = MARK_DONE,
		.done = *version,
		.source = (char *)(uintptr_t)source,
		.at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	/* Fields are removed only if they can exist, which halves the request. Only a mark that was
	 * taken over may have attributes of an earlier version that this version does not have. A
	 * claim has no error, and only some claims have an upload. */
	write.removes_nothing = !claim->taken_over;
	row_set(&write, &mark_table, GROUP_STATE | GROUP_VERSION, &mark);
	write.removes_nothing = false;
	/* A claim that was not a take-over has set the source, which is that of the version. */
	row_set(&write, &mark_table, claim->taken_over ? GROUP_SOURCE | GROUP_AT : GROUP_AT, &mark);
	if (*claim->suffix)
		row_unset(&write, &mark_table, GROUP_CLAIM_SUFFIX);
	if (claim->taken_over || claim->upload.id)
		row_unset(&write, &mark_table, GROUP_UPLOAD);
	if (claim->taken_over)
		row_unset(&write, &mark_table, GROUP_CLAIM_SOURCE | GROUP_NEWER);
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);
	enum outcome o = write_mark(ref, &write, ret_seen, ret_problem);
	/* Another uploader may have marked the same version as done. */
	if (o == OUTCOME_REFUSED && ret_seen->state == MARK_DONE &&
		version_is_same(&ret_seen->done, version)) {
		mark_clear(ret_seen);
		o = OUTCOME_OK;
	}
	return o;
}

enum outcome mark_give_back(
	const struct mark_ref *ref, const struct claim *claim, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	struct row_write write = {0};
	row_set(&write, &mark_table, GROUP_STATE | GROUP_AT, &claim->before);
	row_unset(&write, &mark_table, GROUP_CLAIM_SOURCE);
	if (*claim->suffix)
		row_unset(&write, &mark_table, GROUP_CLAIM_SUFFIX);
	if (claim->upload.id)
		row_unset(&write, &mark_table, GROUP_UPLOAD);
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);
	const enum outcome o = write_mark(ref, &write, NULL, ret_problem);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_fail(const struct mark_ref *ref, const struct claim *claim, const char *error,
	enum upload_record record, struct problem *ret_problem)
{
	const struct mark own = own_mark(ref, claim->id);
	const struct mark mark = {
		.state = MARK_FAILED, .error = (char *)(uintptr_t)error, .at_s = changed_at_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	if (record == DROP_UPLOAD)
		row_unset(&write, &mark_table, GROUP_UPLOAD);
	row_set(&write, &mark_table, GROUP_STATE | GROUP_ERROR | GROUP_AT, &mark);
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER, &own);
	const enum outcome o = write_mark(ref, &write, NULL, ret_problem);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

enum outcome mark_note_newer(const struct mark_ref *ref, const struct mark *seen, uint64_t size,
	int64_t mtime_ns, struct problem *ret_problem)
{
	const struct mark mark = {.newer_size = size, .newer_mtime_ns = mtime_ns};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, GROUP_NEWER, &mark);
	/* The write changes none of these fields. So if the request is sent twice, the second one
	 * is not refused because of the first. */
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_MTIME, seen);
	return write_mark(ref, &write, NULL, ret_problem);
}

enum outcome mark_refresh(const struct mark_ref *ref, const struct mark *seen, int64_t mtime_ns,
	struct problem *ret_problem)
{
	const struct mark mark = {.done.mtime_ns = mtime_ns, .at_s = now_s(ref)};
	struct row_write write = {.may_sync_later = ref->may_sync_later};
	row_set(&write, &mark_table, GROUP_MTIME | GROUP_AT, &mark);
	if (seen->has_newer)
		row_unset(&write, &mark_table, GROUP_NEWER);
	if (seen->done.mtime_is_shared)
		row_unset(&write, &mark_table, GROUP_SHARED);
	row_expect(&write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_MTIME, seen);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write. Then the mark says that the file with this mtime
	 * is done, and has the same checksum. */
	const struct file_version refreshed = {
		.size = seen->done.size, .mtime_ns = mtime_ns, .content_id = ""};
	const bool is_refreshed = mark_says(&present, &refreshed) == SAYS_DONE &&
				  strcmp(present.done.sum, seen->done.sum) == 0;
	if (o == OUTCOME_REFUSED && is_refreshed)
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

enum outcome mark_forget(
	const struct mark_ref *ref, const struct mark *seen, struct problem *ret_problem)
{
	const int64_t now = now_s(ref);
	struct mark mark = {
		.state = MARK_FORGOTTEN, .at_s = now, .expires_s = now + MARK_FORGOTTEN_KEEP_S};
	/* The mark was forgotten so long ago that no write from before can still arrive. */
	const bool has_expired =
		seen->state == MARK_FORGOTTEN && now > seen->at_s + MARK_FORGOTTEN_KEEP_S;
	struct row_write write = {.kind = ROW_REMOVES};
	random_id(mark.claim); /* a new id, by which this write is recognised */
	/* In a store where a write may come late, the row is replaced by one that says forgotten.
	 * If there were no row, a late duplicate of the claim, and after it one of the done mark,
	 * could bring the mark back. */
	if (!ref->conn->store->ops->removes_for_good && !has_expired) {
		write.kind = ROW_PUTS;
		row_set(&write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_AT | GROUP_EXPIRES,
			&mark);
	}
	row_expect(
		&write, &mark_table, GROUP_STATE | GROUP_OWNER | GROUP_UPLOAD_ID | GROUP_AT, seen);
	/* mark_note_newer() changes none of these, so its own fields are compared, too. */
	row_expect(&write, &mark_table, GROUP_NEWER_MTIME, seen->has_newer ? seen : NULL);
	struct mark present;
	enum outcome o = write_mark(ref, &write, &present, ret_problem);
	/* The refusal may be due to our own write, by which the row is gone or says forgotten. */
	const bool is_gone = present.state == MARK_ABSENT;
	const bool is_forgotten_here =
		present.state == MARK_FORGOTTEN && strcmp(present.claim, mark.claim) == 0;
	if (o == OUTCOME_REFUSED && (is_gone || is_forgotten_here))
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}

/* Reads the item of a mark. It is empty if there is none. */
static enum outcome get_item(
	const struct mark_ref *ref, struct item *ret, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	const enum outcome o =
		ref->conn->store->ops->get(ref->conn, mark_key(ref->space, ref->key, partition),
			READ_CONSISTENT, &ref->limits, ret, ret_problem);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome mark_get_packed(
	const struct mark_ref *ref, struct packed_mark **ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = get_item(ref, &item, ret_problem);
	*ret = o == OUTCOME_OK ? mark_pack_item(ref->key, &item) : NULL;
	if (o == OUTCOME_OK && !*ret)
		o = outcome_no_memory(ret_problem);
	item_clear(&item);
	return o;
}

enum outcome mark_get(const struct mark_ref *ref, struct mark *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = get_item(ref, &item, ret_problem);
	*ret = (struct mark){0};
	if (o == OUTCOME_OK && mark_from_item(&item, ret))
		o = outcome_no_memory(ret_problem);
	item_clear(&item);
	return o;
}
