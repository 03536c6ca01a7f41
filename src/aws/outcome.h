/* The outcome of a request, by which all callers decide. Only classify() (retry.h) derives it from
 * a reply. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

enum outcome {
	OUTCOME_OK, /* done, and the reply is whole */
	/* A condition was not met (412, ConditionalCheckFailedException), perhaps because of our
	 * own earlier try. */
	OUTCOME_REFUSED,
	/* Every try was answered with 409 ConditionalRequestConflict: another write is under way.
	 * The request was not applied. */
	OUTCOME_CONFLICT,
	OUTCOME_ABSENT,    /* the object, item or bucket does not exist (404) */
	OUTCOME_NO_UPLOAD, /* NoSuchUpload: completed, aborted or expired */
	/* InvalidPart, InvalidPartOrder or EntityTooSmall on Complete: the list of parts differs
	 * from that of the server. */
	OUTCOME_BAD_PART,
	/* 501, or a header or an operation that this server does not know. */
	OUTCOME_UNSUPPORTED,
	/* The server got other bytes than we announced. */
	OUTCOME_BAD_DIGEST,
	/* 403. One answer does not show whether this one request is denied or all are. */
	OUTCOME_DENIED,
	/* A setting of the object is refused, such as its storage class, KMS key or tags. Other
	 * objects may have other settings. */
	OUTCOME_SETTING,
	/* The request can never succeed for this file (KeyTooLongError, EntityTooLarge, …). */
	OUTCOME_INVALID,
	/* Nothing will succeed until the user repairs the credentials, the bucket, the table, the
	 * endpoint, the certificate or the clock. */
	OUTCOME_SETUP,
	/* The reply is missing or cannot be understood. The request may have been applied. */
	OUTCOME_LOST,
	/* Every try was answered with a server error. The request may have been applied. */
	OUTCOME_TRANSIENT,
	/* The last try was throttled, and so not applied. An earlier try may have been applied,
	 * which only call_limits.maybe_applied shows. */
	OUTCOME_THROTTLED,
	/* We ended the call because of a deadline, a lost lease or a stop. The request may have
	 * been applied. */
	OUTCOME_ABANDONED,
	/* An error of this host: out of memory, or a file that cannot be read or has changed while
	 * it was sent. */
	OUTCOME_LOCAL,
};

/* A short caption for logs ("refused", "throttled", …). Static. */
const char *outcome_name(enum outcome o);
/* Sets the sentence of the problem, as problem_error() does, and evaluates to the outcome. */
#define outcome_error(p, o, ...) ((enum outcome)problem_error(p, (int)(o), __VA_ARGS__))
/* Sets the sentence "out of memory" and returns OUTCOME_LOCAL. */
enum outcome outcome_no_memory(struct problem *ret_problem);
/* Whether the request may have been applied although it did not end OK. */
bool outcome_is_ambiguous(enum outcome o);
