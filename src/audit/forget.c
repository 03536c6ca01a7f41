#include "audit/forget.h"
#include "base/text.h"
#include <string.h>

/* What compression adds to the key of a rotated file's object. */
static const char *const suffixes[] = {".gz", ".bz2", ".xz", ".zst", ".lz4"};

/* One mark, as it was read right now. */
struct subject {
	const struct forget_options *options;
	const struct audit_hand *hand;
	struct mark_ref ref;
	const struct mark *mark;
	const char *object;
};

static struct mark_ref ref_of(
	const struct forget_options *options, const struct audit_hand *hand, const char *key)
{
	return (struct mark_ref){.conn = hand->marks,
		.space = options->place.space,
		.key = key,
		.session = "",
		.source = "",
		.suffix = "",
		.limits = options->place.limits};
}

static void tell_fate(const struct subject *subject, enum mark_fate fate, const char *why,
	const struct problem *problem)
{
	const struct mark_told told = {
		.fate = fate,
		.key = subject->ref.key,
		.object = subject->object,
		.upload_id = "",
		.state = subject->mark->state,
		.why = why,
		.problem = problem,
	};
	subject->options->teller.tell(subject->options->teller.arg, &told);
}

/* Why nobody may forget a mark as it is, as a clause. NULL: it may be forgotten. */
static const char *protection_of(const struct mark *mark)
{
	switch (mark->state) {
	case MARK_CLAIMED:
		return "it is claimed: its uploader may live, or the next run takes it over";
	case MARK_UNREADABLE:
		return "it is damaged, or was written by a later version of s3once";
	case MARK_DONE:
	case MARK_FAILED:
	case MARK_ABSENT:
	case MARK_FORGOTTEN:
		break;
	}
	return mark->upload.id
		       ? "it records an open multipart upload, which nothing else names: s3once gc aborts it"
		       : NULL;
}

static bool is_too_new(const struct forget_options *options, int64_t at_s)
{
	const int64_t now_s = store_time_s(options->place.store);
	return options->older_than_s && at_s > now_s - (int64_t)options->older_than_s;
}

/* Why a mark is not among those that were asked for; NULL: it is. */
static const char *selection(const struct forget_options *options, const struct mark *mark)
{
	if (is_too_new(options, mark->at_s))
		return "it was changed since";
	if (options->only_missing && mark->state != MARK_DONE)
		return "it does not say that an object is there";
	return NULL;
}

static enum outcome forget_now(const struct subject *subject)
{
	struct problem problem = {0};
	const enum outcome o = mark_forget(&subject->ref, subject->mark, &problem);
	if (o == OUTCOME_OK)
		tell_fate(subject, FATE_FORGOTTEN, "", NULL);
	else if (o == OUTCOME_REFUSED)
		tell_fate(subject, FATE_KEPT, "another uploader has changed it meanwhile", NULL);
	else if (o != OUTCOME_ABANDONED)
		tell_fate(subject, FATE_FAILED, "", &problem);
	return o == OUTCOME_ABANDONED ? o : OUTCOME_OK;
}

/* ABSENT: the object is gone. OK: it is not, or that cannot be known, which was told. */
static enum outcome look_for_object(const struct subject *subject, bool is_asked_for)
{
	const struct s3_target target = {.key = subject->object};
	struct s3_object now = {0};
	struct problem problem = {0};
	const enum outcome o = s3_head_object(
		subject->hand->s3, &target, &subject->options->place.limits, &now, &problem);
	if (o == OUTCOME_OK && is_asked_for)
		tell_fate(subject, FATE_KEPT, "its object is there", NULL);
	else if (o != OUTCOME_OK && o != OUTCOME_ABSENT && o != OUTCOME_ABANDONED)
		tell_fate(subject, FATE_FAILED, "", &problem);
	return o == OUTCOME_ABSENT || o == OUTCOME_ABANDONED ? o : OUTCOME_OK;
}

