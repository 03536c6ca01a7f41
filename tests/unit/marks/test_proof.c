/* Proof of an upload, and lack of it. */
#include "../check.h"
#include "base/text.h"
#include "marks/judge_object.h"

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
#define HELLO_MD5   "5d41402abc4b2a76b9719d911017c592"
#define HELLO_CRC   "mnG7TA=="
#define HELLO_CRC32 "NhCmhg=="
#define HELLO_SHA1  "qvTGHdzF6KLavt4PO0gs2a6pQ00="

static const struct {
	struct s3_object object;
	unsigned kinds;
	enum proof_size size;
	enum proof proof;
} whole[] = {
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC}}, DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_CRC32C, "AAAAAA=="}}, DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_NO},
	{{.sum = {CHECKSUM_CRC32C, "AAAAAA=="}, .etag = HELLO_MD5}, DIGEST_CRC32C | DIGEST_MD5,
		SIZE_UNKNOWN, PROOF_NO},
	{{.etag = HELLO_MD5}, DIGEST_CRC32C | DIGEST_MD5, SIZE_UNKNOWN, PROOF_YES},
	{{.etag = "5D41402ABC4B2A76B9719D911017C592"}, DIGEST_CRC32C | DIGEST_MD5, SIZE_UNKNOWN,
		PROOF_YES},
	{{.etag = HELLO_MD5}, DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.etag = "00000000000000000000000000000000"}, DIGEST_MD5, SIZE_UNKNOWN, PROOF_NO},
	{{.etag = "00000000000000000000000000000000", .etag_is_opaque = true}, DIGEST_MD5,
		SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.etag = HELLO_MD5, .etag_is_opaque = true}, DIGEST_MD5, SIZE_UNKNOWN, PROOF_YES},
	{{.etag = "not-an-md5"}, DIGEST_MD5, SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.etag = ""}, DIGEST_CRC32C | DIGEST_MD5, SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .size = 5}, DIGEST_CRC32C, SIZE_KNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .size = 6}, DIGEST_CRC32C, SIZE_KNOWN, PROOF_NO},
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .etag = "00000000000000000000000000000000"},
		DIGEST_CRC32C | DIGEST_MD5, SIZE_UNKNOWN, PROOF_NO},
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC},
		 .etag = "00000000000000000000000000000000",
		 .etag_is_opaque = true},
		DIGEST_CRC32C | DIGEST_MD5, SIZE_UNKNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .etag = "00000000000000000000000000000000"},
		DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_CRC32C, "mnG7TA==-1"}}, DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.sum = {CHECKSUM_CRC32, HELLO_CRC}}, DIGEST_CRC32C, SIZE_UNKNOWN, PROOF_UNKNOWN},
	{{.sum = {CHECKSUM_CRC32, HELLO_CRC}}, DIGEST_OF(CHECKSUM_CRC32), SIZE_UNKNOWN, PROOF_NO},
	{{.sum = {CHECKSUM_CRC32, HELLO_CRC32}}, DIGEST_OF(CHECKSUM_CRC32), SIZE_UNKNOWN,
		PROOF_YES},
	{{.sum = {CHECKSUM_SHA1, HELLO_SHA1}}, DIGEST_OF(CHECKSUM_SHA1), SIZE_UNKNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_SHA1, HELLO_SHA1 "-1"}, .etag = HELLO_MD5},
		DIGEST_OF(CHECKSUM_SHA1) | DIGEST_MD5, SIZE_UNKNOWN, PROOF_YES},
	{{.sum = {CHECKSUM_SHA1, "mnG7TA=="}}, DIGEST_OF(CHECKSUM_SHA1), SIZE_UNKNOWN,
		PROOF_UNKNOWN},
	{{.sum = {CHECKSUM_MD5, "XUFAKrxLKna5cZ2REBfFkg=="}}, DIGEST_MD5, SIZE_UNKNOWN, PROOF_YES},
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
	CHECK_INT(proof_parts(parts, 2, &by_etag, SIZE_KNOWN), PROOF_NO);
	by_etag.etag_is_opaque = true;
	CHECK_INT(proof_parts(parts, 2, &by_etag, SIZE_KNOWN), PROOF_UNKNOWN);
	snprintf(by_etag.etag, sizeof by_etag.etag, "%s-2", hex);
	CHECK_INT(proof_parts(parts, 2, &by_etag, SIZE_KNOWN), PROOF_YES);
	CHECK_INT(proof_parts(parts, 1, &by_etag, SIZE_UNKNOWN), PROOF_UNKNOWN);
	parts[1].kinds = DIGEST_CRC32C;
	CHECK_INT(proof_parts(parts, 2, &by_etag, SIZE_KNOWN), PROOF_UNKNOWN);
	const struct s3_object by_crc = {.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .size = 5};
	CHECK_INT(proof_parts(parts, 2, &by_crc, SIZE_KNOWN), PROOF_YES);
	const struct s3_object longer = {.sum = {CHECKSUM_CRC32C, HELLO_CRC}, .size = 6};
	CHECK_INT(proof_parts(parts, 2, &longer, SIZE_KNOWN), PROOF_NO);
}

