#include "upload/proof.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_md5(const char *etag)
{
	return strlen(etag) == 32 && strspn(etag, "0123456789abcdefABCDEF") == 32;
}

unsigned proof_etag_parts(const char *etag)
{
	const char *dash = strchr(etag, '-');
	if (!dash || dash - etag != 32 || strspn(etag, "0123456789abcdefABCDEF") != 32)
		return 0;
	char *end;
	unsigned long n = strtoul(dash + 1, &end, 10);
	return *end || end == dash + 1 || n > 10000 ? 0 : (unsigned)n;
}

/* Compares the MD5 that an etag is with ours. One that is opaque may be it, too. */
static enum proof by_md5(const struct sums *sums, const char *etag, bool is_opaque)
{
	if (!is_md5(etag) || !(sums->kinds & DIGEST_MD5))
		return PROOF_MISSING;
	char hex[33];
	hex_encode(sums->md5, sizeof sums->md5, hex);
	return !strcasecmp(hex, etag) ? PROOF_YES : is_opaque ? PROOF_MISSING : PROOF_NO;
}

static enum proof by_crc(uint32_t crc, const char *told)
{
	uint32_t theirs;
	if (crc32c_from_base64(told, &theirs))
		return PROOF_MISSING;
	return theirs == crc ? PROOF_YES : PROOF_NO;
}

enum proof proof_whole(const struct sums *sums, const struct s3_object *object, bool size_known)
{
	if (size_known && object->size != sums->bytes)
		return PROOF_NO;
	enum proof proof = by_crc(sums->crc32c, object->crc32c);
	return proof == PROOF_MISSING ? by_md5(sums, object->etag, object->etag_is_opaque) : proof;
}

enum proof proof_part(const struct sums *sums, const struct s3_part *part)
{
	if (part->size != sums->bytes)
		return PROOF_NO;
	enum proof proof = by_crc(sums->crc32c, part->crc32c);
	return proof == PROOF_MISSING ? by_md5(sums, part->etag, part->etag_is_opaque) : proof;
}

uint32_t proof_combined_crc(const struct sums *parts, size_t n)
{
	uint32_t crc = 0;
	for (size_t i = 0; i < n; i++)
		crc = crc32c_combine(crc, parts[i].crc32c, parts[i].bytes);
	return crc;
}

/* "base64-N": the CRC of the parts' CRCs, as servers tell it that keep no full-object checksum. */
static enum proof by_composite_crc(const struct sums *parts, size_t n, const char *told)
{
	const char *dash = strchr(told, '-');
	if (!dash || dash - told != CRC32C_BASE64_CHARS || strtoul(dash + 1, NULL, 10) != n)
		return PROOF_MISSING;
	uint32_t crc = 0;
	for (size_t i = 0; i < n; i++) {
		const uint32_t part = parts[i].crc32c;
		const unsigned char bytes[] = {(unsigned char)(part >> 24),
			(unsigned char)(part >> 16), (unsigned char)(part >> 8),
			(unsigned char)part};
		crc = crc32c(crc, bytes, sizeof bytes);
	}
	char ours[CRC32C_BASE64_CHARS + 1];
	crc32c_to_base64(crc, ours);
	return strncmp(ours, told, CRC32C_BASE64_CHARS) ? PROOF_NO : PROOF_YES;
}

static enum proof by_composite_md5(
	const struct sums *parts, size_t n, const struct s3_object *object)
{
	const char *etag = object->etag;
	if (proof_etag_parts(etag) != n)
		return PROOF_MISSING;
	struct digest digest;
	struct sums sums;
	if (digest_init(&digest, DIGEST_MD5))
		return PROOF_MISSING;
	bool all = true;
	for (size_t i = 0; i < n; i++) {
		all = all && (parts[i].kinds & DIGEST_MD5);
		digest_update(&digest, parts[i].md5, sizeof parts[i].md5);
	}
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	char hex[33];
	hex_encode(sums.md5, sizeof sums.md5, hex);
	if (!all)
		return PROOF_MISSING;
	if (strncasecmp(hex, etag, 32) == 0)
		return PROOF_YES;
	return object->etag_is_opaque ? PROOF_MISSING : PROOF_NO;
}

enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, bool size_known)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += parts[i].bytes;
	if (size_known && object->size != bytes)
		return PROOF_NO;
	enum proof proof = by_crc(proof_combined_crc(parts, n), object->crc32c);
	if (proof == PROOF_MISSING)
		proof = by_composite_crc(parts, n, object->crc32c);
	if (proof == PROOF_MISSING)
		proof = by_composite_md5(parts, n, object);
	return proof;
}
