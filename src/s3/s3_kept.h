/* Whether an object is there, and has the settings that it was stored with. Some servers accept
 * settings that they do not know, and keep nothing of them. */
#pragma once
#include "s3/s3.h"

/* The settings that a HEAD shows. A set of these is a mask of bits S3_KEPT_BIT(). */
enum s3_kept {
	S3_KEPT_CLASS,
	S3_KEPT_METADATA,
	S3_KEPT_TAGS,
	S3_KEPT_TYPE,
	S3_KEPT_ENCODING,
	S3_KEPT_LANGUAGE,
	S3_KEPT_DISPOSITION,
	S3_KEPT_CACHE_CONTROL,
	S3_KEPT_EXPIRES,
	S3_KEPT_REDIRECT,
	S3_KEPT_LOCK_MODE,
	S3_KEPT_LOCK_UNTIL,
	S3_KEPT_LOCK_HOLD,
	S3_KEPT_KINDS
};
#define S3_KEPT_BIT(kind) (1U << (kind))

/* The name of each among the settings of an object. */
const char *s3_kept_setting(enum s3_kept kind);

/* Which of them the headers ask for. The class STANDARD does not count, since replies do not show
 * it. NULL headers: none. */
unsigned s3_kept_asked(const struct s3_headers *headers);

struct s3_kept_look {
	enum outcome head;                 /* of the HEAD: ABSENT if the object is not there */
	unsigned lacks;                    /* what was asked for and the object does not have */
	unsigned unknown;                  /* what was asked for and could not be looked at */
	char storage_class[S3_ID_MAX + 1]; /* the object's, if HEAD was answered */
};
/* Looks at those of the set `asked`, which may be empty, by HEAD, and where that does not show the
 * number of tags by GetObjectTagging. *ret is always set. OK if nothing is unknown; otherwise the
 * outcome says why. */
enum outcome s3_look_at_kept(struct s3_conn *conn, const struct s3_target *target, unsigned asked,
	const struct call_limits *limits, struct s3_kept_look *ret, struct problem *ret_problem);
