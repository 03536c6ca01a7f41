/* The judgement of an object for a file: every row of the table, and the next step. For a mark: a
 * checksum that both have decides, then the etag; for the content, every checksum that the mark
 * has. */
#include "../check.h"
#include "marks/judge_object.h"
#include "s3/s3_request.h"

#define CONTENT "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
#define MD5     "5d41402abc4b2a76b9719d911017c592" /* of "hello" */

enum whose { NOBODY, OURS, A_COPY, UNNAMED, OTHER_TABLE };
enum sums_are { NO_SUMS, AS_STORED, NOT_AS_STORED };

struct row {
	enum judgement judgement;
	enum proof proof;
	enum whose whose;
	enum sums_are sums;
	const char *content;     /* of the file */
	const char *its_content; /* as the object says */
	const char *suffix, *its_suffix;
	bool in_parts, is_opaque, own_claim, was_done, replaces, replaces_any, is_piped;
};

static const struct row rows[] = {
	{JUDGED_THE_FILE, PROOF_YES, NOBODY},
	{JUDGED_THE_FILE, PROOF_YES, OTHER_TABLE, NOT_AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, NOBODY},
	{JUDGED_FOREIGN, PROOF_UNKNOWN, NOBODY},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, NOT_AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, OTHER_TABLE, AS_STORED},
	{JUDGED_FOREIGN, PROOF_NO, UNNAMED, AS_STORED},
	/* The object alone shows whether it was damaged. */
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, .own_claim = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED},
	{JUDGED_DAMAGED, PROOF_UNKNOWN, OURS, NOT_AS_STORED},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, .was_done = true},
	{JUDGED_EARLIER, PROOF_NO, OURS, NOT_AS_STORED, .is_opaque = true},
	{JUDGED_FOREIGN, PROOF_UNKNOWN, OURS, NOT_AS_STORED, .is_opaque = true},
	/* In parts, or of an earlier version. */
	{JUDGED_EARLIER, PROOF_NO, OURS, NO_SUMS, .in_parts = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NO_SUMS, .in_parts = true, .own_claim = true},
	{JUDGED_EARLIER, PROOF_NO, OURS, NO_SUMS},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NO_SUMS, .own_claim = true},
	/* The version done before. */
	{JUDGED_EARLIER, PROOF_NO, NOBODY, .was_done = true},
	{JUDGED_EARLIER, PROOF_UNKNOWN, NOBODY, .was_done = true},
	{JUDGED_REPLACED, PROOF_NO, OURS, NOT_AS_STORED, .replaces = true},
	{JUDGED_REPLACED, PROOF_UNKNOWN, OURS, AS_STORED, .replaces = true},
	/* Objects of other clients stay, unless all may be replaced. */
	{JUDGED_EARLIER, PROOF_NO, NOBODY, .was_done = true, .replaces = true},
	{JUDGED_EARLIER, PROOF_NO, OTHER_TABLE, AS_STORED, .was_done = true, .replaces = true},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, AS_STORED, .replaces = true},
	{JUDGED_REPLACED, PROOF_NO, NOBODY, .was_done = true, .replaces = true,
		.replaces_any = true},
	{JUDGED_THE_FILE, PROOF_YES, OURS, AS_STORED, .replaces = true},
	/* Another file's object of the same key. */
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, .its_suffix = ".zst"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, NOT_AS_STORED, .suffix = ".zst"},
	/* Logs that are known by their content. */
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, CONTENT, CONTENT},
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, CONTENT, CONTENT, "", ".gz"},
	{JUDGED_THE_CONTENT, PROOF_NO, OTHER_TABLE, AS_STORED, CONTENT, CONTENT},
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT, .in_parts = true},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NO_SUMS, CONTENT, CONTENT, .in_parts = true,
		.is_opaque = true},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT, .is_opaque = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, CONTENT, CONTENT, "", ".gz"},
	{JUDGED_FOREIGN, PROOF_NO, OTHER_TABLE, NOT_AS_STORED, CONTENT, CONTENT},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, CONTENT, "another"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, CONTENT, "another", "", ".gz"},
	{JUDGED_EARLIER, PROOF_NO, OURS, AS_STORED, .its_content = CONTENT},
	/* The input of a pipe is recognised by its key. */
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, .is_piped = true},
	{JUDGED_THE_CONTENT, PROOF_NO, OURS, AS_STORED, .is_piped = true, .suffix = ".gz",
		.its_suffix = ".gz"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, .is_piped = true, .its_suffix = ".gz"},
	{JUDGED_FOREIGN, PROOF_NO, OURS, AS_STORED, .is_piped = true, .suffix = ".gz"},
	{JUDGED_UNPROVEN, PROOF_NO, OURS, NO_SUMS, .is_piped = true},
	{JUDGED_DAMAGED, PROOF_NO, OURS, NOT_AS_STORED, .is_piped = true},
	{JUDGED_FOREIGN, PROOF_NO, OTHER_TABLE, AS_STORED, .is_piped = true},
	{JUDGED_FOREIGN, PROOF_NO, A_COPY, AS_STORED, .is_piped = true},
	{JUDGED_FOREIGN, PROOF_NO, NOBODY, NO_SUMS, .is_piped = true},
};

