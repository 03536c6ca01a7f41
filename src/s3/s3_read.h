/* The S3 calls that read what is stored: the listing of a bucket, and bytes of an object. An
 * uploader does not need them. */
#pragma once
#include "s3/s3.h"

/* An object as a listing shows it. Borrowed during the call of `each`. */
struct s3_listed {
	const char *key;
	uint64_t size;
	char etag[S3_ETAG_MAX + 1]; /* without quotes; "" if the listing has none */
	int64_t modified_s; /* when it was stored; negative if the listing does not say it */
};
struct s3_listing {
	const char *prefix; /* "" for all */
	const char *after;  /* only keys above this one; "": from the first */
	int (*each)(void *arg, const struct s3_listed *object);
	void *arg;
};
/* One page of ListObjectsV2, which is at most 1,000 objects in the byte order of their keys.
 * *ret_more says whether there are more after the last one. Any value of `each` but 0 ends it with
 * OUTCOME_LOCAL. */
enum outcome s3_list_objects(struct s3_conn *conn, const struct s3_listing *listing,
	const struct call_limits *limits, bool *ret_more, struct problem *ret_problem);

/* GetObject of n bytes from an offset on. n is greater than 0, and the object has these bytes. If
 * the outcome is OK, ret->body has them, and ret_etag is the object's. *ret is zeroed, or is that
 * of an earlier call, whose memory is used again. The caller clears it. LOST also if other bytes
 * came than were asked for. */
enum outcome s3_get_range(struct s3_conn *conn, const struct s3_target *target, uint64_t offset,
	size_t n, const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem);
