/* What becomes of marks: `s3once forget` removes them, each only as it was read (docs/protocol.md,
 * "Marks are forgotten"), and `s3once gc` clears away what ended runs have left behind. No object
 * is changed. */
#pragma once
#include "audit/crew.h"
#include "marks/session.h"

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
	const char *upload_id;         /* of ABORTED and ABORTABLE */
	enum mark_state state;         /* as it was read */
	const char *why;               /* of KEPT, a clause; else "" */
	const struct problem *problem; /* of FAILED; else NULL */
};

/* `tell` is called from several threads. */
struct mark_teller {
	void (*tell)(void *arg, const struct mark_told *told);
	void *arg;
};

/* What both work with. */
struct clearing {
	struct audit_place place; /* forget needs its s3 for only_missing alone */
	bool only_show;           /* nothing is changed */
	struct mark_teller teller;
};

struct forget_options {
	struct clearing clearing; /* its teller gets FORGOTTEN, FORGETTABLE, KEPT and FAILED */
	bool only_missing;        /* marks that say done, whose object is gone (404) */
	uint64_t older_than_s;    /* marks that were last changed so long ago; 0: any */
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

/* For gc, which takes files over as an uploader does, with a session of its own. So it takes
 * nothing from an uploader that may be running. */
struct collect_options {
	struct clearing clearing;
	struct session *session; /* reads_only if only_show */
	const char *source;      /* "host:gc", for the marks that are taken over */
	uint64_t keep_uploads_s; /* uploads whose marks were last changed so long ago are aborted */
	uint64_t keep_marks_s;   /* marks that were last changed so long ago go; UINT64_MAX: none */
};

/* Works through the marks below a prefix, and waits for silent sessions at the end, for a lease
 * each. OK also if some marks could not be dealt with; those were reported. */
enum outcome collect(
	const struct collect_options *options, const char *prefix, struct problem *ret_problem);

/* For forget.c and collect.c only: a mark that is dealt with, as it was read right now. */
struct subject {
	const struct clearing *clearing;
	const struct audit_hand *hand;
	struct mark_ref ref;
	struct mark mark;
	const char *suffix; /* of struct mark_told */
};
void subject_tell(const struct subject *subject, enum mark_fate fate, const char *why,
	const struct problem *problem);
/* Forgets the mark as it was read, or only shows it, and tells so. OK, also if another uploader has
 * changed it, or else as mark_forget(), and nothing was told. */
enum outcome subject_forget(const struct subject *subject, struct problem *ret_problem);
