#include "upload/body/proof.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_md5(const char *etag)
{
	return strlen(etag) == 32 && strspn(etag, "0123456789abcdefABCDEF") == 32;
}

/* A number of parts, or 0. */
static unsigned parts_in(const char *s)
{
	const size_t digits = strspn(s, "0123456789");
	const unsigned long n = digits && digits <= 5 && !s[digits] ? strtoul(s, NULL, 10) : 0;
	return n > 10000 ? 0 : (unsigned)n;
}

unsigned proof_etag_parts(const char *etag)
{
	return strspn(etag, "0123456789abcdefABCDEF") == 32 && etag[32] == '-' ? parts_in(etag + 33)
									       : 0;
}

/* Compares the MD5 that an etag is with ours. One that is opaque may be it, too. */
static enum proof by_md5(const struct sums *sums, const char *etag, bool is_opaque)
{
	if (!is_md5(etag) || !(sums->kinds & DIGEST_MD5))
		return PROOF_MISSING;
	char hex[33];
	hex_encode(sums->md5, sizeof sums->md5, hex);
	return strcasecmp(hex, etag) == 0 ? PROOF_YES : is_opaque ? PROOF_MISSING : PROOF_NO;
}

/* The bytes of a told checksum, and of how many parts' checksums it is (0: of the content). */
static bool read_told(const struct s3_sum *told, unsigned char ret[static CHECKSUM_BYTES_MAX],
	unsigned *ret_parts)
{
	const size_t n = strcspn(told->text, "-");
	unsigned parts = 0;
	if (told->text[n] && !(parts = parts_in(told->text + n + 1)))
		return false;
	*ret_parts = parts;
	return !checksum_from_base64(told->kind, told->text, n, ret);
}

bool proof_tells_whole(const struct s3_object *object)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned parts;
	return read_told(&object->sum, bytes, &parts) && !parts;
}

bool proof_etag_is_md5(const char *etag)
{
	return is_md5(etag) || proof_etag_parts(etag);
}

unsigned proof_needs(const struct s3_object *object, unsigned *ret_parts)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned kinds = 0, parts = 0;
	if (read_told(&object->sum, bytes, &parts))
		kinds = DIGEST_OF(object->sum.kind);
	if (!parts)
		parts = proof_etag_parts(object->etag);
	*ret_parts = parts;
	/* An opaque etag may be an MD5, too: where nothing else is told it is tried. */
	if (!kinds || (!object->etag_is_opaque && proof_etag_is_md5(object->etag)))
		kinds |= DIGEST_MD5;
	return kinds;
}

/* What two comparisons say together. */
static enum proof both(enum proof a, enum proof b)
{
	return a == PROOF_NO || b == PROOF_NO ? PROOF_NO : a == PROOF_MISSING ? b : a;
}

static enum proof by_sum(const struct sums *sums, const struct s3_sum *told)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	unsigned parts;
	if (!(sums->kinds & DIGEST_OF(told->kind)) || !read_told(told, bytes, &parts) || parts)
		return PROOF_MISSING;
	return memcmp(bytes, sums_bytes(sums, told->kind), checksum_kinds[told->kind].bytes) != 0
		       ? PROOF_NO
		       : PROOF_YES;
}

enum proof proof_whole(const struct sums *sums, const struct s3_object *object, bool size_known)
{
	if (size_known && object->size != sums->bytes)
		return PROOF_NO;
	return both(by_sum(sums, &object->sum), by_md5(sums, object->etag, object->etag_is_opaque));
}

enum proof proof_part(const struct sums *sums, const struct s3_part *part)
{
	if (part->size != sums->bytes)
		return PROOF_NO;
	return both(by_sum(sums, &part->sum), by_md5(sums, part->etag, part->etag_is_opaque));
}

/* "base64-N": the checksum of the parts' checksums. Some servers leave out the "-N". */
static enum proof by_composite(const struct sums *parts, size_t n, const struct s3_sum *told)
{
	unsigned char theirs[CHECKSUM_BYTES_MAX], ours[CHECKSUM_BYTES_MAX];
	unsigned told_parts;
	if (!read_told(told, theirs, &told_parts) || (told_parts && told_parts != n) ||
		sums_compose(parts, n, told->kind, ours))
		return PROOF_MISSING;
	if (memcmp(ours, theirs, checksum_kinds[told->kind].bytes) == 0)
		return PROOF_YES;
	return told_parts ? PROOF_NO : PROOF_MISSING; /* it may be that of the whole */
}

static enum proof by_composite_md5(
	const struct sums *parts, size_t n, const struct s3_object *object)
{
	unsigned char md5[CHECKSUM_BYTES_MAX];
	char hex[33];
	if (proof_etag_parts(object->etag) != n || sums_compose(parts, n, CHECKSUM_MD5, md5))
		return PROOF_MISSING;
	hex_encode(md5, 16, hex);
	if (strncasecmp(hex, object->etag, 32) == 0)
		return PROOF_YES;
	return object->etag_is_opaque ? PROOF_MISSING : PROOF_NO;
}

enum proof proof_parts(
	const struct sums *parts, size_t n, const struct s3_object *object, bool size_known)
{
	const struct sums whole = sums_combine(parts, n);
	if (size_known && object->size != whole.bytes)
		return PROOF_NO;
	enum proof proof = by_composite(parts, n, &object->sum);
	if (proof == PROOF_MISSING)
		proof = by_sum(&whole, &object->sum);
	return both(proof, by_composite_md5(parts, n, object));
}

enum proof proof_sent(const struct s3_object *object)
{
	const struct sums *sent = &object->meta.sums;
	if (sent->kinds) {
		const enum proof proof = by_sum(sent, &object->sum);
		return proof != PROOF_MISSING ? proof
					      : by_md5(sent, object->etag, object->etag_is_opaque);
	}
	const bool is_told =
		*object->sum.text || (!object->etag_is_opaque && proof_etag_is_md5(object->etag));
	return *object->meta.table && object->meta.part_bytes && is_told ? PROOF_YES
									 : PROOF_MISSING;
}
