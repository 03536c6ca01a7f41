/* Cleans up each mark below a prefix, for `s3once gc`. The pool reads the marks. This file decides
 * what to do with each mark, and does it.
 *
 * A claimed mark is changed only if the session that claimed it is over. A claim whose session may
 * live is checked again at the end, until the session is over or a lease has passed.
 *
 * Before gc aborts an open upload, it claims the mark, like an uploader that takes over a file.
 * After the abort, the mark no longer names the upload. An upload that no mark names is never
 * touched. */
#include "audit/forget.h"
#include "aws/retry.h"
#include "base/clock.h"
#include "marks/judge_object.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define WAITED_FOR_MAX 1000 /* the most claims that are checked again; others count as kept */
/* the most aborts of one upload: a part under way may arrive after an abort */
#define ABORTS_MAX 5

/* A claim whose session may still live. At the end of gc, check_claims_again() reads its mark
 * again, until the session is over or until_ns has passed. */
struct waited_for {
	char *key;         /* key of the mark, owned */
	uint64_t until_ns; /* by clock_boot_ns() */
};

struct collection {
	const struct collect_options *options;
	struct {
		uv_mutex_t mutex;
		struct waited_for list[WAITED_FOR_MAX]; /* for check_claims_again() */
		size_t n;
	} locked;
};

/* The chore for a mark. NONE: the mark is too young, or there is nothing to do. */
enum chore { CHORE_NONE, CHORE_REPORT_DAMAGE, CHORE_ABORT, CHORE_FORGET };

/* Whether the mark was not changed for keep_s. */
static bool is_older(const struct mark *mark, uint64_t keep_s, int64_t now_s)
{
	/* keep_s is UINT64_MAX if marks are kept forever, which does not fit into an int64_t, and
	 * must not be subtracted from a time. */
	const bool is_limited = keep_s < (uint64_t)INT64_MAX / 2;
	return is_limited && mark->at_s <= now_s - (int64_t)keep_s;
}

/* Chooses the chore by the state and the age of a mark. Whether the session of a claimed mark is
 * over is checked later. */
static enum chore choose_chore(const struct collect_options *options, const struct mark *mark)
{
	const int64_t now_s = store_time_s(options->clearing.place.store);
	const bool has_open_upload = mark->upload.id && mark->state != MARK_DONE;
	if (mark->state == MARK_ABSENT)
		return CHORE_NONE;
	if (mark->state == MARK_UNREADABLE)
		return CHORE_REPORT_DAMAGE;
	/* mark_forget() removes a row that says forgotten only when it is older than
	 * MARK_FORGOTTEN_KEEP_S. */
	if (mark->state == MARK_FORGOTTEN)
		return is_older(mark, MARK_FORGOTTEN_KEEP_S + 1, now_s) ? CHORE_FORGET : CHORE_NONE;
	if (has_open_upload)
		return is_older(mark, options->keep_uploads_s, now_s) ? CHORE_ABORT : CHORE_NONE;
	return is_older(mark, options->keep_marks_s, now_s) ? CHORE_FORGET : CHORE_NONE;
}

