/* Removing marks. `s3once forget` removes a mark only if the mark has not changed since it was read
 * (docs/protocol.md, "Marks are forgotten"). `s3once gc` clears away the remains of ended runs. No
 * object is changed. */
#pragma once
#include "audit/audit_pool.h"
#include "marks/session.h"
#include <stdatomic.h>

/* The result of `forget` or `gc` for one mark, for the caller to report. */
enum mark_fate {
	FATE_FORGOTTEN,   /* the mark is forgotten */
	FATE_FORGETTABLE, /* it would be forgotten (only_show) */
	FATE_ABORTED,     /* its upload was aborted, or was already gone */
	FATE_ABORTABLE,   /* its upload would be aborted (only_show) */
	FATE_KEPT,        /* unchanged, for the reason `why` */
	FATE_DAMAGED,     /* its row cannot be understood, and stays */
	FATE_FAILED,      /* a request failed: see `problem` */
	FATES
};

/* The `why` of a KEPT mark that could not be forgotten or taken over. */
#define FATE_KEPT_CHANGED "another uploader has changed it meanwhile"

/* The report about one mark. It is valid during the call of report(). */
struct mark_report {
	enum mark_fate fate;
	const char *key;    /* key of the mark */
	const char *suffix; /* suffix of compression, by which the object's key is longer than the
			       mark's; mostly "" */
	const char *upload_id;         /* for ABORTED and ABORTABLE */
	enum mark_state state;         /* state of the mark when it was read */
	const char *why;               /* the reason, as a clause, if KEPT; otherwise "" */
	const struct problem *problem; /* for FAILED, otherwise NULL */
};

/* The callback `report` is called from several threads. */
struct mark_reporter {
	void (*report)(void *arg, const struct mark_report *report);
	void *arg;
};

/* The common parameters of forget and gc. */
struct clearing {
	struct audit_place place; /* forget needs its s3 only with only_missing */
	bool only_show;           /* only reports, and changes nothing */
	struct mark_reporter reporter;
};

struct forget_options {
	struct clearing clearing; /* FORGOTTEN, FORGETTABLE, KEPT and FAILED are reported */
	bool only_missing;        /* selects done marks whose object is gone (404) */
	uint64_t older_than_s;    /* selects marks that have not changed for this time; 0: all */
};

/* The functions below return ABANDONED if the limits of the place end them. */

/* Forgets one mark. `key` is the key of the mark or of its object, which may have a suffix of
 * compression. OK: the fate of the mark was reported. ABSENT: the mark does not exist, and nothing
 * was reported. A mark that is not selected (only_missing, older_than_s) is reported as KEPT. */
enum outcome forget_key(const struct forget_options *options, const struct audit_conns *conns,
	const char *key, struct problem *ret_problem);
/* Forgets all marks whose keys have this prefix. Marks that are not selected are not reported. Also
 * OK if some marks could not be forgotten. */
enum outcome forget_prefix(
	const struct forget_options *options, const char *prefix, struct problem *ret_problem);

/* The parameters of gc. Like an uploader, gc takes over marks under a session of its own. So it
 * takes nothing from an uploader that may be running. */
struct collect_options {
	struct clearing clearing;
	struct session *session; /* made with reads_only if clearing.only_show */
	const char *source;      /* "host:gc", for the marks that are taken over */
	uint64_t
		keep_uploads_s; /* an upload is aborted if its mark has not changed for this time */
	uint64_t keep_marks_s;  /* a mark that has not changed for this time is forgotten;
				   UINT64_MAX: none is */
	atomic_bool *has_mark;  /* set if there is a mark below the prefix; NULL: not asked */
};

/* Aborts old uploads, forgets old marks and reports damaged ones, below a prefix. A mark claimed by
 * a session that may live is checked again at the end, until that session is over or a lease has
 * passed. Also OK if it failed for some marks, which was reported. */
enum outcome collect(
	const struct collect_options *options, const char *prefix, struct problem *ret_problem);

/* For forget.c and gc.c only: the current mark, as just read. */
struct subject {
	const struct clearing *clearing;
	const struct audit_conns *conns;
	struct mark_ref ref;
	struct mark mark;
	const char *suffix; /* as in struct mark_report */
};
/* Returns the headers for requests about the mark's object, with the key for SSE-C; NULL: none. */
const struct s3_headers *subject_headers(const struct subject *subject);
/* Reports the fate of the mark. */
void subject_report(const struct subject *subject, enum mark_fate fate, const char *why,
	const struct problem *problem);
/* Forgets the mark if it has not changed since it was read, and reports that. With only_show, it
 * only reports that the mark would be forgotten. Also OK if another uploader has changed the mark,
 * which is then reported as KEPT. If any other outcome is returned, nothing was reported. */
enum outcome subject_forget(const struct subject *subject, struct problem *ret_problem);
