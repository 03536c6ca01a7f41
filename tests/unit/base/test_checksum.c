#include "../check.h"
#include "base/checksum.h"
#include "base/text.h"
#include <errno.h>

static const unsigned all = (1U << CHECKSUMS) - 1;

static struct sums sum(const char *bytes, unsigned kinds)
{
	struct digest d;
	struct sums sums = {0};
	if (!CHECK_INT(digest_init(&d, kinds), 0))
		return sums;
	digest_update(&d, bytes, strlen(bytes));
	digest_finish(&d, &sums);
	digest_clear(&d);
	return sums;
}

/* Checksums of "123456789": the published check values, and those of sha1sum, sha256sum, md5sum. */
static const struct {
	const char *name, *hex, *base64;
} rows[CHECKSUMS] = {
	{"crc32c", "e3069283", "4waSgw=="},
	{"crc32", "cbf43926", "y/Q5Jg=="},
	{"crc64nvme", "ae8b14860a799888", "rosUhgp5mIg="},
	{"sha1", "f7c3bc1d808e04732adf679965ccc34ca7ae3441", "98O8HYCOBHMq32eZZczDTKeuNEE="},
	{"sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
		"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="},
	{"md5", "25f9e794323b453885f5181f1b624d0b", "JfnnlDI7RTiF9RgfG2JNCw=="},
};

static void test_kinds(void)
{
	const struct sums sums = sum("123456789", all);
	CHECK_INT(sums.bytes, 9);
	for (size_t i = 0; i < CHECKSUMS; i++) {
		const enum checksum kind = checksum_named(rows[i].name, strlen(rows[i].name));
		char hex[65], base64[CHECKSUM_BASE64_MAX + 1];
		unsigned char back[CHECKSUM_BYTES_MAX];
		if (!CHECK_INT(kind, i))
			continue;
		const size_t n = checksum_kinds[kind].bytes;
		hex_encode(sums_bytes(&sums, kind), n, hex);
		CHECK_STRING(hex, rows[i].hex);
		checksum_to_base64(kind, sums_bytes(&sums, kind), base64);
		CHECK_STRING(base64, rows[i].base64);
		CHECK_INT(checksum_from_base64(kind, base64, strlen(base64), back), 0);
		CHECK(memcmp(back, sums_bytes(&sums, kind), n) == 0);
		struct sums alone = {0};
		sums_set(&alone, kind, back);
		CHECK(alone.kinds == DIGEST_OF(kind) && sums_equal(&alone, &sums, kind));
	}
	CHECK_INT(checksum_named("CRC64NVME", 9), CHECKSUM_CRC64NVME);
	CHECK_INT(checksum_named("crc32c:AAAAAA==", 6), CHECKSUM_CRC32C);
	CHECK_INT(checksum_named("crc", 3), CHECKSUMS);
	CHECK_INT(checksum_named("", 0), CHECKSUMS);
	CHECK_INT(checksum_named("crc32cc", 7), CHECKSUMS);
}

static void test_base64(void)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX] = {1};
	static const char *const bad[] = {"", "4waSgw", "4waSgw==-2", "4waSgwAA", "????????",
		"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
		"FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=A"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_INT(checksum_from_base64(CHECKSUM_CRC32C, bad[i], strlen(bad[i]), bytes),
			-EINVAL);
	CHECK_INT(checksum_from_base64(CHECKSUM_SHA256,
			  "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiUA", 44, bytes),
		-EINVAL);
	CHECK_INT(bytes[0], 1);
	CHECK_INT(checksum_from_base64(CHECKSUM_CRC32C, "4waSgw==-2", 8, bytes), 0);
	CHECK_INT(bytes[0], 0xE3);
}

static void test_digest(void)
{
	struct digest d;
	struct sums sums;
	const struct sums whole = sum("abc", all);
	if (!CHECK_INT(digest_init(&d, all), 0))
		return;
	digest_update(&d, "a", 1);
	digest_update(&d, "bc", 2);
	digest_finish(&d, &sums);
	CHECK(memcmp(&sums, &whole, sizeof sums) == 0);
	CHECK_INT(digest_restart(&d, DIGEST_CRC32C), 0);
	digest_update(&d, "123456789", 9);
	digest_finish(&d, &sums);
	CHECK_INT(sums.kinds, DIGEST_CRC32C);
	CHECK_INT(sums.crc32c[0], 0xE3);
	CHECK_INT(digest_restart(&d, all), 0);
	digest_update(&d, "abc", 3);
	digest_finish(&d, &sums);
	CHECK(memcmp(&sums, &whole, sizeof sums) == 0);
	digest_clear(&d);
}

static void test_parts(void)
{
	struct sums parts[] = {sum("1234", all), sum("", all), sum("56789", all)};
	const struct sums want = sum("123456789", all), whole = sums_combine(parts, 3);
	CHECK_INT(whole.kinds,
		DIGEST_CRC32C | DIGEST_OF(CHECKSUM_CRC32) | DIGEST_OF(CHECKSUM_CRC64NVME));
	CHECK_INT(whole.bytes, 9);
	CHECK(memcmp(whole.crc32c, want.crc32c, 4) == 0);
	CHECK(memcmp(whole.crc32, want.crc32, 4) == 0);
	CHECK(memcmp(whole.crc64nvme, want.crc64nvme, 8) == 0);
	/* (printf 1234 | openssl sha1 -binary; …) | sha1sum */
	char hex[41];
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	CHECK_INT(sums_compose(parts, 3, CHECKSUM_SHA1, bytes), 0);
	hex_encode(bytes, 20, hex);
	CHECK_STRING(hex, "f7bbb50c4e9f3b012584ef6d6b81f1f34323801b");
	parts[1].kinds = DIGEST_OF(CHECKSUM_CRC32);
	CHECK_INT(sums_combine(parts, 3).kinds, DIGEST_OF(CHECKSUM_CRC32));
	CHECK_INT(sums_compose(parts, 3, CHECKSUM_SHA1, bytes), -ENOENT);
}

int main(void)
{
	CHECK(checksum_kinds[checksum_default()].combines);
	test_kinds();
	test_base64();
	test_digest();
	test_parts();
	return check_result();
}
