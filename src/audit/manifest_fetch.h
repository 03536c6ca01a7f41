/* Finds the manifests of runs in a bucket, and fetches one. */
#pragma once
#include "manifest/manifest_signature.h"
#include "s3/s3.h"

/* The place of the manifests. All pointers are borrowed. */
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
/* Finds a manifest by the user's argument: the name of a run, or the key of its manifest, which may
 * be written as s3://BUCKET/KEY. Adds the key to *ret_key. The existence of a given key is not
 * checked. ABSENT with a sentence: there is no manifest of a run with this name. */
enum outcome manifest_find(const struct manifest_place *place, const char *given,
	struct text *ret_key, struct problem *ret_problem);

/* Copies a manifest into a temporary file, whose descriptor the caller owns, and checks its
 * signature by the public key. If the key is NULL, no signature is needed. An outcome other than OK
 * has a sentence, and *ret_is_wrong says whether the signature is the reason. */
enum outcome manifest_open(const struct manifest_place *place, const char *key,
	EVP_PKEY *public_key, int *ret_fd, bool *ret_is_wrong, struct problem *ret_problem);
