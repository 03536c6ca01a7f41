/* What a bucket has: the objects below a prefix as one stream in byte order of their keys, which is
 * the listing page by page, the content of one object, range by range, and the manifests, which are
 * listed and read by these two. */
#pragma once
#include "manifest/manifest_signature.h"
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

/* The place of the manifests. All pointers are borrowed. */
struct manifest_place {
	struct s3_conn *s3;
	const struct s3_headers *headers; /* prepared, with a key of the caller's own; or NULL */
	const char *bucket, *prefix;      /* of the runs */
	struct call_limits limits;
};

/* Hands the key of each manifest of runs that began on this day ("2026-11-22") or later to `each`,
 * in the order of days and hosts. NULL: of all. What `each` returns other than OK ends it. */
enum outcome manifest_list(const struct manifest_place *place, const char *since,
	enum outcome (*each)(void *arg, const char *key, struct problem *ret_problem), void *arg,
	struct problem *ret_problem);
/* Adds the key of the manifest of a run, given by its name, as a key or as
 * s3://BUCKET/KEY. ABSENT with a sentence:
 * there is none. */
enum outcome manifest_find(const struct manifest_place *place, const char *given,
	struct text *ret_key, struct problem *ret_problem);

/* Copies a manifest into a temporary file, whose descriptor the caller owns, and checks its
 * signature by the public key. NULL: no signature is asked for. An outcome other than OK has a
 * sentence; *ret_is_wrong then says whether the signature is the reason. */
enum outcome manifest_open(const struct manifest_place *place, const char *key,
	EVP_PKEY *public_key, int *ret_fd, bool *ret_is_wrong, struct problem *ret_problem);
