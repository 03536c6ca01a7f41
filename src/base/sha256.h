/* SHA-256 as a value: it may be copied while it is computed, and its state may be saved, so that
 * another process can add the bytes that follow. OpenSSL's general functions for digests
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

/* SHA-256 hashes whole blocks, so that its state can be saved only between two of them. */
#define SHA256_STEP SHA256_CBLOCK /* 64 bytes: a block */
struct sha256_state {
	uint64_t bytes; /* the number of bytes added so far; 0: no state is known */
	unsigned char state[SHA256_DIGEST_LENGTH];
};
/* Returns the state after the last whole block. Bytes added after that block are not in it. */
struct sha256_state sha256_save(const struct sha256 *sha256);
/* Continues from a state, as if its bytes had been added. */
void sha256_resume(struct sha256 *ret, const struct sha256_state *state);
