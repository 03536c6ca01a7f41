/* What became of a request: the one enum every caller decides by. Only classify() (retry.h) makes
 * one from a reply. */
#pragma once
#include <stdbool.h>

enum outcome {
	OUTCOME_OK,      /* done, and the reply is whole */
	OUTCOME_REFUSED, /* a condition was not met (412, ConditionalCheckFailedException): maybe by
			    our own earlier try */
	OUTCOME_CONFLICT,    /* 409 ConditionalRequestConflict that outlived the retries: another
				write is under way; not applied */
	OUTCOME_ABSENT,      /* the object, item or bucket key is not there (404) */
	OUTCOME_NO_UPLOAD,   /* NoSuchUpload: completed, aborted or expired */
	OUTCOME_BAD_PART,    /* InvalidPart, InvalidPartOrder, EntityTooSmall on Complete: the part
				list is not what the server has */
	OUTCOME_UNSUPPORTED, /* 501, or a header or operation this server does not know */
	OUTCOME_BAD_DIGEST,  /* the server got other bytes than we announced */
	OUTCOME_DENIED,      /* 403: for this one thing, or for all: one answer does not tell */
	OUTCOME_SETTING, /* a setting of the object is refused (its storage class, KMS key, tags):
			    it may be this object's alone */
	OUTCOME_INVALID, /* the request can never succeed for this file (KeyTooLongError,
			    EntityTooLarge, …) */
	OUTCOME_SETUP,   /* nothing will succeed until someone fixes it: credentials, bucket, table,
			    endpoint, certificate, clock */
	OUTCOME_LOST,    /* no reply, or one that cannot be understood: it may have been applied */
	OUTCOME_TRANSIENT, /* a server error that outlived the retries; it may have been applied */
	OUTCOME_THROTTLED, /* throttling that outlived the retries; not applied by the last try, but
			      perhaps by one before: only call_limits.maybe_applied tells */
	OUTCOME_ABANDONED, /* we ended it: deadline, lease lost, or stop; it may have been applied
			    */
	OUTCOME_LOCAL, /* an error of this host: out of memory, file unreadable, file changed while
			  being sent */
};

/* A short caption for logs ("refused", "throttled", …). Static. */
const char *outcome_name(enum outcome o);
/* Whether the request may have been applied although it did not end OK. */
bool outcome_is_ambiguous(enum outcome o);
