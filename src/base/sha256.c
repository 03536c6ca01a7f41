/* SHA-256 whose state can be kept. This needs functions of OpenSSL that are marked as deprecated,
 * since they bypass its providers; no others expose the state. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.h"
#include "base/text.h"

#define WORD_BYTES 4

void sha256_begin(struct sha256 *ret)
{
	SHA256_Init(&ret->context);
}

void sha256_add(struct sha256 *sha256, const void *bytes, size_t n)
{
	SHA256_Update(&sha256->context, bytes, n);
}

void sha256_hex(const struct sha256 *sha256, char ret[static SHA256_HEX_CHARS + 1])
{
	struct sha256 copy = *sha256;
	unsigned char hash[SHA256_DIGEST_LENGTH];
	SHA256_Final(hash, &copy.context);
	hex_encode(hash, sizeof hash, ret);
}

struct sha256_state sha256_save(const struct sha256 *sha256)
{
	const SHA256_CTX *context = &sha256->context;
	const uint64_t bits = (uint64_t)context->Nh << 32 | context->Nl;
	const unsigned bytes_behind_block = context->num;
	struct sha256_state ret = {.bytes = bits / 8 - bytes_behind_block};
	for (size_t i = 0; i < sizeof ret.state; i++)
		ret.state[i] = (unsigned char)(context->h[i / WORD_BYTES] >>
					       8 * (WORD_BYTES - 1 - i % WORD_BYTES));
	return ret;
}

void sha256_resume(struct sha256 *ret, const struct sha256_state *state)
{
	SHA256_CTX *context = &ret->context;
	const uint64_t bits = state->bytes * 8;
	SHA256_Init(context);
	context->Nl = (SHA_LONG)bits;
	context->Nh = (SHA_LONG)(bits >> 32);
	if (!state->bytes)
		return;
	for (size_t i = 0; i < sizeof context->h / sizeof *context->h; i++)
		context->h[i] = 0;
	for (size_t i = 0; i < sizeof state->state; i++)
		context->h[i / WORD_BYTES] = context->h[i / WORD_BYTES] << 8 | state->state[i];
}
