#include "cli/audit/verify_with_bucket.h"
#include "audit/bucket_known.h"
#include <string.h>

static struct call_limits limits_of(const struct verify *verify)
{
	return (struct call_limits){.abandon = verify->visitor.is_stopped,
		.abandon_arg = verify->visitor.arg,
		.patience_ms = verify->patience_ms};
}

/* In another bucket of that name, every object would be missing or different. What ends the run is
 * noticed by the comparison. */
static enum outcome know_bucket(
	const struct verify_with_bucket *wanted, struct problem *ret_problem)
{
	struct audit_place place = wanted->setup->place;
	struct audit_hand hand;
	place.limits = limits_of(wanted->verify);
	enum outcome o = OUTCOME_LOCAL;
	if (audit_hand_open(&place, &hand))
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
	else
		o = bucket_is_known(&place, &hand, ret_problem);
	audit_hand_clear(&hand);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

/* If the key has a mark of its own, only that one is meant. */
static enum outcome is_one_key(
	const struct verify_with_bucket *wanted, bool *ret, struct problem *ret_problem)
{
	const struct mark_ref ref = {.conn = wanted->setup->marks.conn,
		.space = &wanted->setup->space,
		.key = wanted->url->key,
		.session = "",
		.source = ""};
	struct mark mark = {0};
	*ret = false;
	if (strcmp(wanted->verify->range.prefix, wanted->url->key) == 0)
		return OUTCOME_OK;
	const enum outcome o = mark_get(&ref, &mark, ret_problem);
	*ret = o == OUTCOME_OK && mark.state != MARK_ABSENT && mark.state != MARK_FORGOTTEN;
	mark_clear(&mark);
	return o;
}

/* With --subset 10G, the size of all objects decides which keys are chosen. */
static enum outcome size_subset(
	const struct verify_with_bucket *wanted, struct problem *ret_problem)
{
	struct verify *verify = wanted->verify;
	const struct mark_range range = {.prefix = verify->range.prefix};
	const struct call_limits limits = limits_of(verify);
	uint64_t total = 0;
	if (!verify->subset.bytes)
		return OUTCOME_OK;
	const enum outcome o = verify_bytes_of_marks(
		wanted->setup->marks.conn, verify->space, &range, &limits, &total, ret_problem);
	verify_subset_share(&verify->subset, total);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

enum outcome verify_with_bucket(const struct verify_with_bucket *wanted, struct verify_end *ret,
	struct problem *ret_problem)
{
	const char *key = wanted->url->key;
	bool is_one = false;
	enum outcome o = know_bucket(wanted, ret_problem);
	if (o == OUTCOME_OK)
		o = is_one_key(wanted, &is_one, ret_problem);
	if (is_one)
		wanted->view->prefix = key;
	if (o == OUTCOME_OK && !is_one)
		o = size_subset(wanted, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	return is_one ? verify_one(wanted->verify, key, ret, ret_problem)
		      : verify_run(wanted->verify, ret, ret_problem);
}
