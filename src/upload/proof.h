/* Whether what S3 says of an object proves that it holds the bytes that were read. Pure. */
#pragma once
#include "base/checksum.h"
#include "s3/s3.h"

enum proof {
	PROOF_YES,     /* size, if known, and a checksum agree */
	PROOF_NO,      /* something disagrees: it is other content */
	PROOF_MISSING, /* nothing there to compare with */
};

/* An object sent whole, against the sums of its content. `size_known`: the object's size was told
 * (by HEAD). */
enum proof proof_whole(const struct sums *sums, const struct s3_object *object, bool size_known);

/* An object sent in parts, against the sums of each part in order: combined where the whole one is
 * told, else the checksum of theirs. */
enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, bool size_known);

/* One part, against what UploadPart answered or ListParts shows. */
enum proof proof_part(const struct sums *sums, const struct s3_part *part);

/* The digest to compute to have something to compare with what is told: of the content, or of each
 * of *ret_parts parts. */
unsigned proof_needs(const struct s3_object *object, unsigned *ret_parts);
/* Whether a checksum of the whole content is told. */
bool proof_tells_whole(const struct s3_object *object);
/* How many parts an etag of the form "md5-N" names; 0 for any other. */
unsigned proof_etag_parts(const char *etag);
