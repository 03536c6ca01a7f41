/* Reads what a bucket has: its objects below a prefix, as one stream in the byte order of their
 * keys, and the content of one object, range by range. Manifests are found and fetched by means of
 * both. */
#pragma once
#include "manifest/manifest_signature.h"
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

/* Reads the content of an object whose HEAD was sent before. All bytes are added to the digest and,
 * if a file is given, written to it. LOCAL with *ret_is_replaced and a sentence: the etag is no
 * longer the one that HEAD has shown, so the object was replaced meanwhile. */
struct object_reading {
	struct s3_conn *conn;
	const struct s3_target *target;
	const struct s3_object *object; /* as HEAD has shown it */
	const struct call_limits *limits;
	struct digest *digest; /* initialized by the caller */
	int fd;                /* from manifest_open_file(); -1: no file is written */
};
enum outcome object_read(
	const struct object_reading *reading, bool *ret_is_replaced, struct problem *ret_problem);

/* Where the manifests are. All pointers are borrowed. */
struct manifest_place {
	struct s3_conn *s3;
	const struct s3_headers *headers; /* prepared, with the key for SSE-C; NULL: none */
	const char *bucket, *prefix;      /* the target of the runs that wrote them */
	struct call_limits limits;
};

/* Hands the key of each manifest to `each`, in the order of days and hosts. Only the manifests of
 * runs that began on the day `since` ("2026-11-22") or later are listed; NULL: all are. An outcome
 * of `each` other than OK ends the listing. */
enum outcome manifest_list(const struct manifest_place *place, const char *since,
	enum outcome (*each)(void *arg, const char *key, struct problem *ret_problem), void *arg,
	struct problem *ret_problem);
/* Finds a manifest by what a user has given: the name of a run, or the key of its manifest, which
 * may be written as s3://BUCKET/KEY. Adds the key to *ret_key. It is not checked that a given key
 * is there. ABSENT with a sentence: there is no manifest of a run with this name. */
enum outcome manifest_find(const struct manifest_place *place, const char *given,
	struct text *ret_key, struct problem *ret_problem);

/* Copies a manifest into a temporary file, whose descriptor the caller owns, and checks its
 * signature by the public key. If the key is NULL, no signature is needed. An outcome other than OK
 * has a sentence, and *ret_is_wrong says whether the signature is the reason. */
enum outcome manifest_open(const struct manifest_place *place, const char *key,
	EVP_PKEY *public_key, int *ret_fd, bool *ret_is_wrong, struct problem *ret_problem);
