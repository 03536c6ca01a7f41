/* What proves an upload, and what does not. */
#include "../check.h"
#include "base/text.h"
#include "upload/proof.h"

static struct sums sums_of(const char *bytes, unsigned kinds)
{
	struct digest digest;
	struct sums sums;
	digest_init(&digest, kinds);
	digest_update(&digest, bytes, strlen(bytes));
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	return sums;
}

/* By an independent tool: printf hello | md5sum; the CRC-32C of "hello" is 9a71bb4c. */
#define HELLO_MD5 "5d41402abc4b2a76b9719d911017c592"
#define HELLO_CRC "mnG7TA=="

static const struct {
	struct s3_object object;
	unsigned kinds;
	bool size_known;
	enum proof proof;
} whole[] = {
	{{.crc32c = HELLO_CRC}, DIGEST_CRC32C, false, PROOF_YES},
	{{.crc32c = "AAAAAA=="}, DIGEST_CRC32C, false, PROOF_NO},
	{{.crc32c = "AAAAAA==", .etag = HELLO_MD5}, DIGEST_CRC32C | DIGEST_MD5, false, PROOF_NO},
	{{.etag = HELLO_MD5}, DIGEST_CRC32C | DIGEST_MD5, false, PROOF_YES},
	{{.etag = "5D41402ABC4B2A76B9719D911017C592"}, DIGEST_CRC32C | DIGEST_MD5, false,
		PROOF_YES},
	{{.etag = HELLO_MD5}, DIGEST_CRC32C, false, PROOF_MISSING},
	{{.etag = "00000000000000000000000000000000"}, DIGEST_MD5, false, PROOF_NO},
	{{.etag = "00000000000000000000000000000000", .etag_is_opaque = true}, DIGEST_MD5, false,
		PROOF_MISSING},
	{{.etag = HELLO_MD5, .etag_is_opaque = true}, DIGEST_MD5, false, PROOF_YES},
	{{.etag = "not-an-md5"}, DIGEST_MD5, false, PROOF_MISSING},
	{{.etag = ""}, DIGEST_CRC32C | DIGEST_MD5, false, PROOF_MISSING},
	{{.crc32c = HELLO_CRC, .size = 5}, DIGEST_CRC32C, true, PROOF_YES},
	{{.crc32c = HELLO_CRC, .size = 6}, DIGEST_CRC32C, true, PROOF_NO},
	{{.crc32c = "mnG7TA==-1"}, DIGEST_CRC32C, false, PROOF_MISSING},
};

static void test_parts(void)
{
	const unsigned both = DIGEST_CRC32C | DIGEST_MD5;
	struct sums parts[] = {sums_of("hel", both), sums_of("lo", both)};
	/* a composite etag of other content */
	struct s3_object by_etag = {.etag = "b8abb2c84c8b2a2f80e9b1f0c8e7a5f1-2", .size = 5};
	struct digest digest;
	struct sums etag;
	char hex[33];
	digest_init(&digest, DIGEST_MD5);
	digest_update(&digest, parts[0].md5, 16);
	digest_update(&digest, parts[1].md5, 16);
	digest_finish(&digest, &etag);
	digest_clear(&digest);
	hex_encode(etag.md5, 16, hex);
	CHECK_INT(proof_parts(parts, 2, &by_etag, true), PROOF_NO);
	by_etag.etag_is_opaque = true;
	CHECK_INT(proof_parts(parts, 2, &by_etag, true), PROOF_MISSING);
	snprintf(by_etag.etag, sizeof by_etag.etag, "%s-2", hex);
	CHECK_INT(proof_parts(parts, 2, &by_etag, true), PROOF_YES);
	CHECK_INT(proof_parts(parts, 1, &by_etag, false), PROOF_MISSING);
	parts[1].kinds = DIGEST_CRC32C;
	CHECK_INT(proof_parts(parts, 2, &by_etag, true), PROOF_MISSING);
	const struct s3_object by_crc = {.crc32c = HELLO_CRC, .size = 5};
	CHECK_INT(proof_parts(parts, 2, &by_crc, true), PROOF_YES);
	const struct s3_object longer = {.crc32c = HELLO_CRC, .size = 6};
	CHECK_INT(proof_parts(parts, 2, &longer, true), PROOF_NO);
}

static void test_part(void)
{
	const struct sums sums = sums_of("hello", DIGEST_CRC32C | DIGEST_MD5);
	const struct s3_part same = {.size = 5, .etag = HELLO_MD5};
	const struct s3_part other = {.size = 5, .etag = "00000000000000000000000000000000"};
	const struct s3_part shorter = {.size = 4, .etag = HELLO_MD5};
	CHECK_INT(proof_part(&sums, &same), PROOF_YES);
	CHECK_INT(proof_part(&sums, &other), PROOF_NO);
	const struct s3_part opaque = {.size = 5, .etag = "0f", .etag_is_opaque = true};
	CHECK_INT(proof_part(&sums, &opaque), PROOF_MISSING);
	CHECK_INT(proof_part(&sums, &shorter), PROOF_NO);
}

int main(void)
{
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		const struct sums sums = sums_of("hello", whole[i].kinds);
		CHECK_INT(
			proof_whole(&sums, &whole[i].object, whole[i].size_known), whole[i].proof);
	}
	test_part();
	test_parts();
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-12"), 12);
	CHECK_INT(proof_etag_parts(HELLO_MD5), 0);
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-x"), 0);
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-10001"), 0);
	CHECK_INT(proof_etag_parts("abc-2"), 0);
	return check_result();
}
