/* An open upload that a mark names which nobody holds any more: the mark is taken over, the upload
 * aborted and its end awaited, and then the mark is cleared of it. */
#pragma once
#include "audit/collect.h"

/* A mark that is being dealt with, as it was read right now. Borrowed. */
struct leftover {
	const struct collect_options *options;
	const struct audit_hand *hand;
	const char *key;
	struct mark *mark;
};
struct mark_ref leftover_ref(const struct leftover *leftover);
void leftover_tell(const struct leftover *leftover, enum mark_fate fate, const char *why,
	const struct problem *problem);

/* The mark says failed, or is claimed by a session that is over, and records an open upload. Tells
 * what became of it. OK; ABANDONED: the caller's limits, or our lease, ended it. Other outcomes, of
 * the marks, with a sentence. */
enum outcome collect_upload(const struct leftover *leftover, struct problem *ret_problem);
