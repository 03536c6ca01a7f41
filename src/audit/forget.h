/* `s3once forget`: removes marks, each only as it was read (docs/protocol.md, "Marks are
 * forgotten"). No object is changed. */
#pragma once
#include "audit/crew.h"
#include "audit/mark_fate.h"

struct forget_options {
	struct audit_place place;  /* its s3 is needed for only_missing alone */
	bool only_missing;         /* marks that say done, whose object is gone (404) */
	uint64_t older_than_s;     /* marks that were last changed so long ago; 0: any */
	bool only_show;            /* nothing is written */
	struct mark_teller teller; /* of FORGOTTEN, FORGETTABLE, KEPT and FAILED */
};

/* Where the limits of the place end it, these return ABANDONED. */

/* Forgets the mark of one key, or of an object that is stored under its mark's key with a suffix of
 * compression. OK: its fate was reported. ABSENT: the mark does not exist, and nothing was
 * reported. A mark that is not selected (only_missing, older_than_s) is reported as KEPT. */
enum outcome forget_key(const struct forget_options *options, const struct audit_hand *hand,
	const char *key, struct problem *ret_problem);
/* Forgets all marks whose keys have this prefix. Marks that are not selected are not reported. OK
 * also if some could not be forgotten. */
enum outcome forget_prefix(
	const struct forget_options *options, const char *prefix, struct problem *ret_problem);
