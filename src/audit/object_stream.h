/* The objects below a prefix as one stream in byte order of their keys: the bucket's listing, page
 * by page. */
#pragma once
#include "s3/s3.h"

struct object_row {
	const char *key; /* borrowed until the next call */
	uint64_t size;
	const char *etag;   /* likewise; without quotes, "" if it is not told */
	int64_t modified_s; /* when it was stored; negative if that is not told */
};

/* conn and prefix are borrowed until object_stream_free. `after`: only keys above this one; NULL or
 * "": from the first. Memory: one page of 1,000 objects. 0 or -ENOMEM. */
struct object_stream;
int object_stream_new(struct s3_conn *conn, const char *prefix, const char *after,
	const struct call_limits *limits, struct object_stream **ret);
void object_stream_free(struct object_stream *stream); /* NULL is fine */

/* OK sets *ret to the next object, or to NULL after the last one. UNSUPPORTED: the server's listing
 * is not in byte order. */
enum outcome object_stream_next(
	struct object_stream *stream, const struct object_row **ret, struct problem *ret_problem);