static struct s3_object object_of(const struct row *row)
{
	struct s3_object object = {.size = 5, .etag_is_opaque = row->is_opaque};
	struct s3_meta *meta = &object.meta;
	snprintf(object.etag, sizeof object.etag, MD5 "%s", row->in_parts ? "-2" : "");
	meta->mtime_ns = 7;
	meta->part_bytes = row->in_parts ? 3 : 0;
	snprintf(meta->table_id, sizeof meta->table_id, "%s",
		row->whose == NOBODY        ? ""
		: row->whose == OTHER_TABLE ? "theirs"
					    : "ours");
	snprintf(meta->claim_id, sizeof meta->claim_id, "%s",
		row->own_claim         ? "now"
		: row->whose == NOBODY ? ""
				       : "another");
	meta->written_for = row->whose == OURS || row->whose == OTHER_TABLE ? S3_WRITTEN_FOR_THIS
			    : row->whose == A_COPY                          ? S3_WRITTEN_FOR_ANOTHER
						   : S3_WRITTEN_FOR_UNKNOWN;
	snprintf(meta->suffix, sizeof meta->suffix, "%s", row->its_suffix ? row->its_suffix : "");
	snprintf(meta->content_id, sizeof meta->content_id, "%s",
		row->its_content ? row->its_content : "");
	s3_parse_sums(row->sums == NO_SUMS     ? ""
		      : row->sums == AS_STORED ? "md5:XUFAKrxLKna5cZ2REBfFkg=="
					       : "md5:AAAAAAAAAAAAAAAAAAAAAA==",
		&meta->sums);
	return object;
}

static void test_rows(void)
{
	bool has_decided[32] = {false};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		const struct s3_object object = object_of(row);
		struct claim claim = {
			.id = "now", .before = {.claim = "before", .has_done = row->was_done}};
		claim.before.done.size = 5;
		snprintf(claim.before.done.etag, sizeof claim.before.done.etag, "%s", object.etag);
		const struct evidence evidence = {.object = &object,
			.proof = row->proof,
			.file = {5, 7, row->content ? row->content : "", row->is_piped},
			.suffix = row->suffix ? row->suffix : "",
			.table_id = "ours",
			.claim = &claim,
			.replaced_etag = row->replaces ? object.etag : "",
			.replaces_any = row->replaces_any};
		if (!CHECK_INT(judge(&evidence), row->judgement))
			fprintf(stderr, "row %zu\n", i);
		has_decided[judge_row(&evidence)] = true;
	}
	for (unsigned i = 0; i < judge_rows; i++)
		if (!CHECK(has_decided[i]))
			fprintf(stderr, "nothing here is decided by row %u of the table\n", i);
}

