/* Reads a mark and the session of its claim, which are two rows, such that both are of one moment.
 * It is for `s3once status` and `proven`. Uploaders go by session_end_if_over(). */
#include "marks/claimant.h"
#include <stdio.h>
#include <string.h>

/* Reads the session of a claimed mark. Also OK if its row is gone. */
static enum outcome read_claimant(
	struct store_conn *conn, const char *id, struct claimant *ret, struct problem *ret_problem)
{
	const enum outcome o = session_describe(conn, id, &ret->session, ret_problem);
	ret->is_known = o == OUTCOME_OK;
	ret->is_over =
		!ret->is_known || !session_is_at_work(&ret->session, store_time_s(conn->store));
	return o == OUTCOME_ABSENT ? OUTCOME_OK : o;
}

enum outcome mark_get_with_claimant(const struct mark_ref *ref, struct mark *ret,
	struct claimant *ret_claimant, struct problem *ret_problem)
{
	char claim[ID_CHARS + 1] = ""; /* of the last round */
	*ret_claimant = (struct claimant){0};
	for (;;) {
		enum outcome o = mark_get(ref, ret, ret_problem);
		const bool is_claimed = o == OUTCOME_OK && ret->state == MARK_CLAIMED;
		const bool is_left =
			ret_claimant->is_over && is_claimed && strcmp(ret->claim, claim) == 0;
		if (is_left)
			return o;
		*ret_claimant = (struct claimant){0};
		if (!is_claimed)
			return o;
		o = read_claimant(ref->conn, ret->session, ret_claimant, ret_problem);
		if (o != OUTCOME_OK || !ret_claimant->is_over)
			return o;
		snprintf(claim, sizeof claim, "%s", ret->claim);
		mark_clear(ret);
	}
}
