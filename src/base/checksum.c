#include "base/checksum.h"
#include "base/text.h"
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#define POLYNOMIAL 0x82F63B78U /* Castagnoli, reflected */

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][i] = crc;
	}
	for (int slice = 1; slice < 8; slice++)
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t before = table[slice - 1][i];
			table[slice][i] = before >> 8 ^ table[0][before & 0xFF];
		}
}

/* Slicing by 8: one table look-up a byte, eight of them independent. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t n)
{
	pthread_once(&table_once, fill_table);
	const unsigned char *s = bytes;
	crc = ~crc;
	for (; n >= 8; n -= 8, s += 8) {
		uint32_t low = crc ^ ((uint32_t)s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 |
					     (uint32_t)s[3] << 24);
		crc = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^
		      table[5][low >> 16 & 0xFF] ^ table[4][low >> 24] ^ table[3][s[4]] ^
		      table[2][s[5]] ^ table[1][s[6]] ^ table[0][s[7]];
	}
	for (; n; n--, s++)
		crc = crc >> 8 ^ table[0][(crc ^ *s) & 0xFF];
	return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
#ifdef HAVE_ISAL
	/* crc32_iscsi neither inverts before nor after, and takes an int and no const. */
	unsigned char *s = (unsigned char *)(uintptr_t)bytes;
	crc = ~crc;
	while (n) {
		int some = n < 1 << 30 ? (int)n : 1 << 30;
		crc = crc32_iscsi(s, some, crc);
		s += some;
		n -= (size_t)some;
	}
	return ~crc;
#else
	return crc32c_portable(crc, bytes, n);
#endif
}

/* The product of two polynomials modulo ours; bit 31 is x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;
	for (uint32_t bit = 1U << 31; bit; bit >>= 1) {
		product ^= a & bit ? b : 0;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return product;
}

/* Appending n zero bytes multiplies a CRC by x^(8n); the inversions of the three CRCs cancel out.
 */
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b)
{
	uint32_t shift = 1U << 31;       /* x^0 */
	uint32_t power = 1U << (31 - 8); /* x^8, squared at every step */
	for (uint64_t n = bytes_b; n; n >>= 1) {
		if (n & 1)
			shift = multiply(shift, power);
		power = multiply(power, power);
	}
	return multiply(shift, crc_a) ^ crc_b;
}

void crc32c_to_base64(uint32_t crc, char ret[static CRC32C_BASE64_CHARS + 1])
{
	unsigned char bytes[4] = {(unsigned char)(crc >> 24), (unsigned char)(crc >> 16),
		(unsigned char)(crc >> 8), (unsigned char)crc};
	base64_encode(bytes, sizeof bytes, ret);
}

int crc32c_from_base64(const char *s, uint32_t *ret_crc)
{
	unsigned char bytes[6];
	if (strlen(s) != CRC32C_BASE64_CHARS || base64_decode(s, bytes) != 4)
		return -EINVAL;
	*ret_crc = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
		   bytes[3];
	return 0;
}

static int start_hash(void **context, const EVP_MD *kind)
{
	if (!*context)
		*context = EVP_MD_CTX_new();
	if (!*context)
		return -ENOMEM;
	return EVP_DigestInit_ex(*context, kind, NULL) ? 0 : -ENOTSUP;
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
	d->sums = (struct sums){.kinds = kinds};
	int error = kinds & DIGEST_MD5 ? start_hash(&d->md5, EVP_md5()) : 0;
	if (!error && kinds & DIGEST_SHA256)
		error = start_hash(&d->sha256, EVP_sha256());
	return error;
}

void digest_update(struct digest *d, const void *bytes, size_t n)
{
	d->sums.bytes += n;
	if (d->sums.kinds & DIGEST_CRC32C)
		d->sums.crc32c = crc32c(d->sums.crc32c, bytes, n);
	if (d->sums.kinds & DIGEST_MD5)
		EVP_DigestUpdate(d->md5, bytes, n);
	if (d->sums.kinds & DIGEST_SHA256)
		EVP_DigestUpdate(d->sha256, bytes, n);
}

void digest_finish(struct digest *d, struct sums *ret_sums)
{
	if (d->sums.kinds & DIGEST_MD5)
		EVP_DigestFinal_ex(d->md5, d->sums.md5, NULL);
	if (d->sums.kinds & DIGEST_SHA256)
		EVP_DigestFinal_ex(d->sha256, d->sums.sha256, NULL);
	*ret_sums = d->sums;
}

void digest_clear(struct digest *d)
{
	EVP_MD_CTX_free(d->md5);
	EVP_MD_CTX_free(d->sha256);
	*d = (struct digest){0};
}