#define SUM       "CRC32C:AAAAAA=="
#define OTHER_SUM "AAAAAQ=="
#define ZERO_MD5  "00000000000000000000000000000000"

static struct recorded recorded_with(const char *sum, const char *etag)
{
	return (struct recorded){
		.bytes = 4, .sum = sum, .parts_sum = "", .etag = etag, .etag_is_md5 = true};
}

static struct s3_object shown(uint64_t size, const char *sum, const char *etag)
{
	struct s3_object object = {.size = size, .sum = {.kind = CHECKSUM_CRC32C}};
	snprintf(object.sum.text, sizeof object.sum.text, "%s", sum);
	snprintf(object.etag, sizeof object.etag, "%s", etag);
	return object;
}

static enum proof like(
	const struct recorded *recorded, uint64_t size, const char *sum, const char *etag)
{
	const struct s3_object object = shown(size, sum, etag);
	return recorded_matches(recorded, &object);
}

static void test_shown_object_is_compared_with_the_record(void)
{
	const struct recorded both = recorded_with(SUM, ZERO_MD5),
			      etag = recorded_with("", ZERO_MD5), none = recorded_with(SUM, "");
	struct recorded parts = recorded_with("CRC32C:AAAAAQ==", "x-2");
	parts.parts_sum = "CRC32C:AAAAAA==-2";
	CHECK_INT(like(&both, 4, "AAAAAA==", "other"), PROOF_YES);
	CHECK_INT(like(&both, 4, OTHER_SUM, ZERO_MD5), PROOF_NO);
	CHECK_INT(like(&both, 5, "AAAAAA==", ZERO_MD5), PROOF_NO);
	CHECK_INT(like(&both, 4, "AAAAAA==-2", ZERO_MD5), PROOF_YES);
	CHECK_INT(like(&both, 4, "", "other"), PROOF_UNKNOWN);
	CHECK_INT(like(&etag, 4, OTHER_SUM, ZERO_MD5), PROOF_YES);
	CHECK_INT(like(&none, 4, "", ZERO_MD5), PROOF_UNKNOWN);
	CHECK_INT(like(&parts, 4, "AAAAAA==-2", "other"), PROOF_YES);
	CHECK_INT(like(&parts, 4, "AAAAAQ==-2", "x-2"), PROOF_NO);
	CHECK_INT(like(&parts, 4, "AAAAAQ==", "other"), PROOF_YES);
}

static void test_done_version_is_recognised(void)
{
	struct claim claim = {
		.before = {.has_done = true, .done = {.size = 4, .sum = SUM, .etag = ZERO_MD5}}};
	struct s3_object object = shown(4, "", ZERO_MD5);
	CHECK(judge_is_done_version(&claim, &object));
	object = shown(4, "AAAAAA==", ZERO_MD5);
	CHECK(judge_is_done_version(&claim, &object));
	object = shown(4, OTHER_SUM, ZERO_MD5);
	CHECK(!judge_is_done_version(&claim, &object));
	/* The same content under another etag is another object. */
	object = shown(4, "AAAAAA==", "other");
	CHECK(!judge_is_done_version(&claim, &object));
	claim.before.has_done = false;
	object = shown(4, "", ZERO_MD5);
	CHECK(!judge_is_done_version(&claim, &object));
}

static enum proof of_bytes(const struct recorded *recorded, bool same_sum, bool same_md5)
{
	struct sums sums = {.kinds = DIGEST_CRC32C | DIGEST_MD5, .bytes = 4};
	sums.crc32c[3] = !same_sum;
	sums.md5[15] = !same_md5;
	return recorded_matches_bytes(recorded, &sums);
}

