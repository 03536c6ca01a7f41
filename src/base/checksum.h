/* Checksums of content: what S3 knows of them, in one table, and several at once over one reading.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which one is preferred where several are there. The CRCs come first. */
enum checksum {
	CHECKSUM_CRC32C,    /* Castagnoli; RFC 3720 */
	CHECKSUM_CRC32,     /* of zip, PNG and Ethernet; RFC 1952 */
	CHECKSUM_CRC64NVME, /* NVM Express NVM Command Set Specification, "64b CRC" */
	CHECKSUM_CRCS,
	CHECKSUM_SHA1 = CHECKSUM_CRCS,
	CHECKSUM_SHA256,
	CHECKSUM_MD5,
	CHECKSUMS
};
#define CHECKSUM_BYTES_MAX 32

/* Source: Amazon S3 User Guide, "Checking object integrity". */
struct checksum_kind {
	const char *name;    /* "crc32c": of the option and in marks */
	const char *s3_name; /* "CRC32C": x-amz-checksum-algorithm; NULL: S3 keeps none (MD5) */
	const char *header;  /* "x-amz-checksum-crc32c"; NULL likewise */
	const char *element; /* "ChecksumCRC32C"; NULL likewise */
	size_t bytes;
	bool combines; /* that of a whole object follows from those of its parts (FULL_OBJECT);
			  else an object sent in parts has that of its parts' (COMPOSITE) */
	size_t at;     /* its bytes in struct sums */
};
extern const struct checksum_kind checksum_kinds[CHECKSUMS];

/* The fastest that S3 keeps, in this build: tests/bench/README.md has the measurement. */
enum checksum checksum_default(void);
/* The one of this name (n characters, any case); CHECKSUMS if there is none. */
enum checksum checksum_named(const char *name, size_t n);

/* Sets of them. */
#define DIGEST_OF(checksum) (1U << (checksum))
#define DIGEST_CRC32C       DIGEST_OF(CHECKSUM_CRC32C)
#define DIGEST_SHA256       DIGEST_OF(CHECKSUM_SHA256)
#define DIGEST_MD5          DIGEST_OF(CHECKSUM_MD5)

/* What was computed over `bytes` bytes; a field is valid if its kind is in `kinds`. CRCs are big
 * endian, as S3 writes them. */
struct sums {
	unsigned kinds; /* a set */
	uint64_t bytes;
	unsigned char crc32c[4], crc32[4], crc64nvme[8], sha1[20], sha256[32], md5[16];
};
/* The bytes of one of them, checksum_kinds[].bytes many. Borrowed. */
const unsigned char *sums_bytes(const struct sums *sums, enum checksum kind);
/* Whether this one, which both have, is the same. */
bool sums_equal(const struct sums *a, const struct sums *b, enum checksum kind);
/* The content of all parts in a row: of what all of them have, those that combine. */
struct sums sums_combine(const struct sums *parts, size_t n);
/* The checksum of the parts' checksums, one after the other (COMPOSITE). Returns 0; -ENOENT if a
 * part lacks it, -ENOMEM, -ENOTSUP. */
int sums_compose(const struct sums *parts, size_t n, enum checksum kind,
	unsigned char ret[static CHECKSUM_BYTES_MAX]);

#define CHECKSUM_BASE64_MAX 44
/* The bytes as S3 writes them. */
void checksum_to_base64(
	enum checksum kind, const unsigned char *bytes, char ret[static CHECKSUM_BASE64_MAX + 1]);
/* The reverse, of n characters; -EINVAL if they are not the base64 of that many bytes. */
int checksum_from_base64(
	enum checksum kind, const char *s, size_t n, unsigned char ret[static CHECKSUM_BYTES_MAX]);

/* A running computation. Owns OpenSSL contexts between init and clear; finish may be called once.
 */
struct digest {
	struct sums sums;
	uint64_t crc[CHECKSUM_CRCS];
	void *hash[CHECKSUMS - CHECKSUM_CRCS]; /* EVP_MD_CTX or NULL */
};

/* Starts computing `kinds`. Returns 0, -ENOMEM, or -ENOTSUP where OpenSSL forbids one (MD5, if
 * it has none but FIPS's); nothing is owned then. */
int digest_init(struct digest *d, unsigned kinds);
/* Starts again, keeping the contexts: cheaper than clear and init; also one that is all zero.
 * Errors as above, but d stays to be cleared. */
int digest_restart(struct digest *d, unsigned kinds);
void digest_update(struct digest *d, const void *bytes, size_t n);
void digest_finish(struct digest *d, struct sums *ret_sums);
/* What digest_finish would say now; the computation goes on. 0, -ENOMEM or -ENOTSUP. */
int digest_peek(const struct digest *d, struct sums *ret_sums);
void digest_clear(struct digest *d);
/* All of that for bytes in memory. As digest_init(). */
int digest_bytes(unsigned kinds, const void *bytes, size_t n, struct sums *ret_sums);

/* The hash FNV-1a of 64 bits (Fowler, Noll, Vo): fast, the same on all hosts, and easily forged. */
#define FNV_EMPTY 14695981039346656037ULL /* the hash of no bytes */

/* The hash of the bytes that `hash` is of, followed by these n. Thread-safe. */
uint64_t fnv_add(uint64_t hash, const void *bytes, size_t n);

/* The CRCs that S3 keeps: reflected, all ones before, inverted after. By isa-l where it was found
 * and has them, by zlib, and by PCLMULQDQ where the processor has it; each in portable C too.
 *
 * The CRC of what `crc` was of (0: nothing) followed by n bytes. Any thread. */
uint64_t crc_add(enum checksum kind, uint64_t crc, const void *bytes, size_t n);
/* The same in portable C, whatever there is. */
uint64_t crc_add_portable(enum checksum kind, uint64_t crc, const void *bytes, size_t n);
/* The CRC of A followed by B, from the CRC of each and the length of B in bytes. */
uint64_t crc_combine(enum checksum kind, uint64_t crc_a, uint64_t crc_b, uint64_t bytes_b);
