/* Cheap substitutes for OpenSSL's digests and HMAC, which would take most of the processor time.
 * Nothing is forged in these worlds, so a digest is the CRC of the bytes, spread over the length of
 * the real digest. Tests with real servers check the real digests and signatures. */
#include "base/checksum.h"
#include "chance.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evp_md_st {
	const char *name;
	size_t bytes;
};
struct evp_md_ctx_st {
	const EVP_MD *kind;
	uint64_t crc;
};
struct evp_mac_ctx_st {
	uint64_t key, crc;
};

static const EVP_MD md5 = {"MD5", 16}, sha1 = {"SHA1", 20}, sha256 = {"SHA256", 32};

static void spread(const EVP_MD *kind, uint64_t crc, unsigned char *ret)
{
	struct chance chance = chance_of(crc, kind->name);
	chance_fill(&chance, ret, kind->bytes);
}

static unsigned char *digest_of(const EVP_MD *kind, const void *bytes, size_t n, unsigned char *ret)
{
	spread(kind, crc_add(CHECKSUM_CRC64NVME, 0, bytes, n), ret);
	return ret;
}

/* The only digest that src fetches. It is neither allocated nor freed. */
EVP_MD *EVP_MD_fetch(OSSL_LIB_CTX *library, const char *name, const char *properties)
{
	return (EVP_MD *)(uintptr_t)&md5;
}

void EVP_MD_free(EVP_MD *kind)
{
}

const EVP_MD *EVP_sha1(void)
{
	return &sha1;
}

const EVP_MD *EVP_sha256(void)
{
	return &sha256;
}

EVP_MD_CTX *EVP_MD_CTX_new(void)
{
	return calloc(1, sizeof(EVP_MD_CTX));
}

void EVP_MD_CTX_free(EVP_MD_CTX *context)
{
	free(context);
}

int EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *kind, ENGINE *engine)
{
	*context = (EVP_MD_CTX){.kind = kind ? kind : context->kind};
	return 1;
}

int EVP_DigestInit_ex2(EVP_MD_CTX *context, const EVP_MD *kind, const OSSL_PARAM *parameters)
{
	return EVP_DigestInit_ex(context, kind, NULL);
}

int EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, size_t n)
{
	context->crc = crc_add(CHECKSUM_CRC64NVME, context->crc, bytes, n);
	return 1;
}

int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *ret, unsigned *ret_n)
{
	spread(context->kind, context->crc, ret);
	if (ret_n)
		*ret_n = (unsigned)context->kind->bytes;
	return 1;
}

/* The CRC of the whole blocks is in h[], where src expects the state. */
int SHA256_Init(SHA256_CTX *context)
{
	*context = (SHA256_CTX){.md_len = SHA256_DIGEST_LENGTH};
	return 1;
}

static uint64_t sha256_crc(const SHA256_CTX *context, const void *bytes, size_t n)
{
	const uint64_t crc = (uint64_t)context->h[0] << 32 | context->h[1];
	return crc_add(CHECKSUM_CRC64NVME, crc, bytes, n);
}

static void sha256_blocks(SHA256_CTX *context, const void *bytes, size_t n)
{
	const uint64_t crc = sha256_crc(context, bytes, n);
	context->h[0] = (SHA_LONG)(crc >> 32);
	context->h[1] = (SHA_LONG)crc;
}

int SHA256_Update(SHA256_CTX *context, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	const uint64_t bits = ((uint64_t)context->Nh << 32 | context->Nl) + 8 * (uint64_t)n;
	context->Nh = (SHA_LONG)(bits >> 32);
	context->Nl = (SHA_LONG)bits;
	while (n) {
		unsigned char *data = (unsigned char *)context->data;
		const size_t room = SHA256_CBLOCK - context->num, now = n < room ? n : room;
		memcpy(data + context->num, at, now);
		context->num += (unsigned)now;
		at += now;
		n -= now;
		if (context->num < SHA256_CBLOCK)
			continue;
		sha256_blocks(context, data, SHA256_CBLOCK);
		context->num = 0;
		sha256_blocks(context, at, n / SHA256_CBLOCK * SHA256_CBLOCK);
		at += n / SHA256_CBLOCK * SHA256_CBLOCK;
		n %= SHA256_CBLOCK;
	}
	return 1;
}

int SHA256_Final(unsigned char *ret, SHA256_CTX *context)
{
	spread(&sha256, sha256_crc(context, context->data, context->num), ret);
	return 1;
}

unsigned char *SHA1(const unsigned char *bytes, size_t n, unsigned char *ret)
{
	return digest_of(&sha1, bytes, n, ret);
}

unsigned char *SHA256(const unsigned char *bytes, size_t n, unsigned char *ret)
{
	return digest_of(&sha256, bytes, n, ret);
}

unsigned char *HMAC(const EVP_MD *kind, const void *key, int key_bytes,
	const unsigned char *message, size_t n, unsigned char *ret, unsigned *ret_n)
{
	spread(kind,
		crc_add(CHECKSUM_CRC64NVME, crc_add(CHECKSUM_CRC64NVME, 0, key, (size_t)key_bytes),
			message, n),
		ret);
	*ret_n = (unsigned)kind->bytes;
	return ret;
}

/* HMAC with SHA-256, the only one that src uses. */
EVP_MAC *EVP_MAC_fetch(OSSL_LIB_CTX *library, const char *name, const char *properties)
{
	return NULL;
}

void EVP_MAC_free(EVP_MAC *kind)
{
}

EVP_MAC_CTX *EVP_MAC_CTX_new(EVP_MAC *kind)
{
	return calloc(1, sizeof(EVP_MAC_CTX));
}

void EVP_MAC_CTX_free(EVP_MAC_CTX *context)
{
	free(context);
}

int EVP_MAC_init(
	EVP_MAC_CTX *context, const unsigned char *key, size_t n, const OSSL_PARAM *parameters)
{
	if (key)
		context->key = crc_add(CHECKSUM_CRC64NVME, 0, key, n);
	context->crc = context->key;
	return 1;
}

int EVP_MAC_update(EVP_MAC_CTX *context, const unsigned char *bytes, size_t n)
{
	context->crc = crc_add(CHECKSUM_CRC64NVME, context->crc, bytes, n);
	return 1;
}

int EVP_MAC_final(EVP_MAC_CTX *context, unsigned char *ret, size_t *ret_n, size_t size)
{
	spread(&sha256, context->crc, ret);
	*ret_n = sha256.bytes;
	return 1;
}