static void test_bytes(void)
{
	const struct recorded both = recorded_with(SUM, ZERO_MD5),
			      sum = recorded_with(SUM, "opaque"), md5 = recorded_with("", ZERO_MD5),
			      none = recorded_with("", "opaque");
	CHECK_INT(recorded_digests(&both), DIGEST_CRC32C | DIGEST_MD5);
	CHECK_INT(recorded_digests(&sum), DIGEST_CRC32C);
	CHECK_INT(recorded_digests(&md5), DIGEST_MD5);
	CHECK_INT(recorded_digests(&none), 0);
	CHECK_INT(of_bytes(&both, true, true), PROOF_YES);
	CHECK_INT(of_bytes(&both, false, true), PROOF_NO);
	CHECK_INT(of_bytes(&both, true, false), PROOF_NO);
	CHECK_INT(of_bytes(&sum, true, false), PROOF_YES);
	CHECK_INT(of_bytes(&md5, false, true), PROOF_YES);
	CHECK_INT(of_bytes(&md5, true, false), PROOF_NO);
	CHECK_INT(of_bytes(&none, true, true), PROOF_UNKNOWN);
	/* An etag that only looks like an MD5 proves nothing. */
	struct recorded other = both;
	other.etag_is_md5 = false;
	CHECK_INT(of_bytes(&other, true, false), PROOF_YES);
}

/* The bytes that this program would make of the file are others, so that the metadata decide. */
static void test_encoded(void)
{
	struct s3_object object = object_of(&(struct row){.whose = OURS, .sums = AS_STORED});
	object.meta.ctime_ns = 9;
	CHECK_INT(proof_encoded(&object, "ours", 7, 9), PROOF_YES);
	CHECK_INT(proof_encoded(&object, "ours", 7, 8), PROOF_UNKNOWN);
	CHECK_INT(proof_encoded(&object, "ours", 6, 9), PROOF_NO);
	CHECK_INT(proof_encoded(&object, "theirs", 7, 9), PROOF_UNKNOWN);
	snprintf(object.meta.content_id, sizeof object.meta.content_id, "%s", CONTENT);
	CHECK_INT(proof_encoded(&object, "ours", 6, 8), PROOF_YES);
	object = object_of(&(struct row){.whose = OURS, .sums = NOT_AS_STORED});
	CHECK_INT(proof_encoded(&object, "ours", 7, 0), PROOF_NO);
	object = object_of(&(struct row){.whose = OURS, .sums = AS_STORED});
	CHECK_INT(proof_encoded(&object, "ours", 7, 0), PROOF_UNKNOWN); /* none was recorded */
	object = object_of(&(struct row){.whose = A_COPY, .sums = AS_STORED});
	object.meta.ctime_ns = 9;
	CHECK_INT(proof_encoded(&object, "ours", 7, 9), PROOF_UNKNOWN);
}

static void test_etags_of_parts(void)
{
	static const struct {
		const char *etag;
		unsigned parts;
	} etags[] = {{MD5 "-1", 1}, {MD5 "-10000", 10000}, {MD5 "-10001", 0}, {MD5 "-0", 0},
		{MD5 "-123456", 0}, {MD5 "-", 0}, {MD5 "-3x", 0}, {MD5 "-x", 0}, {MD5 "_3", 0},
		{MD5 "3-3", 0}, {MD5, 0}, {"abc-3", 0}, {"", 0}};
	for (size_t i = 0; i < sizeof etags / sizeof *etags; i++)
		if (!CHECK_INT(proof_etag_parts(etags[i].etag), etags[i].parts))
			fprintf(stderr, "\t%s\n", etags[i].etag);
}

