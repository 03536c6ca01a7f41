/* Whether what S3 says of an object proves that it holds the bytes that were read. Pure. */
#pragma once
#include "base/checksum.h"
#include "s3/s3.h"

enum proof {
	PROOF_YES,     /* size, if known, and each checksum that both sides have agree */
	PROOF_NO,      /* something disagrees: it is other content */
	PROOF_MISSING, /* nothing there to compare with */
};

/* An object sent whole, against the sums of its content. `size_known`: the object's size was told
 * (by HEAD). */
enum proof proof_whole(const struct sums *sums, const struct s3_object *object, bool size_known);

/* An object sent in parts, against the sums of each part in order: combined where the whole one is
 * told, else the checksum of theirs, and its etag against their MD5s. */
enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, bool size_known);

/* Whether the object holds the bytes that s3once sent for it, by what its own metadata says of
 * them. Of an object in parts each part was compared before they became visible; so if the server
 * tells anything of its content, that is proven. */
enum proof proof_sent(const struct s3_object *object);

/* One part, against what UploadPart answered or ListParts shows. */
enum proof proof_part(const struct sums *sums, const struct s3_part *part);

/* The digests to compute to have everything to compare that is told: of the content, or of each of
 * *ret_parts parts (0: it was not sent in parts). */
unsigned proof_needs(const struct s3_object *object, unsigned *ret_parts);
/* Whether a checksum of the whole content is told, as far as its form says. */
bool proof_tells_whole(const struct s3_object *object);
/* Whether the etag has the form of an MD5, or of one of parts' MD5s. */
bool proof_etag_is_md5(const char *etag);
/* How many parts an etag of the form "md5-N" names; 0 for any other. */
unsigned proof_etag_parts(const char *etag);
