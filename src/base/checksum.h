/* Checksums of content: several at once over one reading. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_CRC32C = 1, DIGEST_MD5 = 2, DIGEST_SHA256 = 4 };

/* What was computed over `bytes` bytes; a field is valid if its kind is in `kinds`. */
struct sums {
	unsigned kinds; /* of enum digest_kind */
	uint64_t bytes;
	uint32_t crc32c;
	unsigned char md5[16];
	unsigned char sha256[32];
};

/* A running computation. Owns OpenSSL contexts between init and clear; finish may be called once.
 */
struct digest {
	struct sums sums;
	void *md5;    /* EVP_MD_CTX or NULL */
	void *sha256; /* EVP_MD_CTX or NULL */
};

/* Starts computing `kinds`. Returns 0, -ENOMEM, or -ENOTSUP where OpenSSL forbids one (MD5 in FIPS
 * mode); nothing is owned then. */
int digest_init(struct digest *d, unsigned kinds);
/* Starts again, keeping the contexts: cheaper than clear and init. Errors as above, but d stays to
 * be cleared. */
int digest_restart(struct digest *d, unsigned kinds);
void digest_update(struct digest *d, const void *bytes, size_t n);
void digest_finish(struct digest *d, struct sums *ret_sums);
void digest_clear(struct digest *d);

/* CRC-32C (Castagnoli, reflected, as in RFC 3720) of n bytes after crc (0 to start). */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);
/* The portable version of the same, always present; crc32c() uses isa-l where it was found. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t n);
/* The CRC of A followed by B, from the CRC of each and the length of B in bytes. */
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b);

#define CRC32C_BASE64_CHARS 8
/* The CRC as S3 writes it: base64 of its four bytes, big endian. */
void crc32c_to_base64(uint32_t crc, char ret[static CRC32C_BASE64_CHARS + 1]);
/* The reverse; -EINVAL if s is not the base64 of four bytes. */
int crc32c_from_base64(const char *s, uint32_t *ret_crc);
