/* SHA-256 as a value: it may be copied while it is computed, and its state may be kept, so that
 * what follows can be added by another process. OpenSSL's functions for digests in general
 * (checksum.c) cannot do that. */
#pragma once
#include <openssl/sha.h>
#include <stdint.h>

#define SHA256_HEX_CHARS 64

struct sha256 {
	SHA256_CTX context;
};
void sha256_begin(struct sha256 *ret);
void sha256_add(struct sha256 *sha256, const void *bytes, size_t n);
/* Sets ret to the hash of all bytes that were added, in hex digits. More may be added. */
void sha256_hex(const struct sha256 *sha256, char ret[static SHA256_HEX_CHARS + 1]);

/* The state after the first SHA256_STEP bytes, or a multiple of that. */
#define SHA256_STEP SHA256_CBLOCK
struct sha256_state {
	uint64_t bytes; /* 0: nothing is known */
	unsigned char state[SHA256_DIGEST_LENGTH];
};
/* Returns the state after as many of the bytes as make whole steps. */
struct sha256_state sha256_keep(const struct sha256 *sha256);
/* Begins as if the bytes of the state had been added. */
void sha256_resume(struct sha256 *ret, const struct sha256_state *state);
