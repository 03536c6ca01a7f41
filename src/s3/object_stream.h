/* The objects of a bucket as one stream in the byte order of their keys. verify and the manifests
 * read it to its end. A run that searches for the objects of its files skips the keys in
 * between. */
#pragma once
#include "s3/s3.h"

/* The objects whose keys begin with `prefix` and are greater than `after`, from the bucket's
 * listing. If `after` is NULL or "", the stream begins with the first object. All but the
 * limits are borrowed until object_stream_free(). Memory: one page of 1,000 objects. NULL: out of
 * memory. */
struct object_stream;
struct object_stream *object_stream_new(struct s3_conn *conn, const char *prefix, const char *after,
	const struct call_limits *limits);
void object_stream_free(struct object_stream *stream); /* NULL is fine */

/* OK sets *ret to the next object, or to NULL after the last one. The object is borrowed until the
 * next call. UNSUPPORTED: the server's listing is not in byte order. */
enum outcome object_stream_next(
	struct object_stream *stream, const struct s3_listed **ret, struct problem *ret_problem);
/* Whether the next object_stream_next() sends a request. */
bool object_stream_needs_page(const struct object_stream *stream);
