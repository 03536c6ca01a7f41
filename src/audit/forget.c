/* Forgets the mark of a key, or each mark below a prefix, for `s3once forget`. The mark is read,
 * judged, and forgotten only if it has not changed since it was read. So nothing that a running
 * uploader has written is lost. No object is changed. Unlike gc, forget never takes over a
 * claim. */
#include "audit/forget.h"
#include <stdio.h>
#include <string.h>

void subject_report(const struct subject *subject, enum mark_fate fate, const char *why,
	const struct problem *problem)
{
	const struct mark *mark = &subject->mark;
	const struct mark_reporter *reporter = &subject->clearing->reporter;
	const struct mark_report report = {
		.fate = fate,
		.key = subject->ref.key,
		.suffix = subject->suffix,
		.upload_id = mark->upload.id ? mark->upload.id : "",
		.state = mark->state,
		.why = why,
		.problem = problem,
	};
	reporter->report(reporter->arg, &report);
}

enum outcome subject_forget(const struct subject *subject, struct problem *ret_problem)
{
	const bool only_show = subject->clearing->only_show;
	const enum outcome o =
		only_show ? OUTCOME_OK : mark_forget(&subject->ref, &subject->mark, ret_problem);
	if (o == OUTCOME_OK)
		subject_report(subject, only_show ? FATE_FORGETTABLE : FATE_FORGOTTEN, "", NULL);
	else if (o == OUTCOME_REFUSED)
		subject_report(subject, FATE_KEPT, FATE_KEPT_CHANGED, NULL);
	return o == OUTCOME_REFUSED ? OUTCOME_OK : o;
}

const struct s3_headers *subject_headers(const struct subject *subject)
{
	const struct s3_headers *const *keys = subject->clearing->place.keys;
	return keys ? *keys : NULL;
}

/* Returns the reason that protects this mark from being forgotten, as a clause; NULL: there is
 * none. */
static const char *reason_protected(const struct mark *mark)
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

/* Returns the reason why the options do not select this mark, as a clause; NULL: they select it. */
static const char *reason_not_selected(
	const struct forget_options *options, const struct mark *mark)
{
	const int64_t now_s = store_time_s(options->clearing.place.store);
	if (options->older_than_s && mark->at_s > now_s - (int64_t)options->older_than_s)
		return "it was changed since";
	if (options->only_missing && mark->state != MARK_DONE)
		return "it does not say that an object is there";
	return NULL;
}

/* The user has named the mark by its key, or by a prefix that many marks have. */
enum named { BY_KEY, BY_PREFIX };

/* Finds out by a HEAD whether the object is gone. If it is there or the HEAD failed, *ret_is_gone
 * is false, and the mark has to stay: it was reported as FAILED if the HEAD failed, and as KEPT if
 * the object is there, but only with BY_KEY. ABANDONED: the limits ended the request. Any other
 * outcome but OK, with a sentence: no object can be asked for. */
