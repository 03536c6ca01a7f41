/* Finds and fetches manifests in a bucket, for `s3once manifest` and `verify --manifest`. It lists
 * them, finds the manifest of a run, and copies a manifest into a temporary file. If a public key
 * is given, it checks the signature of the manifest. src/manifest reads the content. */
#include "audit/manifest_fetch.h"
#include "audit/object_read.h"
#include "manifest/manifest_file.h"
#include "manifest/manifest_name.h"
#include "s3/object_stream.h"
#include <string.h>
#include <unistd.h>

typedef enum outcome manifest_visitor(void *arg, const char *key, struct problem *ret_problem);

/* Hands each manifest whose key begins with `prefix` and is greater than `after` to `each`. */
static enum outcome list_manifests(const struct manifest_place *place, const char *prefix,
	const char *after, manifest_visitor *each, void *arg, struct problem *ret_problem)
{
	struct object_stream *objects = object_stream_new(place->s3, prefix, after, &place->limits);
	const struct s3_listed *row = NULL;
	if (!objects)
		return outcome_no_memory(ret_problem);
	enum outcome o;
	do {
		o = object_stream_next(objects, &row, ret_problem);
		if (o != OUTCOME_OK)
			problem_prefix(ret_problem,
				o == OUTCOME_DENIED
					? "manifests are found by the bucket's listing, which is "
					  "refused; allow s3:ListBucket of the bucket"
					: "manifests are found by the bucket's listing");
		else if (row && manifest_is_key(row->key))
			o = each(arg, row->key, ret_problem);
	} while (o == OUTCOME_OK && row);
	object_stream_free(objects);
	return o;
}

enum outcome manifest_list(const struct manifest_place *place, const char *since,
	manifest_visitor *each, void *arg, struct problem *ret_problem)
{
	struct text folder = TEXT(2 * KEY_BYTES_MAX), after = TEXT(2 * KEY_BYTES_MAX);
	manifest_add_folder(&folder, place->prefix);
	/* "…/dt=DAY" is less than all keys of this day, and greater than those of earlier days. */
	text_addf(&after, "%sdt=%s", text_string(&folder), since ? since : "");
	const enum outcome o = list_manifests(place, text_string(&folder),
		since ? text_string(&after) : NULL, each, arg, ret_problem);
	text_clear(&folder);
	text_clear(&after);
	return o;
}

/* The run whose manifest is sought. */
struct sought {
	const char *run;
	struct text *key; /* key of its manifest; empty until it is found */
};

/* Takes the key of a manifest if it is the first manifest of the run. */
static enum outcome take_if_sought(void *arg, const char *key, struct problem *ret_problem)
{
	struct sought *sought = arg;
	/* manifest_is_key() has found the '/' and the suffix in the key. */
	const char *name = strrchr(key, '/') + 1;
	const size_t n = strlen(name) - strlen(MANIFEST_SUFFIX);
	if (strlen(sought->run) == n && strncmp(name, sought->run, n) == 0 && !sought->key->len)
		text_add(sought->key, key);
	return OUTCOME_OK;
}

enum outcome manifest_find(const struct manifest_place *place, const char *given,
	struct text *ret_key, struct problem *ret_problem)
{
	const char *key = given;
	const size_t n = strlen(place->bucket);
	/* Runs print the key of their manifest as s3://BUCKET/KEY. */
	if (strncmp(given, "s3://", 5) == 0 && strncmp(given + 5, place->bucket, n) == 0 &&
		given[5 + n] == '/')
		key = given + 5 + n + 1;
	struct text day = TEXT(2 * KEY_BYTES_MAX);
	struct sought sought = {.run = given, .key = ret_key};
	enum outcome o = OUTCOME_OK;
	/* A key that still begins with s3:// is that of another bucket. The name of a run begins
	 * with a day, so only the folder of this day is listed. */
	if (manifest_is_key(key) && strncmp(key, "s3://", 5) != 0)
		text_add(ret_key, key);
	else if (!strchr(given, '/') && manifest_add_day_folder(&day, place->prefix, given))
		o = list_manifests(
			place, text_string(&day), NULL, take_if_sought, &sought, ret_problem);
	if (o == OUTCOME_OK && !ret_key->len)
		o = outcome_error(ret_problem, OUTCOME_ABSENT,
			"there is no manifest of a run %s: name a run, such as "
			"20261122T031500Z-…, or the key of its manifest in this bucket; s3once "
			"manifest s3://BUCKET/PREFIX lists them",
			quote(given).text);
	text_clear(&day);
	return o;
}

