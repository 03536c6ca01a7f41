/* What a bucket has: the objects below a prefix as one stream in byte order of their keys, which is
 * the listing page by page, and the content of one object, range by range. */
#pragma once
#include "s3/s3.h"

/* All but the limits are borrowed until object_stream_free. `after`: only keys above this one; NULL
 * or "": from the first. Memory: one page of 1,000 objects. NULL: out of memory. */
struct object_stream;
struct object_stream *object_stream_new(struct s3_conn *conn, const char *prefix, const char *after,
	const struct call_limits *limits);
void object_stream_free(struct object_stream *stream); /* NULL is fine */

/* OK sets *ret to the next object, or to NULL after the last one. It is borrowed until the next
 * call. UNSUPPORTED: the server's listing is not in byte order. */
enum outcome object_stream_next(
	struct object_stream *stream, const struct s3_listed **ret, struct problem *ret_problem);

/* Reads the content of an object as HEAD has shown it into a digest, and into a file if one is
 * given. LOCAL with *ret_is_replaced and a sentence: the object is another one by now. */
struct object_reading {
	struct s3_conn *conn;
	const struct s3_target *target;
	const struct s3_object *object;
	const struct call_limits *limits;
	struct digest *digest; /* which was begun */
	int fd;                /* of manifest_open_file(); -1: none */
};
enum outcome object_read(
	const struct object_reading *reading, bool *ret_is_replaced, struct problem *ret_problem);
