#include "aws/outcome.h"

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {
		[OUTCOME_OK] = "ok",
		[OUTCOME_REFUSED] = "refused",
		[OUTCOME_CONFLICT] = "conflict",
		[OUTCOME_ABSENT] = "absent",
		[OUTCOME_NO_UPLOAD] = "no such upload",
		[OUTCOME_BAD_PART] = "bad part",
		[OUTCOME_UNSUPPORTED] = "unsupported",
		[OUTCOME_BAD_DIGEST] = "bad digest",
		[OUTCOME_DENIED] = "denied",
		[OUTCOME_SETTING] = "setting refused",
		[OUTCOME_INVALID] = "invalid",
		[OUTCOME_SETUP] = "setup",
		[OUTCOME_LOST] = "lost",
		[OUTCOME_TRANSIENT] = "transient",
		[OUTCOME_THROTTLED] = "throttled",
		[OUTCOME_ABANDONED] = "abandoned",
		[OUTCOME_LOCAL] = "local",
	};
	return names[o];
}

bool outcome_is_ambiguous(enum outcome o)
{
	return o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_ABANDONED;
}
