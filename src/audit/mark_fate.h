/* What `forget` and `gc` did about a mark, for the caller to report. */
#pragma once
#include "marks/mark.h"

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

/* Borrowed during the call. */
struct mark_told {
	enum mark_fate fate;
	const char *key;               /* of the mark */
	const char *object;            /* the key of its object: mostly the same, else with the
					  suffix of compression behind it */
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
