#include "audit/bucket_known.h"
#include "aws/wait.h"
#include "base/quote.h"
#include "marks/bucket_shown.h"

enum outcome bucket_is_known(
	const struct audit_place *place, const struct audit_hand *hand, struct problem *ret_problem)
{
	struct bucket_row row;
	struct bucket_shown shown;
	const struct mark_space *space = place->space;
	const struct bucket_asking asking = {
		.marks = hand->marks, .s3 = hand->s3, .space = space, .limits = place->limits};
	const enum outcome o =
		bucket_row_read(hand->marks, space, &place->limits, &row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	switch (bucket_show(&asking, &row, &shown, ret_problem)) {
	case BUCKET_SHOWN:
		return OUTCOME_OK;
	case BUCKET_NOTHING:
		problem_set(ret_problem,
			"there are no marks of bucket %s at %s that say done: check the name, the "
			"endpoint and --marks",
			quote(space->bucket).text, quote(space->service).text);
		return OUTCOME_ABSENT;
	case BUCKET_REFUSED:
		problem_prefix(ret_problem,
			"nothing shows whether bucket %s is the one that the marks are about",
			quote(space->bucket).text);
		break;
	case BUCKET_NO_ANSWER:
		if (limits_are_over(&place->limits))
			return OUTCOME_ABANDONED;
		break;
	case BUCKET_GONE:
		break;
	}
	return OUTCOME_SETUP;
}
