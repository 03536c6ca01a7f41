/* Computes the checksums that S3 knows, over bytes as they arrive, and those of a whole from those
 * of its parts. The CRCs are computed in crc.c, the digests by OpenSSL. */
#include "base/checksum.h"
#include "base/text.h"
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

uint64_t fnv_add(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ byte[i]) * 1099511628211ULL; /* the prime of FNV for 64 bits */
	return hash;
}

/* KIND makes a row of the table from the name of the field in struct sums. KEPT makes the row of a
 * kind that S3 keeps, and takes the kind's name in capitals as well. */
#define KIND(small)                                                                                \
	.name = #small, .bytes = sizeof((struct sums){0}.small),                                   \
	.offset = offsetof(struct sums, small)
#define KEPT(kind, small)                                                                          \
	KIND(small), .s3_name = #kind, .header = "x-amz-checksum-" #small,                         \
		     .element = "Checksum" #kind

const struct checksum_kind checksum_kinds[CHECKSUMS] = {
	[CHECKSUM_CRC32C] = {KEPT(CRC32C, crc32c), .combines = true},
	[CHECKSUM_CRC32] = {KEPT(CRC32, crc32), .combines = true},
	[CHECKSUM_CRC64NVME] = {KEPT(CRC64NVME, crc64nvme), .combines = true},
	[CHECKSUM_SHA1] = {KEPT(SHA1, sha1)},
	[CHECKSUM_SHA256] = {KEPT(SHA256, sha256)},
	[CHECKSUM_MD5] = {KIND(md5)},
};

enum checksum checksum_default(void)
{
#ifdef HAVE_ISAL
	return CHECKSUM_CRC32C;
#else
	return CHECKSUM_CRC32;
#endif
}

enum checksum checksum_named(const char *name, size_t n)
{
	enum checksum kind = 0;
	/* A name matches if its first n characters do, and if it ends there. */
	while (kind < CHECKSUMS && (strncasecmp(checksum_kinds[kind].name, name, n) != 0 ||
					   checksum_kinds[kind].name[n]))
		kind++;
	return kind;
}

const unsigned char *sums_bytes(const struct sums *sums, enum checksum kind)
{
	return (const unsigned char *)sums + checksum_kinds[kind].offset;
}

bool sums_equal(const struct sums *a, const struct sums *b, enum checksum kind)
{
	return memcmp(sums_bytes(a, kind), sums_bytes(b, kind), checksum_kinds[kind].bytes) == 0;
}

static unsigned char *sum_at(struct sums *sums, enum checksum kind)
{
	return (unsigned char *)sums + checksum_kinds[kind].offset;
}

void sums_set(struct sums *sums, enum checksum kind, const unsigned char *bytes)
{
	memcpy(sum_at(sums, kind), bytes, checksum_kinds[kind].bytes);
	sums->kinds |= DIGEST_OF(kind);
}

/* A CRC as a number: its bytes in struct sums are big endian. */
static uint64_t get_crc(const struct sums *sums, enum checksum kind)
{
	uint64_t crc = 0;
	for (size_t i = 0; i < checksum_kinds[kind].bytes; i++)
		crc = crc << 8 | sums_bytes(sums, kind)[i];
	return crc;
}

static void set_crc(struct sums *sums, enum checksum kind, uint64_t crc)
{
	for (size_t i = checksum_kinds[kind].bytes; i--; crc >>= 8)
		sum_at(sums, kind)[i] = (unsigned char)crc;
}

struct sums sums_combine(const struct sums *parts, size_t n)
{
	struct sums whole = {.kinds = (1U << CHECKSUM_CRCS) - 1}; /* all CRCs */
	for (size_t i = 0; i < n; i++) {
		whole.kinds &= parts[i].kinds;
		whole.bytes += parts[i].bytes;
	}
	/* A kind that is missing in some part was removed from whole.kinds, and stays 0. */
	for (enum checksum kind = 0; kind < CHECKSUM_CRCS; kind++) {
		uint64_t crc = 0;
		for (size_t i = 0; i < n && (whole.kinds & DIGEST_OF(kind)); i++)
			crc = crc_combine(kind, crc, get_crc(&parts[i], kind), parts[i].bytes);
		set_crc(&whole, kind, crc);
	}
	return whole;
}

int sums_compose(const struct sums *parts, size_t n, enum checksum kind,
	unsigned char ret[static CHECKSUM_BYTES_MAX])
{
	struct digest digest;
	struct sums sums;
	int error = digest_init(&digest, DIGEST_OF(kind));
	for (size_t i = 0; i < n && !error; i++)
		if (parts[i].kinds & DIGEST_OF(kind))
			digest_update(
				&digest, sums_bytes(&parts[i], kind), checksum_kinds[kind].bytes);
		else
			error = -ENOENT;
	if (!error) {
		digest_finish(&digest, &sums);
		memcpy(ret, sums_bytes(&sums, kind), checksum_kinds[kind].bytes);
	}
	digest_clear(&digest); /* does nothing after an error of digest_init() */
	return error;
}

