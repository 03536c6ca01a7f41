/* `s3once forget`: removes marks, each only as it was read (docs/protocol.md, "Marks are
 * forgotten"). No object is changed. */
#pragma once
#include "audit/crew.h"

/* What `forget` and `gc` did about a mark, for the caller to report. */
enum mark_fate {
	FATE_FORGOTTEN,   /* the mark is forgotten */
	FATE_FORGETTABLE, /* it would be forgotten, but nothing was to be changed */
	FATE_ABORTED,     /* the upload that it names was aborted, or was gone already */
	FATE_ABORTABLE,   /* it would be aborted */
	FATE_KEPT,        /* nothing was done, and `why` says why */
	FATE_DAMAGED,     /* its row is not understood, and stays as it is */
	FATE_FAILED,      /* a service did not answer as it should: see `problem` */
	FATES
};

/* Why one is kept that was to go. */
#define FATE_KEPT_CHANGED "another uploader has changed it meanwhile"

/* Borrowed during the call. */
struct mark_told {
	enum mark_fate fate;
	const char *key;               /* of the mark */
	const char *suffix;            /* of compression: the object's key is the mark's key and
					  this behind it; mostly "" */
	const char *upload_id;         /* of ABORTED and ABORTABLE; else "" */
	enum mark_state state;         /* as it was read */
	const char *why;               /* of KEPT, a clause; else "" */
	const struct problem *problem; /* of FAILED; else NULL */
};

/* `tell` is called from several threads. */
struct mark_teller {
	void (*tell)(void *arg, const struct mark_told *told);
	void *arg;
};

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
