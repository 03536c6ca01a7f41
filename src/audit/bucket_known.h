/* Whether the bucket is the one that the marks are about, for commands that draw conclusions from
 * an object that is not there (docs/protocol.md, "The bucket is the one that the marks know").
 * Nothing is written. */
#pragma once
#include "audit/crew.h"

/* OK: it is. ABSENT: no mark says done, so that there is nothing to ask for. SETUP: it is another
 * bucket, or S3 does not show which one. ABANDONED: the limits of the place ended it. All but OK
 * come with a sentence. space->generation is set already. */
enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	struct problem *ret_problem);