/* Each checksum of two parts: combined or of theirs, as S3 tells it, and what is none. */
static void test_checksums(void)
{
	const unsigned all = (1U << CHECKSUMS) - 1;
	struct sums parts[] = {sums_of("hel", all), sums_of("lo", all)};
	const struct sums content = sums_of("hello", all);
	for (unsigned i = 0; i < CHECKSUMS; i++) {
		const enum checksum kind = (enum checksum)i;
		struct s3_object object = {.size = 5, .sum.kind = kind};
		char base64[CHECKSUM_BASE64_MAX + 1];
		unsigned char bytes[CHECKSUM_BYTES_MAX];
		unsigned n_parts = 77;
		checksum_to_base64(kind, sums_bytes(&content, kind), object.sum.text);
		CHECK_INT(proof_needs(&object, &n_parts), DIGEST_OF(kind));
		CHECK_INT(n_parts, 0);
		CHECK(proof_has_whole_sum(&object));
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN),
			checksum_kinds[kind].combines ? PROOF_YES : PROOF_UNKNOWN);
		CHECK_INT(sums_compose(parts, 2, kind, bytes), 0);
		checksum_to_base64(kind, bytes, base64);
		snprintf(object.sum.text, sizeof object.sum.text, "%s", base64);
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN), PROOF_YES); /* without "-2" */
		snprintf(object.sum.text, sizeof object.sum.text, "%s-2", base64);
		CHECK_INT(proof_needs(&object, &n_parts), DIGEST_OF(kind));
		CHECK_INT(n_parts, 2);
		CHECK(!proof_has_whole_sum(&object));
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN), PROOF_YES);
		object.sum.text[0] = object.sum.text[0] == 'A' ? 'B' : 'A';
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN), PROOF_NO);
		snprintf(object.sum.text, sizeof object.sum.text, "%s-3", base64);
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN), PROOF_UNKNOWN);
		snprintf(object.sum.text, sizeof object.sum.text, "%s-x", base64);
		CHECK_INT(proof_parts(parts, 2, &object, SIZE_KNOWN), PROOF_UNKNOWN);
		CHECK_INT(proof_needs(&object, &n_parts), DIGEST_MD5);
		CHECK_INT(n_parts, 0);
	}
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
	CHECK_INT(proof_part(&sums, &opaque), PROOF_UNKNOWN);
	CHECK_INT(proof_part(&sums, &shorter), PROOF_NO);
}

int main(void)
{
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		const struct sums sums = sums_of("hello", whole[i].kinds);
		CHECK_INT(proof_whole(&sums, &whole[i].object, whole[i].size), whole[i].proof);
	}
	test_part();
	test_parts();
	test_checksums();
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-12"), 12);
	CHECK_INT(proof_etag_parts(HELLO_MD5), 0);
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-x"), 0);
	CHECK_INT(proof_etag_parts(HELLO_MD5 "-10001"), 0);
	CHECK_INT(proof_etag_parts("abc-2"), 0);
	return check_result();
}