/* Checks the signature of a manifest. *ret_is_wrong is set with ABSENT if the signature is missing,
 * and with LOCAL if it was not made of this manifest by this key. Any other outcome but OK means
 * that the signature could not be read. */
static enum outcome check_signature(const struct manifest_place *place,
	const struct signed_manifest *manifest, EVP_PKEY *public_key, bool *ret_is_wrong,
	struct problem *ret_problem)
{
	struct text key = TEXT(2 * KEY_BYTES_MAX);
	char unused_etag[S3_ETAG_MAX + 1];
	struct s3_object object = {0};
	struct http_reply reply = {0};
	text_addf(&key, "%s" MANIFEST_SIGNATURE_SUFFIX, manifest->key);
	const struct s3_target target = {.key = text_string(&key), .headers = place->headers};
	enum outcome o = s3_head_object(place->s3, &target, &place->limits, &object, ret_problem);
	/* s3_get_range() is not called for an empty object. */
	const bool has_right_size = object.size && object.size <= MANIFEST_SIGNATURE_MAX;
	if (o == OUTCOME_ABSENT) {
		problem_set(ret_problem, "it has no signature (%s)", quote(target.key).text);
		*ret_is_wrong = true;
	} else if (o == OUTCOME_OK && !has_right_size) {
		problem_set(ret_problem, "its signature has a wrong size");
		*ret_is_wrong = true;
	} else if (o == OUTCOME_OK) {
		o = s3_get_range(place->s3, &target, 0, (size_t)object.size, &place->limits, &reply,
			unused_etag, ret_problem);
		*ret_is_wrong = o == OUTCOME_OK &&
				!manifest_signature_check(public_key, manifest,
					text_string(&reply.body), reply.body.len, ret_problem);
	}
	http_reply_clear(&reply);
	text_clear(&key);
	return o == OUTCOME_OK && *ret_is_wrong ? OUTCOME_LOCAL : o;
}

enum outcome manifest_open(const struct manifest_place *place, const char *key,
	EVP_PKEY *public_key, int *ret_fd, bool *ret_is_wrong, struct problem *ret_problem)
{
	const struct s3_target target = {.key = key, .headers = place->headers};
	struct s3_object object;
	struct digest digest;
	struct sums sums;
	const struct object_reading reading = {.conn = place->s3,
		.target = &target,
		.object = &object,
		.limits = &place->limits,
		.digest = &digest,
		.fd = manifest_temporary_file(ret_problem)};
	bool is_replaced; /* unused: the problem has the sentence */
	*ret_is_wrong = false;
	if (reading.fd < 0)
		return OUTCOME_LOCAL;
	enum outcome o = s3_head_object(place->s3, &target, &place->limits, &object, ret_problem);
	if (o == OUTCOME_OK && digest_init(&digest, DIGEST_SHA256)) {
		o = outcome_no_memory(ret_problem);
	} else if (o == OUTCOME_OK) {
		o = object_read(&reading, &is_replaced, ret_problem);
		digest_finish(&digest, &sums);
		digest_clear(&digest);
	}
	if (o == OUTCOME_ABSENT)
		problem_set(ret_problem, "there is no such object");
	if (o == OUTCOME_OK && public_key) {
		const struct signed_manifest manifest = {place->bucket, key, &sums};
		o = check_signature(place, &manifest, public_key, ret_is_wrong, ret_problem);
	}
	if (o == OUTCOME_OK) {
		*ret_fd = reading.fd;
		return o;
	}
	close(reading.fd);
	problem_prefix(ret_problem, "the manifest %s cannot be %s", quote(key).text,
		*ret_is_wrong ? "trusted" : "read");
	return o;
}