/* The content of a compressed file and its object have their own sizes and checksums. */
static void test_record_of_a_compressed_file(void)
{
	struct version version = {.size = 9, .sum = SUM, .etag = ZERO_MD5, .object_bytes = 4};
	snprintf(version.object_sum, sizeof version.object_sum, "%s", "crc32c:BBBBBB==");
	const struct recorded object = recorded_object(&version),
			      content = recorded_content(&version);
	CHECK_INT(object.bytes, 4);
	CHECK_STRING(object.sum, "crc32c:BBBBBB==");
	CHECK_STRING(object.etag, ZERO_MD5);
	CHECK_INT(content.bytes, 9);
	CHECK_STRING(content.sum, SUM);
	CHECK_STRING(content.etag, "");
	version.object_bytes = 0;
	const struct recorded plain = recorded_content(&version);
	CHECK_INT(plain.bytes, 9);
	CHECK_STRING(plain.etag, ZERO_MD5);
	/* An etag that is not known equals none. */
	const struct recorded nothing = recorded_with("", "");
	const struct s3_object no_etag = shown(4, "", ""), other_size = shown(5, "", "");
	CHECK_INT(recorded_matches(&nothing, &no_etag), PROOF_UNKNOWN);
	CHECK_INT(recorded_matches(&nothing, &other_size), PROOF_NO);
	/* Only etags that may be MD5s are kept as such. */
	struct s3_object object_md5 = shown(4, "", MD5), opaque = shown(4, "", "opaque");
	version_set_object(&version, &object_md5, true);
	CHECK(version.etag_is_md5);
	version_set_object(&version, &object_md5, false);
	CHECK(!version.etag_is_md5);
	version_set_object(&version, &opaque, true);
	CHECK(!version.etag_is_md5);
	object_md5.etag_is_opaque = true;
	version_set_object(&version, &object_md5, true);
	CHECK(!version.etag_is_md5);
	CHECK_STRING(version.etag, MD5);
	/* A version id that a mark cannot hold is left out, and not cut. */
	memset(object_md5.version_id, 'v', VERSION_MAX);
	version_set_object(&version, &object_md5, true);
	CHECK_INT(strlen(version.version_id), VERSION_MAX);
	version.version_id[0] = '\0';
	object_md5.version_id[VERSION_MAX] = 'v';
	version_set_object(&version, &object_md5, true);
	CHECK_STRING(version.version_id, "");
}

/* The digests of the file without which an object cannot be compared with it. */
static void test_needs(void)
{
	static const struct {
		const char *sum, *etag;
		bool is_opaque;
		unsigned kinds, parts;
		bool tells_whole;
	} needs[] = {
		{"", MD5, false, DIGEST_MD5, 0, false},
		{"", MD5, true, DIGEST_MD5, 0, false},
		{"", "opaque", true, DIGEST_MD5, 0, false},
		{"AAAAAA==", MD5, false, DIGEST_CRC32C | DIGEST_MD5, 0, true},
		{"AAAAAA==", MD5, true, DIGEST_CRC32C, 0, true},
		{"AAAAAA==", "opaque", false, DIGEST_CRC32C, 0, true},
		{"AAAAAA==", MD5 "-3", false, DIGEST_CRC32C | DIGEST_MD5, 3, true},
		{"AAAAAA==-2", MD5 "-2", false, DIGEST_CRC32C | DIGEST_MD5, 2, false},
		{"AAAAAA==-2", "opaque", true, DIGEST_CRC32C, 2, false},
		{"AAAAAA==-2", MD5 "-2", true, DIGEST_CRC32C, 2, false},
		{"no sum", MD5, false, DIGEST_MD5, 0, false},
		{"AAAAAA", MD5, false, DIGEST_MD5, 0, false},
	};
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
		struct s3_object object = shown(4, needs[i].sum, needs[i].etag);
		unsigned parts = 99;
		object.etag_is_opaque = needs[i].is_opaque;
		bool good = CHECK_INT(proof_needs(&object, &parts), needs[i].kinds);
		good &= CHECK_INT(parts, needs[i].parts);
		good &= CHECK_INT(proof_has_whole_sum(&object), needs[i].tells_whole);
		if (!good)
			fprintf(stderr, "\trow %zu of needs\n", i);
	}
}

int main(void)
{
	test_rows();
	test_shown_object_is_compared_with_the_record();
	test_done_version_is_recognised();
	test_bytes();
	test_encoded();
	test_etags_of_parts();
	test_record_of_a_compressed_file();
	test_needs();
	return check_result();
}
