/* Whether the bucket is the one that the marks are about, for commands that draw conclusions from
 * an object that is not there (docs/protocol.md, "The bucket is the one that the marks know").
 * Nothing is written. */
#pragma once
#include "audit/crew.h"

/* OK: it is. SETUP, with a sentence: it is a different bucket, or nothing shows that it is the
 * same. Any other outcome, with a sentence: this could not be found out. space->generation is set
 * already. `bucket` names it in sentences. Up to 20 requests. */
enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	const char *bucket, struct problem *ret_problem);
