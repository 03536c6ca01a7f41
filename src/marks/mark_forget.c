/* How a mark is forgotten: docs/protocol.md, "Marks are forgotten". */
#include "base/random.h"
#include "marks/mark_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What stays of a mark in a store where a late duplicate of its claim, and after that one of its
 * done, could bring it back if there were no row. */
static enum outcome put_forgotten(const struct mark_ref *ref, const struct condition *as_seen,
	size_t n, const char *id, struct mark *ret_seen, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	int error = item_set_string(&item, "state", mark_state_name(MARK_FORGOTTEN));
	if (!error)
		error = item_set_string(&item, "claim", id);
	if (!error)
		error = item_set_number(&item, "at", mark_now_s(ref));
	if (!error)
		error = item_set_number(&item, "expires", mark_now_s(ref) + MARK_FORGOTTEN_KEEP_S);
	enum outcome o = OUTCOME_LOCAL;
	if (error)
		problem_set(ret_problem, "out of memory");
	else
		o = ref->conn->store->ops->write(ref->conn, mark_item_key(ref, partition),
			&(struct item_write){
				.item = &item, .conditions = as_seen, .n_conditions = n},
			&ref->limits, &present, ret_problem);
	item_clear(&item);
	return mark_seen(o, &present, ret_seen, ret_problem);
}

static enum outcome remove_row(const struct mark_ref *ref, const struct condition *as_seen,
	size_t n, struct mark *ret_seen, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	struct item present = {0};
	enum outcome o = ref->conn->store->ops->write(ref->conn, mark_item_key(ref, partition),
		&(struct item_write){.removes = true, .conditions = as_seen, .n_conditions = n},
		&ref->limits, &present, ret_problem);
	return mark_seen(o, &present, ret_seen, ret_problem);
}

/* Nothing that was sent before it was forgotten is still under way. */
static bool has_expired(const struct mark_ref *ref, const struct mark *old)
{
	return old->state == MARK_FORGOTTEN && mark_now_s(ref) > old->at_s + MARK_FORGOTTEN_KEEP_S;
}

enum outcome mark_forget(
	const struct mark_ref *ref, const struct mark *old, struct problem *ret_problem)
{
	char id[ID_CHARS + 1], at[24], newer[24];
	random_id(id);
	snprintf(at, sizeof at, "%" PRId64, old->at_s);
	snprintf(newer, sizeof newer, "%" PRId64, old->newer_mtime_ns);
	const struct condition as_seen[] = {mark_equals("state", mark_state_name(old->state)),
		mark_equals_or_absent("session", old->session),
		mark_equals_or_absent("claim", old->claim),
		mark_equals_or_absent("upload", old->upload.id),
		{"at", CONDITION_EQUALS, VALUE_NUMBER, at},
		{"newer_mtime", old->has_newer ? CONDITION_EQUALS : CONDITION_ABSENT, VALUE_NUMBER,
			newer}};
	const size_t n = sizeof as_seen / sizeof *as_seen;
	struct mark present;
	enum outcome o = ref->conn->store->ops->removes_for_good || has_expired(ref, old)
				 ? remove_row(ref, as_seen, n, &present, ret_problem)
				 : put_forgotten(ref, as_seen, n, id, &present, ret_problem);
	if (o == OUTCOME_REFUSED &&
		(present.state == MARK_ABSENT ||
			(present.state == MARK_FORGOTTEN && strcmp(present.claim, id) == 0)))
		o = OUTCOME_OK;
	mark_clear(&present);
	return o;
}