static enum outcome check_object_is_gone(const struct subject *subject, enum named named,
	bool *ret_is_gone, struct problem *ret_problem)
{
	char object[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	const struct s3_target target = {.key = object, .headers = subject_headers(subject)};
	struct s3_object now = {0};
	snprintf(object, sizeof object, "%s%s", subject->ref.key, subject->suffix);
	const enum outcome o = s3_head_object(
		subject->conns->s3, &target, &subject->ref.limits, &now, ret_problem);
	*ret_is_gone = o == OUTCOME_ABSENT;
	/* These are failures that all other objects would have, too. */
	if (o == OUTCOME_SETUP || o == OUTCOME_LOCAL || o == OUTCOME_ABANDONED)
		return o;
	if (o == OUTCOME_OK && named == BY_KEY)
		subject_report(subject, FATE_KEPT, "its object is there", NULL);
	else if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		subject_report(subject, FATE_FAILED, "", ret_problem);
	return OUTCOME_OK;
}

/* Forgets the mark if the options select it and nothing protects it, and reports its fate. A mark
 * that is named BY_KEY is reported even if it is not selected, or if its object is there. Any
 * outcome but OK ends the walk. */
static enum outcome forget_if_selected(const struct forget_options *options,
	const struct subject *subject, enum named named, struct problem *ret_problem)
{
	const struct mark *mark = &subject->mark;
	const char *not_selected = reason_not_selected(options, mark);
	if (not_selected) {
		if (named == BY_KEY)
			subject_report(subject, FATE_KEPT, not_selected, NULL);
		return OUTCOME_OK;
	}
	const char *protected = reason_protected(mark);
	if (protected) {
		subject_report(subject, FATE_KEPT, protected, NULL);
		return OUTCOME_OK;
	}
	if (options->only_missing) {
		bool is_gone;
		const enum outcome o = check_object_is_gone(subject, named, &is_gone, ret_problem);
		if (o != OUTCOME_OK || !is_gone)
			return o;
	}
	const enum outcome o = subject_forget(subject, ret_problem);
	if (o != OUTCOME_OK && o != OUTCOME_ABANDONED)
		subject_report(subject, FATE_FAILED, "", ret_problem);
	return o == OUTCOME_ABANDONED ? o : OUTCOME_OK;
}

/* Reads the mark of exactly this key, and calls forget_if_selected(). If `suffix` is not "", the
 * mark's object has to have this suffix of compression. ABSENT: there is no such mark, or it is
 * forgotten already. */
static enum outcome forget_exactly(const struct forget_options *options,
	const struct audit_conns *conns, const char *key, const char *suffix, enum named named,
	struct problem *ret_problem)
{
	struct subject subject = {.clearing = &options->clearing,
		.conns = conns,
		.ref = audit_mark_ref(&options->clearing.place, conns, key)};
	struct mark *mark = &subject.mark;
	enum outcome o = mark_get(&subject.ref, mark, ret_problem);
	/* The object in question is that of the last done version. */
	subject.suffix = mark->has_done ? mark->done.suffix : "";
	const bool is_there = mark->state != MARK_ABSENT && mark->state != MARK_FORGOTTEN;
	const bool has_suffix = !*suffix || strcmp(mark_suffix(mark), suffix) == 0;
	if (o == OUTCOME_OK && is_there && has_suffix)
		o = forget_if_selected(options, &subject, named, ret_problem);
	else if (o == OUTCOME_OK)
		o = OUTCOME_ABSENT;
	mark_clear(mark);
	return o;
}

enum outcome forget_key(const struct forget_options *options, const struct audit_conns *conns,
	const char *key, struct problem *ret_problem)
{
	char plain[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	const char *suffix;
	enum outcome o = OUTCOME_ABSENT;
	for (size_t i = 0; o == OUTCOME_ABSENT && i < AUDIT_MARK_KEYS; i++)
		if (audit_mark_key(key, i, plain, &suffix))
			o = forget_exactly(options, conns, plain, suffix, BY_KEY, ret_problem);
	return o;
}

/* Forgets the mark of a row that audit_pool_walk() has read, if the options select it. The row may
 * be out of date by now. So the mark is read again first, and has to be selected then, too. */
static enum outcome forget_row(
	void *arg, const struct audit_conns *conns, void *item, struct problem *ret_problem)
{
	const struct forget_options *options = arg;
	const struct packed_mark *row = item;
	const struct mark mark = mark_unpack(row);
	if (mark.state == MARK_FORGOTTEN || reason_not_selected(options, &mark))
		return OUTCOME_OK;
	const enum outcome o = forget_exactly(options, conns, row->key, "", BY_PREFIX, ret_problem);
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o; /* another client has removed it meanwhile */
}

enum outcome forget_prefix(
	const struct forget_options *options, const char *prefix, struct problem *ret_problem)
{
	const struct mark_range range = {.prefix = prefix};
	/* The cast takes away `const`, which forget_row() adds again. */
	const struct audit_pool_work work = {.each = forget_row, .arg = (void *)(uintptr_t)options};
	return audit_pool_walk(&options->clearing.place, &range, &work, ret_problem);
}
