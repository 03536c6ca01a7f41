/* Whether what S3 says of an object proves that it holds the bytes that were read. Pure. */
#pragma once
#include "aws/s3.h"
#include "base/checksum.h"

enum proof {
	PROOF_YES,     /* size, if known, and a checksum agree */
	PROOF_NO,      /* something disagrees: it is other content */
	PROOF_MISSING, /* nothing there to compare with */
};

/* An object sent whole, against the sums of its content. `size_known`: the object's size was told
 * (by HEAD). */
enum proof proof_whole(const struct sums *sums, const struct s3_object *object, bool size_known);

/* An object sent in parts, against the sums of each part in order. The whole CRC is combined from
 * them; MD5 is used if all parts have it. */
enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, bool size_known);

/* One part, against what UploadPart answered or ListParts shows. */
enum proof proof_part(const struct sums *sums, const struct s3_part *part);

/* The CRC-32C of all parts in a row. */
uint32_t proof_combined_crc(const struct sums *parts, size_t n);
/* How many parts an etag of the form "md5-N" names; 0 for any other. */
unsigned proof_etag_parts(const char *etag);
