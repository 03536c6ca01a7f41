/* What this server is known to do, learned from its replies. */
#include "s3/s3_request.h"

enum s3_known s3_knows(const struct s3 *s3, enum s3_ability ability)
{
	return (enum s3_known)atomic_load_explicit(&s3->known[ability], memory_order_relaxed);
}

void s3_learn(struct s3 *s3, enum s3_ability ability, bool yes)
{
	atomic_store_explicit(&s3->known[ability], yes ? S3_YES : S3_NO, memory_order_relaxed);
}

void s3_learn_condition(struct s3 *s3, enum s3_ability ability,
	const struct s3_condition *condition, enum outcome outcome, int status)
{
	if (!condition->if_none_match)
		return;
	if (outcome == OUTCOME_REFUSED)
		s3_learn(s3, ability, true);
	else if (outcome == OUTCOME_UNSUPPORTED && status == 501)
		s3_learn(s3, ability, false);
}
