/* Whether an object has the settings that it was stored with: some servers take settings that they
 * do not know, and keep nothing of them. */
#pragma once
#include "s3/s3.h"

/* A set of these is a mask of bits S3_KEPT_BIT(). */
enum s3_kept { S3_KEPT_CLASS, S3_KEPT_METADATA, S3_KEPT_TAGS, S3_KEPT_KINDS };
#define S3_KEPT_BIT(kind) (1U << (kind))

/* What each is called among the settings of an object. */
extern const char *const s3_kept_settings[S3_KEPT_KINDS];

/* Which of them the headers ask for. The class STANDARD is none, since replies do not show it.
 * NULL headers: none. */
unsigned s3_kept_asked(const struct s3_headers *headers);

struct s3_kept_look {
	unsigned lacks;                    /* asked for, and the object does not have it */
	unsigned unknown;                  /* asked for, and could not be looked at */
	char storage_class[S3_ID_MAX + 1]; /* the object's, if HEAD was answered */
};
/* Looks at those of `asked` (a set) by HEAD and, where that does not tell the number of tags, by
 * GetObjectTagging. *ret is always set. OK if nothing is unknown, else why not. */
enum outcome s3_look_at_kept(struct s3_conn *conn, const struct s3_target *target, unsigned asked,
	const struct call_limits *limits, struct s3_kept_look *ret, struct problem *ret_problem);

/* <Tagging>: how many tags it lists. 0, -EBADMSG for another document, or -ENOMEM. Pure. */
int s3_reply_tags(const char *xml, size_t n, size_t *ret);