/* The abort of one upload. */
struct upload_abort {
	struct subject *subject;
	struct claim claim; /* gc's claim of the mark, which names the upload */
	char object[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* the key of the upload */
	struct call_limits limits;
	struct problem problem;
};

/* Whether a request has to end: if the caller's limits end it, or if gc's lease is over. After the
 * lease, another uploader may hold the mark and go on with the upload, which a late request of gc
 * would abort. It is the `abandon` of struct call_limits. */
static bool request_has_to_end(void *arg)
{
	const struct collect_options *options = arg;
	const struct call_limits *limits = &options->clearing.place.limits;
	return (limits->abandon && limits->abandon(limits->abandon_arg)) ||
	       session_is_fenced(options->session) ||
	       clock_boot_ns() >= session_lease_ends_ns(options->session);
}

/* Whether an upload may be aborted. UNKNOWN: S3 did not answer, with a sentence. */
enum abort_choice { ABORT_ALLOWED, ABORT_FORBIDDEN, ABORT_UNKNOWN };

/* Sends a HEAD of the object under the key of the upload. The abort is FORBIDDEN if the upload may
 * have become this object, since on some servers the abort then damages the object. That is
 * possible if the object has the size of the file, and is not the done version of the mark. The
 * size of a compressed upload is unknown, so any size counts. */
static enum abort_choice choose_abort(struct upload_abort *a)
{
	const struct s3_target target = {.key = a->object, .headers = subject_headers(a->subject)};
	struct s3_object now = {0};
	const enum outcome o =
		s3_head_object(a->subject->conns->s3, &target, &a->limits, &now, &a->problem);
	if (o == OUTCOME_ABSENT)
		return ABORT_ALLOWED;
	if (o != OUTCOME_OK)
		return ABORT_UNKNOWN;
	const bool fits_size = *a->claim.upload.encoding || now.size == a->claim.upload.size;
	const bool may_be_upload = fits_size && !judge_is_done_version(&a->claim, &now);
	return may_be_upload ? ABORT_FORBIDDEN : ABORT_ALLOWED;
}

/* Counts a part in `arg`, an unsigned. It returns 0, so that the listing continues. */
static int count_part(void *arg, const struct s3_part *part)
{
	++*(unsigned *)arg;
	return 0;
}

/* Counts the parts of the upload. OK: S3 has the upload. NO_UPLOAD: the upload is gone. */
static enum outcome count_parts(struct upload_abort *a, unsigned *ret_parts)
{
	const struct s3_target target = {.key = a->object, .headers = subject_headers(a->subject)};
	*ret_parts = 0;
	return s3_list_parts(a->subject->conns->s3, &target, a->claim.upload.id, &a->limits,
		count_part, ret_parts, &a->problem);
}

/* Aborts the upload, up to ABORTS_MAX times, until S3 lists no part of it. Returns whether the
 * upload is gone. If not, a->problem has a sentence. */
static bool abort_until_gone(struct upload_abort *a)
{
	const struct subject *subject = a->subject;
	unsigned parts;
	enum outcome o = count_parts(a, &parts);
	if (o == OUTCOME_NO_UPLOAD) {
		/* S3 does not know the upload id. That proves that the upload is gone only if this
		 * is the bucket that the marks know. ABSENT: no mark is done, so there is no object
		 * to ask S3 for, and the bucket is taken for the right one. */
		o = audit_check_bucket(&subject->clearing->place, subject->conns, &a->problem);
		return o == OUTCOME_OK || o == OUTCOME_ABSENT;
	}
	for (unsigned n = 0; n < ABORTS_MAX && o == OUTCOME_OK; n++) {
		o = s3_abort_upload(
			subject->conns->s3, a->object, a->claim.upload.id, &a->limits, &a->problem);
		if (o == OUTCOME_OK)
			o = count_parts(a, &parts);
		const bool is_gone = o == OUTCOME_NO_UPLOAD || (o == OUTCOME_OK && !parts);
		if (is_gone)
			return true;
		if (o == OUTCOME_OK && n + 1 < ABORTS_MAX)
			o = wait_within(
				&a->limits, 200U << n, &a->problem); /* waits 0.2 s to 1.6 s */
	}
	if (o == OUTCOME_OK)
		problem_set(&a->problem,
			"S3 still lists parts of its upload after its abort: run gc again");
	return false;
}

/* Aborts the upload of a mark that gc has claimed, ends the claim, and reports the fate of the
 * upload. The mark then says failed. If the upload is gone, the mark no longer names it. Otherwise
 * the mark keeps the upload, and the time of its last change, so that the next gc retries it. */
static enum outcome abort_claimed(struct upload_abort *a, struct problem *ret_problem)
{
	struct subject *subject = a->subject;
	struct mark_ref ref = subject->ref;
	const struct mark *before = &a->claim.before;
	const char *reason =
		before->error ? before->error : "its uploader ended before it was done";
	snprintf(a->object, sizeof a->object, "%s%s", subject->ref.key, a->claim.upload.suffix);
	const enum abort_choice choice = choose_abort(a);
	const bool is_gone = choice == ABORT_ALLOWED && abort_until_gone(a);
	if (!is_gone)
		ref.at_s = before->at_s;
	const enum outcome o = mark_fail(
		&ref, &a->claim, reason, is_gone ? DROP_UPLOAD : KEEP_UPLOAD, ret_problem);
	/* mark_claim() has moved the upload from the mark to the claim. subject_report() reads it,
	 * and the state, from the mark. */
	open_upload_move(&subject->mark.upload, &a->claim.upload);
	subject->mark.state = before->state;
	if (o == OUTCOME_OK && is_gone)
		subject_report(subject, FATE_ABORTED, "", NULL);
	else if (o == OUTCOME_OK && choice == ABORT_FORBIDDEN)
		subject_report(subject, FATE_KEPT,
			"an object is there that its upload may have become: the next run looks",
			NULL);
	else if (o == OUTCOME_OK)
		subject_report(subject, FATE_FAILED, "", &a->problem);
	return o; /* an outcome of the marks: errors of S3 were reported */
}

/* Claims a mark that says failed, or whose session is over, and aborts its open upload. With
 * only_show it only reports that the upload would be aborted. OK: the fate of the upload was
 * reported. ABANDONED: the caller's limits ended the work, or gc's lease is over. Any other outcome
 * is that of the marks. All but OK have a sentence. */
static enum outcome collect_upload(
	const struct collect_options *options, struct subject *subject, struct problem *ret_problem)
{
	struct upload_abort a = {.subject = subject,
		.limits = {
			.abandon = request_has_to_end, .abandon_arg = (void *)(uintptr_t)options}};
	const struct call_limits *limits = &options->clearing.place.limits;
	if (options->clearing.only_show) {
		subject_report(subject, FATE_ABORTABLE, "", NULL);
		return OUTCOME_OK;
	}
	enum outcome o = session_begin(options->session, subject->conns->marks, ret_problem);
	if (o == OUTCOME_OK &&
		!session_wait_for_lease(options->session, limits->abandon, limits->abandon_arg))
		o = outcome_error(ret_problem, OUTCOME_ABANDONED,
			"gc was stopped, or has lost its lease: run it again");
	struct mark_ref ref = subject->ref;
	struct mark seen = {0};
	/* The claim keeps the time of the mark's last change. So if gc is killed, the next gc finds
	 * the upload as old as this one did, and aborts it. */
	ref.at_s = subject->mark.at_s;
	if (o == OUTCOME_OK) {
		o = mark_claim(&ref, &subject->mark, &a.claim, &seen, ret_problem);
		mark_clear(&seen);
		if (o == OUTCOME_REFUSED)
			subject_report(subject, FATE_KEPT, FATE_KEPT_CHANGED, NULL);
	}
	if (o == OUTCOME_OK)
		o = abort_claimed(&a, ret_problem);
	claim_clear(&a.claim);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o; /* then it was reported as KEPT */
}

/* Forgets a mark. A row that says only that its mark is forgotten is removed without a report. */
static enum outcome forget_leftover(const struct subject *subject, struct problem *ret_problem)
{
	if (subject->mark.state != MARK_FORGOTTEN)
		return subject_forget(subject, ret_problem);
	if (subject->clearing->only_show)
		return OUTCOME_OK;
	const enum outcome o = mark_forget(&subject->ref, &subject->mark, ret_problem);
	/* If the row cannot be removed now, it does no harm: it says forgotten, and expires. */
	return o == OUTCOME_REFUSED || o == OUTCOME_DENIED ? OUTCOME_OK : o;
}

/* Adds a claim whose session may live to the list that check_claims_again() goes through. gc waits
 * for the claim during one lease of that session and two seconds more, so that one check comes
 * after the end of the lease. If the list is full, the mark is reported as kept. */
static void add_waited_for(struct collection *collection, const struct subject *subject)
{
	struct session_info info; /* do_chore_of_key() has just asked for this session */
	session_recall(collection->options->session, subject->mark.session, &info);
	char *key = strdup(subject->ref.key);
	uv_mutex_lock(&collection->locked.mutex);
	const bool has_room = key && collection->locked.n < WAITED_FOR_MAX;
	if (has_room)
		collection->locked.list[collection->locked.n++] = (struct waited_for){
			.key = key, .until_ns = clock_boot_ns() + info.lease_ns + 2 * NS_PER_S};
	uv_mutex_unlock(&collection->locked.mutex);
	if (has_room)
		return;
	free(key);
	subject_report(subject, FATE_KEPT, "its uploader may live: run gc again", NULL);
}

/* Reads the mark of a key, and does its chore. If the mark is claimed by a session that may live,
 * nothing is done yet: *ret_waits is set or, if ret_waits is NULL, the claim is added to the list
 * of check_claims_again(). Any outcome but OK ends gc, and has a sentence. */
static enum outcome do_chore_of_key(struct collection *collection, const struct audit_conns *conns,
	const char *key, bool *ret_waits, struct problem *ret_problem)
{
	const struct collect_options *options = collection->options;
	struct subject subject = {.clearing = &options->clearing,
		.conns = conns,
		.ref = audit_mark_ref(&options->clearing.place, conns, key)};
	struct mark *mark = &subject.mark;
	bool is_over = true; /* whether the session of the claim is over, if the mark is claimed */
	uint64_t unused_ns;
	/* Both suffixes point to arrays in `mark`, so that they are those that mark_get() reads. */
	subject.suffix = mark->upload.suffix;
	subject.ref.session = session_id(options->session);
	subject.ref.source = options->source;
	subject.ref.suffix = mark->claim_suffix; /* gc claims for the same object */
	enum outcome o = mark_get(&subject.ref, mark, ret_problem);
	const enum chore chore = o == OUTCOME_OK ? choose_chore(options, mark) : CHORE_NONE;
	if (chore != CHORE_NONE && mark->state == MARK_CLAIMED)
		o = session_end_if_over(options->session, conns->marks, mark->session, &is_over,
			&unused_ns, ret_problem);
	const bool waits = o == OUTCOME_OK && !is_over; /* for the end of the session */
	const bool is_due = o == OUTCOME_OK && is_over;
	if (ret_waits)
		*ret_waits = waits;
	else if (waits)
		add_waited_for(collection, &subject);
	if (is_due && chore == CHORE_REPORT_DAMAGE)
		subject_report(&subject, FATE_DAMAGED, "", NULL);
	else if (is_due && chore == CHORE_ABORT)
		o = collect_upload(options, &subject, ret_problem);
	else if (is_due && chore == CHORE_FORGET)
		o = forget_leftover(&subject, ret_problem);
	mark_clear(mark);
	return o;
}

/* Does the chore of the mark of a row that audit_pool_walk() has read. The row may be out of date,
 * so the mark is read again if the row asks for a chore. */
static enum outcome do_chore_of_row(
	void *arg, const struct audit_conns *conns, void *item, struct problem *ret_problem)
{
	struct collection *collection = arg;
	const struct packed_mark *row = item;
	const struct mark mark = mark_unpack(row);
	if (collection->options->has_mark)
		atomic_store(collection->options->has_mark, true);
	if (choose_chore(collection->options, &mark) == CHORE_NONE)
		return OUTCOME_OK;
	return do_chore_of_key(collection, conns, row->key, NULL, ret_problem);
}

/* Checks each claim of the list again, every half second, until its session is over or its time has
 * passed. If its session is over, do_chore_of_key() does the chore; otherwise the mark is reported
 * as kept. `o` is the outcome so far: if it is not OK, only the list is freed. Returns `o`, or the
 * outcome that ended the waiting. */
static enum outcome check_claims_again(
	struct collection *collection, enum outcome o, struct problem *ret_problem)
{
	const struct collect_options *options = collection->options;
	const struct audit_conns *conns = &options->clearing.place.own;
	for (size_t i = 0; i < collection->locked.n; i++) {
		const struct waited_for *claim = &collection->locked.list[i];
		bool waits = true;
		bool is_last = false; /* this check is the last one */
		while (waits && o == OUTCOME_OK && !is_last) {
			/* If the limits end this wait, the mark is checked a last time, and the
			 * request returns ABANDONED if they end that, too. */
			is_last = clock_boot_ns() > claim->until_ns ||
				  wait_within(&options->clearing.place.limits, 500, ret_problem) !=
					  OUTCOME_OK;
			o = do_chore_of_key(collection, conns, claim->key, &waits, ret_problem);
		}
		if (waits && o == OUTCOME_OK) {
			/* subject_report() needs no more of a subject than this. */
			const struct subject subject = {.clearing = &options->clearing,
				.ref.key = claim->key,
				.mark.state = MARK_CLAIMED,
				.suffix = ""};
			subject_report(&subject, FATE_KEPT, "its uploader lives", NULL);
		}
		free(claim->key);
	}
	return o;
}

enum outcome collect(
	const struct collect_options *options, const char *prefix, struct problem *ret_problem)
{
	struct collection *collection = calloc(1, sizeof *collection);
	const struct mark_range range = {.prefix = prefix};
	const struct audit_pool_work work = {.each = do_chore_of_row, .arg = collection};
	if (!collection)
		return outcome_no_memory(ret_problem);
	collection->options = options;
	uv_mutex_init(&collection->locked.mutex);
	enum outcome o = audit_pool_walk(&options->clearing.place, &range, &work, ret_problem);
	o = check_claims_again(collection, o, ret_problem);
	uv_mutex_destroy(&collection->locked.mutex);
	free(collection);
	return o;
}
