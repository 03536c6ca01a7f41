/* Which bucket the marks of a bucket's name are about: one row beside them (docs/protocol.md, "The
 * bucket is the one that the marks know"). */
#pragma once
#include "marks/mark.h"
#include "s3/s3.h"
#include "s3/s3_identity.h"

#define BUCKET_KEY_MAX 1024

/* Conditions that a server was seen to honour. */
enum bucket_condition {
	BUCKET_PUT_CONDITION, /* If-None-Match on PutObject */
	BUCKET_COMPLETE_CONDITION,
	BUCKET_IF_MATCH,
	BUCKET_CONDITIONS
};

/* Zero is a row that is not there. */
struct bucket_row {
	char version[ID_CHARS + 1];   /* random, changes with each write; "": no row */
	struct s3_identity told;      /* as the service told it when it was last compared */
	char object_id[ID_CHARS + 1]; /* of the object that --bucket-id-object names, or "" */
	bool object_is_made;          /* it was seen in the bucket; else it may be missing yet */
	unsigned generation;          /* of the marks: 0, and one more for each other bucket */
	char last_key[BUCKET_KEY_MAX + 1]; /* an object that a run proved to be there; "": none */
	char last_etag[S3_ETAG_MAX + 1];
	/* Marks that were last changed from then until then (store time; 0: until now) may be about
	 * another bucket, since nothing showed which one it was; 0, 0: there are none. */
	int64_t doubt_from_s, doubt_to_s;
	unsigned honours;                       /* 1 << each of enum bucket_condition */
	char honours_server[S3_SERVER_MAX + 1]; /* how the server named itself when that was seen */
	int64_t honours_at_s;                   /* store time of that */
	int64_t at_s;                           /* store time of the last change */
};

/* Reads the row consistently. OK also if the row does not exist; *ret is zero then. SETUP: the row
 * is damaged. */
enum outcome bucket_row_read(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct bucket_row *ret, struct problem *ret_problem);
/* Replaces the row if it is still exactly the one with this version ("": none). OK: row->version
 * and at_s are those it has now. REFUSED: another uploader wrote first; *ret_seen is what it is
 * now. */
enum outcome bucket_row_write(struct store_conn *conn, const struct mark_space *space,
	struct bucket_row *row, const struct call_limits *limits, struct bucket_row *ret_seen,
	struct problem *ret_problem);
/* Whether there is any mark of this bucket and generation. */
enum outcome bucket_has_marks(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, bool *ret, struct problem *ret_problem);
