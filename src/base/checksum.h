/* Checksums of content: one table of the kinds that S3 knows, and their computation, several of
 * them in one reading. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of checksums: first the CRCs, then the digests. Of several checksums of an object, the
 * kind that comes first here is preferred. */
enum checksum {
	CHECKSUM_CRC32C,    /* Castagnoli; RFC 3720 */
	CHECKSUM_CRC32,     /* that of zip, PNG and Ethernet; RFC 1952 */
	CHECKSUM_CRC64NVME, /* NVM Express NVM Command Set Specification, "64b CRC" */
	CHECKSUM_CRCS,
	CHECKSUM_SHA1 = CHECKSUM_CRCS,
	CHECKSUM_SHA256,
	CHECKSUM_MD5,
	CHECKSUMS
};
#define CHECKSUM_BYTES_MAX 32
#define SHA256_OF_NOTHING  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* Source: Amazon S3 User Guide, "Checking object integrity". */
struct checksum_kind {
	const char *name;    /* "crc32c": in the option and in marks */
	const char *s3_name; /* "CRC32C": x-amz-checksum-algorithm; NULL for MD5 */
	const char *header;  /* "x-amz-checksum-crc32c"; NULL for MD5 */
	const char *element; /* "ChecksumCRC32C"; NULL for MD5 */
	size_t bytes;
	bool combines; /* the checksum of an object can be computed from those of its parts
			  (FULL_OBJECT); if not, an object sent in parts has the checksum of its
			  parts' checksums (COMPOSITE) */
	size_t offset; /* of its bytes in struct sums, for sums_bytes() and sums_set() alone */
};
extern const struct checksum_kind checksum_kinds[CHECKSUMS];

/* Returns the fastest checksum that S3 keeps, which depends on the build. tests/bench/README.md has
 * the measurement. */
enum checksum checksum_default(void);
/* Returns the checksum with this name (n characters, in any case), or CHECKSUMS if there is none.
 */
enum checksum checksum_named(const char *name, size_t n);

/* Sets of checksums, as bits. */
#define DIGEST_OF(checksum) (1U << (checksum))
#define DIGEST_CRC32C       DIGEST_OF(CHECKSUM_CRC32C)
#define DIGEST_SHA256       DIGEST_OF(CHECKSUM_SHA256)
#define DIGEST_MD5          DIGEST_OF(CHECKSUM_MD5)

/* The checksums of `bytes` bytes. A field is valid if its kind is in `kinds`. CRCs are big endian,
 * as S3 writes them. */
struct sums {
	unsigned kinds; /* the set of valid fields */
	uint64_t bytes;
	unsigned char crc32c[4], crc32[4], crc64nvme[8], sha1[20], sha256[32], md5[16];
};
/* Returns the bytes of one checksum, of which there are checksum_kinds[kind].bytes. Borrowed. */
const unsigned char *sums_bytes(const struct sums *sums, enum checksum kind);
/* Sets one checksum, which has checksum_kinds[kind].bytes bytes, and adds its kind to sums->kinds.
 */
void sums_set(struct sums *sums, enum checksum kind, const unsigned char *bytes);
/* Whether a and b have the same checksum of this kind. Both must have one. */
bool sums_equal(const struct sums *a, const struct sums *b, enum checksum kind);
/* Returns the checksums of all parts joined in order. It has the CRCs that every part has, and no
 * digests, since digests of parts do not combine. */
struct sums sums_combine(const struct sums *parts, size_t n);
/* Computes the checksum of the parts' checksums in order (COMPOSITE). Returns 0, -ENOENT if a part
 * lacks this kind, -ENOMEM or -ENOTSUP. */
int sums_compose(const struct sums *parts, size_t n, enum checksum kind,
	unsigned char ret[static CHECKSUM_BYTES_MAX]);

#define CHECKSUM_BASE64_MAX 44
/* Writes the bytes of a checksum in base64, as S3 does. */
void checksum_to_base64(
	enum checksum kind, const unsigned char *bytes, char ret[static CHECKSUM_BASE64_MAX + 1]);
/* Reads a checksum from n characters of base64. Returns 0, or -EINVAL if they are not the base64 of
 * as many bytes as this kind has. */
int checksum_from_base64(
	enum checksum kind, const char *s, size_t n, unsigned char ret[static CHECKSUM_BYTES_MAX]);

/* A running computation. It owns OpenSSL contexts until digest_clear(). digest_finish() may be
 * called once after each digest_init() or digest_restart(). */
struct digest {
	struct sums sums;
	uint64_t crc[CHECKSUM_CRCS];
	void *hash[CHECKSUMS - CHECKSUM_CRCS]; /* EVP_MD_CTX or NULL */
};

/* Starts computing `kinds`. Returns 0, -ENOMEM, or -ENOTSUP if OpenSSL does not offer one of them,
 * such as MD5 where it has only the FIPS provider. After an error, nothing has to be cleared. */
int digest_init(struct digest *d, unsigned kinds);
/* Starts the computation again with the contexts that d has, which is cheaper than digest_clear()
 * and digest_init(). d may also be all zero. Returns 0, -ENOMEM or -ENOTSUP; d has to be cleared
 * after an error, too. */
int digest_restart(struct digest *d, unsigned kinds);
void digest_update(struct digest *d, const void *bytes, size_t n);
void digest_finish(struct digest *d, struct sums *ret_sums);
void digest_clear(struct digest *d);
/* Computes the checksums of n bytes in memory. Returns 0, -ENOMEM or -ENOTSUP. */
int digest_bytes(unsigned kinds, const void *bytes, size_t n, struct sums *ret_sums);

/* The hash FNV-1a of 64 bits (Fowler, Noll, Vo): fast, the same on all hosts, and easily forged. */
#define FNV_EMPTY 14695981039346656037ULL /* the hash of no bytes */

/* Returns the hash of two byte strings, one after the other: `hash` is the hash of the first
 * (FNV_EMPTY if it is empty), and these n bytes are the second. Thread-safe. */
uint64_t fnv_add(uint64_t hash, const void *bytes, size_t n);

/* The CRCs that S3 keeps. Each is reflected, begins with all ones, and is inverted at the end. They
 * are computed by isa-l where it was found and has them, by zlib, or with PCLMULQDQ where the
 * processor has it. Each exists in portable C, too.
 *
 * Returns the CRC of the bytes that `crc` covers (0: none), followed by these n. Thread-safe. */
uint64_t crc_add(enum checksum kind, uint64_t crc, const void *bytes, size_t n);
/* As crc_add(), always in portable C. */
uint64_t crc_add_portable(enum checksum kind, uint64_t crc, const void *bytes, size_t n);
/* The CRC of A followed by B, from the CRC of each and the length of B in bytes. */
uint64_t crc_combine(enum checksum kind, uint64_t crc_a, uint64_t crc_b, uint64_t bytes_b);