/* `is_asked_for`: by its own name, so that everything about it is told. OK, or ABANDONED. */
static enum outcome judge_mark(const struct subject *subject, bool is_asked_for)
{
	const struct forget_options *options = subject->options;
	const char *other = selection(options, subject->mark);
	const char *protected = protection_of(subject->mark);
	if (other && is_asked_for)
		tell_fate(subject, FATE_KEPT, other, NULL);
	else if (!other && protected)
		tell_fate(subject, FATE_KEPT, protected, NULL);
	if (other || protected)
		return OUTCOME_OK;
	if (options->only_missing) {
		const enum outcome o = look_for_object(subject, is_asked_for);
		if (o != OUTCOME_ABSENT)
			return o;
	}
	if (!options->only_show)
		return forget_now(subject);
	tell_fate(subject, FATE_FORGETTABLE, "", NULL);
	return OUTCOME_OK;
}

static enum outcome judge_object(
	struct subject *subject, bool is_asked_for, struct problem *ret_problem)
{
	struct text object = TEXT(2048);
	text_add(&object, subject->ref.key);
	text_add(&object, subject->mark->has_done ? subject->mark->done.suffix : "");
	if (object.error) {
		problem_set(ret_problem, "out of memory");
		text_clear(&object);
		return OUTCOME_LOCAL;
	}
	subject->object = text_string(&object);
	const enum outcome o = judge_mark(subject, is_asked_for);
	text_clear(&object);
	return o;
}

static enum outcome forget_exactly(const struct forget_options *options,
	const struct audit_hand *hand, const char *key, const char *suffix,
	struct problem *ret_problem)
{
	struct mark mark;
	struct subject subject = {
		.options = options, .hand = hand, .ref = ref_of(options, hand, key), .mark = &mark};
	enum outcome o = mark_get(&subject.ref, &mark, ret_problem);
	const bool is_there = o == OUTCOME_OK && mark.state != MARK_ABSENT &&
			      mark.state != MARK_FORGOTTEN &&
			      (!*suffix || strcmp(mark.suffix, suffix) == 0);
	if (is_there)
		o = judge_object(&subject, true, ret_problem);
	else if (o == OUTCOME_OK)
		o = OUTCOME_ABSENT;
	mark_clear(&mark);
	return o;
}

enum outcome forget_key(const struct forget_options *options, const struct audit_hand *hand,
	const char *key, struct problem *ret_problem)
{
	enum outcome o = forget_exactly(options, hand, key, "", ret_problem);
	const size_t n = strlen(key);
	for (size_t i = 0; o == OUTCOME_ABSENT && i < sizeof suffixes / sizeof *suffixes; i++) {
		const size_t more = strlen(suffixes[i]);
		if (n <= more || strcmp(key + n - more, suffixes[i]) != 0)
			continue;
		struct text plain = TEXT(2048);
		text_add_bytes(&plain, key, n - more);
		o = plain.error ? OUTCOME_LOCAL
				: forget_exactly(options, hand, text_string(&plain), suffixes[i],
					  ret_problem);
		text_clear(&plain);
	}
	return o;
}

/* The row is from a page that was read a while ago. If it looks as if it should be forgotten, it is
 * read again. */
static enum outcome forget_row(void *arg, const struct audit_hand *hand, const struct mark_row *row,
	struct problem *ret_problem)
{
	const struct forget_options *options = arg;
	if (row->state == MARK_FORGOTTEN || is_too_new(options, row->at_s) ||
		(options->only_missing && row->state != MARK_DONE))
		return OUTCOME_OK;
	struct mark mark;
	struct subject subject = {.options = options,
		.hand = hand,
		.ref = ref_of(options, hand, row->key),
		.mark = &mark};
	enum outcome o = mark_get(&subject.ref, &mark, ret_problem);
	if (o == OUTCOME_OK && mark.state != MARK_ABSENT && mark.state != MARK_FORGOTTEN)
		o = judge_object(&subject, false, ret_problem);
	mark_clear(&mark);
	return o;
}

enum outcome forget_prefix(
	const struct forget_options *options, const char *prefix, struct problem *ret_problem)
{
	const struct mark_range range = {.prefix = prefix};
	const struct crew_work work = {forget_row, (void *)(uintptr_t)options};
	return crew_walk(&options->place, &range, &work, ret_problem);
}
