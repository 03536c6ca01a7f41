/* Lists and reads the manifests of a bucket. */
#pragma once
#include "manifest/manifest_signature.h"
#include "s3/s3.h"

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
