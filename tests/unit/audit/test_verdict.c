/* An object beside its mark: a checksum that both have decides, then the etag; of the content,
 * every sum that the mark has. */
#include "../check.h"
#include "audit/verdict.h"
#include <string.h>

#define SUM       "CRC32C:AAAAAA=="
#define OTHER_SUM "AAAAAQ=="
#define MD5       "00000000000000000000000000000000"

static struct mark_row row_with(const char *sum, const char *etag)
{
	return (struct mark_row){.key = "k",
		.has_done = true,
		.etag_is_md5 = true,
		.size = 4,
		.etag = etag,
		.sum = sum,
		.parts_sum = ""};
}

static enum object_verdict of_head(
	const struct mark_row *row, uint64_t size, const char *sum, const char *etag)
{
	struct s3_object object = {.size = size, .sum = {.kind = CHECKSUM_CRC32C}};
	struct problem problem = {0};
	snprintf(object.sum.text, sizeof object.sum.text, "%s", sum);
	snprintf(object.etag, sizeof object.etag, "%s", etag);
	const enum object_verdict verdict = verdict_of_head(row, &object, &problem);
	CHECK((verdict == VERDICT_SAME) == !*problem.text);
	return verdict;
}

static void test_by_head(void)
{
	const struct mark_row both = row_with(SUM, MD5), etag = row_with("", MD5),
			      none = row_with(SUM, "");
	CHECK_INT(of_head(&both, 4, "AAAAAA==", "other"), VERDICT_SAME);
	CHECK_INT(of_head(&both, 4, OTHER_SUM, MD5), VERDICT_DIFFERS);
	CHECK_INT(of_head(&both, 5, "AAAAAA==", MD5), VERDICT_DIFFERS);
	CHECK_INT(of_head(&both, 4, "AAAAAA==-2", MD5), VERDICT_SAME);
	CHECK_INT(of_head(&both, 4, "", "other"), VERDICT_OTHER_ETAG);
	CHECK_INT(of_head(&etag, 4, OTHER_SUM, MD5), VERDICT_SAME);
	CHECK_INT(of_head(&none, 4, "", MD5), VERDICT_UNTOLD);
}

static enum object_verdict of_bytes(const struct mark_row *row, bool same_sum, bool same_md5)
{
	struct sums sums = {.kinds = DIGEST_CRC32C | DIGEST_MD5, .bytes = 4};
	struct problem problem = {0};
	sums.crc32c[3] = !same_sum;
	sums.md5[15] = !same_md5;
	const enum object_verdict verdict = verdict_of_bytes(row, &sums, &problem);
	CHECK((verdict == VERDICT_SAME) == !*problem.text);
	return verdict;
}

static void test_by_content(void)
{
	const struct mark_row both = row_with(SUM, MD5), sum = row_with(SUM, "opaque"),
			      md5 = row_with("", MD5);
	CHECK_INT(verdict_digests(&both), DIGEST_CRC32C | DIGEST_MD5);
	CHECK_INT(verdict_digests(&sum), DIGEST_CRC32C);
	CHECK_INT(verdict_digests(&md5), DIGEST_MD5);
	CHECK_INT(of_bytes(&both, true, true), VERDICT_SAME);
	CHECK_INT(of_bytes(&both, false, true), VERDICT_DIFFERS);
	CHECK_INT(of_bytes(&both, true, false), VERDICT_DIFFERS);
	CHECK_INT(of_bytes(&sum, true, false), VERDICT_SAME);
	CHECK_INT(of_bytes(&md5, false, true), VERDICT_SAME);
	CHECK_INT(of_bytes(&md5, true, false), VERDICT_DIFFERS);
}

int main(void)
{
	test_by_head();
	test_by_content();
	return check_result();
}
