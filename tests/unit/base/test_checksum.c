#include "../check.h"
#include "base/checksum.h"
#include "base/text.h"
#include <errno.h>

static unsigned char data[100003];

static void test_crc32c(void)
{
	static const unsigned char zeros[32] = {0};
	unsigned char ones[32], up[32], down[32];
	for (unsigned char i = 0; i < 32; i++) {
		ones[i] = 0xFF;
		up[i] = i;
		down[i] = (unsigned char)(31 - i);
	}
	/* RFC 3720, appendix B.4; the last is the usual check value. */
	const struct {
		const void *bytes;
		size_t n;
		uint32_t want;
	} rows[] = {{zeros, 32, 0x8A9136AA}, {ones, 32, 0x62A8AB43}, {up, 32, 0x46DD794E},
		{down, 32, 0x113FDB5C}, {"123456789", 9, 0xE3069283}, {"", 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_INT(crc32c(0, rows[i].bytes, rows[i].n), rows[i].want);
		CHECK_INT(crc32c_portable(0, rows[i].bytes, rows[i].n), rows[i].want);
	}
	for (size_t n = 0; n < 100; n++)
		for (size_t at = 0; at < 9; at++)
			CHECK_INT(crc32c(7, data + at, n), crc32c_portable(7, data + at, n));
}

static void test_combine(void)
{
	uint32_t whole = crc32c(0, data, sizeof data);
	static const size_t cuts[] = {0, 1, 2, 7, 8, 255, 4096, 65536, 100002, 100003};
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		size_t rest = sizeof data - cuts[i];
		uint32_t a = crc32c(0, data, cuts[i]), b = crc32c(0, data + cuts[i], rest);
		CHECK_INT(crc32c(a, data + cuts[i], rest), whole);
		CHECK_INT(crc32c_combine(a, b, rest), whole);
	}
}

static void test_base64(void)
{
	char s[CRC32C_BASE64_CHARS + 1];
	uint32_t crc = 0;
	crc32c_to_base64(0xE3069283, s);
	CHECK_STRING(s, "4waSgw==");
	CHECK_INT(crc32c_from_base64("4waSgw==", &crc), 0);
	CHECK_INT(crc, 0xE3069283);
	static const char *const bad[] = {"", "4waSgw", "4waSgw==-2", "4waSgwAA", "????????"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_INT(crc32c_from_base64(bad[i], &crc), -EINVAL);
	CHECK_INT(crc, 0xE3069283);
}

static void check_abc(const struct sums *sums)
{
	char hex[65];
	CHECK_INT(sums->bytes, 3);
	CHECK_INT(sums->crc32c, 0x364B3FB7);
	hex_encode(sums->md5, 16, hex);
	CHECK_STRING(hex, "900150983cd24fb0d6963f7d28e17f72");
	hex_encode(sums->sha256, 32, hex);
	CHECK_STRING(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_digest(void)
{
	struct digest d;
	struct sums sums;
	if (!CHECK_INT(digest_init(&d, DIGEST_CRC32C | DIGEST_MD5 | DIGEST_SHA256), 0))
		return;
	digest_update(&d, "a", 1);
	digest_update(&d, "bc", 2);
	digest_finish(&d, &sums);
	check_abc(&sums);
	CHECK_INT(digest_restart(&d, DIGEST_CRC32C), 0);
	digest_update(&d, "123456789", 9);
	digest_finish(&d, &sums);
	CHECK_INT(sums.kinds, DIGEST_CRC32C);
	CHECK_INT(sums.crc32c, 0xE3069283);
	CHECK_INT(digest_restart(&d, DIGEST_CRC32C | DIGEST_MD5 | DIGEST_SHA256), 0);
	digest_update(&d, "abc", 3);
	digest_finish(&d, &sums);
	check_abc(&sums);
	digest_clear(&d);
}

int main(void)
{
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 31 + (i >> 7));
	test_crc32c();
	test_combine();
	test_base64();
	test_digest();
	return check_result();
}