void checksum_to_base64(
	enum checksum kind, const unsigned char *bytes, char ret[static CHECKSUM_BASE64_MAX + 1])
{
	base64_encode(bytes, checksum_kinds[kind].bytes, ret);
}

int checksum_from_base64(
	enum checksum kind, const char *s, size_t n, unsigned char ret[static CHECKSUM_BYTES_MAX])
{
	char copy[CHECKSUM_BASE64_MAX + 1];
	unsigned char bytes[CHECKSUM_BASE64_MAX / 4 * 3];
	if (n > CHECKSUM_BASE64_MAX)
		return -EINVAL;
	memcpy(copy, s, n);
	copy[n] = '\0';
	if (base64_decode(copy, bytes) != (int)checksum_kinds[kind].bytes)
		return -EINVAL;
	memcpy(ret, bytes, checksum_kinds[kind].bytes);
	return 0;
}

/* Starts *context for this kind, and creates the context if there is none yet. Returns 0, -ENOMEM
 * or -ENOTSUP. After an error, too, *context is freed by digest_clear(). */
static int start_hash(void **context, enum checksum kind)
{
	/* An existing context was made for this kind. If no algorithm is given, OpenSSL uses that
	 * of the context, and need not look it up again. */
	if (*context)
		return EVP_DigestInit_ex(*context, NULL, NULL) ? 0 : -ENOTSUP;
	*context = EVP_MD_CTX_new();
	if (!*context)
		return -ENOMEM;
	/* "-fips" gets MD5 even where FIPS mode hides it. That is right, since MD5 is not used for
	 * security here. */
	EVP_MD *md5 = kind == CHECKSUM_MD5 ? EVP_MD_fetch(NULL, "MD5", "-fips") : NULL;
	const EVP_MD *hash = kind == CHECKSUM_MD5    ? md5
			     : kind == CHECKSUM_SHA1 ? EVP_sha1()
						     : EVP_sha256();
	bool is_started = hash && EVP_DigestInit_ex(*context, hash, NULL);
	/* The context keeps a reference of its own. EVP_sha1() and EVP_sha256() are static. */
	EVP_MD_free(md5);
	return is_started ? 0 : -ENOTSUP;
}

int digest_init(struct digest *d, unsigned kinds)
{
	*d = (struct digest){0};
	int error = digest_restart(d, kinds);
	if (error)
		digest_clear(d);
	return error;
}

int digest_restart(struct digest *d, unsigned kinds)
{
	int error = 0;
	d->sums = (struct sums){.kinds = kinds};
	memset(d->crc, 0, sizeof d->crc);
	for (enum checksum kind = CHECKSUM_CRCS; !error && kind < CHECKSUMS; kind++)
		if (kinds & DIGEST_OF(kind))
			error = start_hash(&d->hash[kind - CHECKSUM_CRCS], kind);
	return error;
}

/* A hash that was started does not fail later, so the results of OpenSSL are ignored here and in
 * digest_finish(). */
void digest_update(struct digest *d, const void *bytes, size_t n)
{
	d->sums.bytes += n;
	for (enum checksum kind = 0; kind < CHECKSUM_CRCS; kind++)
		if (d->sums.kinds & DIGEST_OF(kind))
			d->crc[kind] = crc_add(kind, d->crc[kind], bytes, n);
	for (enum checksum kind = CHECKSUM_CRCS; kind < CHECKSUMS; kind++)
		if (d->sums.kinds & DIGEST_OF(kind))
			EVP_DigestUpdate(d->hash[kind - CHECKSUM_CRCS], bytes, n);
}

void digest_finish(struct digest *d, struct sums *ret_sums)
{
	for (enum checksum kind = 0; kind < CHECKSUMS; kind++) {
		if (!(d->sums.kinds & DIGEST_OF(kind)))
			continue;
		if (kind < CHECKSUM_CRCS)
			set_crc(&d->sums, kind, d->crc[kind]);
		else
			EVP_DigestFinal_ex(
				d->hash[kind - CHECKSUM_CRCS], sum_at(&d->sums, kind), NULL);
	}
	*ret_sums = d->sums;
}

void digest_clear(struct digest *d)
{
	for (size_t i = 0; i < CHECKSUMS - CHECKSUM_CRCS; i++)
		EVP_MD_CTX_free(d->hash[i]);
	*d = (struct digest){0};
}

int digest_bytes(unsigned kinds, const void *bytes, size_t n, struct sums *ret_sums)
{
	struct digest digest;
	const int error = digest_init(&digest, kinds);
	if (!error) {
		digest_update(&digest, bytes, n);
		digest_finish(&digest, ret_sums);
	}
	digest_clear(&digest);
	return error;
}
