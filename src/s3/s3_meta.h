/* The values of our metadata: times as rclone writes them, in seconds with a fraction, the hash of
 * the bucket and key that an object is written under, and the sums of the bytes that were sent.
 * These functions do no I/O. */
#pragma once
#include "base/checksum.h"
#include <stddef.h>
#include <stdint.h>

#define S3_MTIME_CHARS 24
/* "1637000000.123456789", without trailing zeros. */
void s3_format_mtime(int64_t mtime_ns, char ret[static S3_MTIME_CHARS]);
/* The reverse. Digits beyond nanoseconds are ignored. 0 for what is not such a time. */
int64_t s3_parse_mtime(const char *s);

#define S3_KEY_HASH_CHARS 20
/* Hex digits of the SHA-256 of "BUCKET/KEY", computed with this digest, which is restarted. 0 or
 * -ENOMEM. */
int s3_key_hash(struct digest *digest, const char *bucket, const char *key,
	char ret[static S3_KEY_HASH_CHARS + 1]);

#define S3_SUMS_CHARS 96
/* "crc32c:BASE64 md5:BASE64": this checksum and the MD5, as far as they were computed. */
void s3_format_sums(
	const struct sums *sums, enum checksum checksum, char ret[static S3_SUMS_CHARS]);
/* The reverse, without the number of bytes. What is not understood is left out of ret->kinds. */
void s3_parse_sums(const char *s, struct sums *ret);
