/* Whether an object in S3 has the content of a file: by the sizes of parts that it is told, and by
 * those that it guesses. */
#include "steps.h"
#include "upload/file/multipart.h"
#include "upload/file/payload.h"
#include <errno.h>
#include <openssl/evp.h>

#define MIB (1U << 20)

static unsigned char content[12 * MIB];

/* The etag of an object that was sent in parts of this size. */
static void etag_of_parts(size_t part_bytes, char ret[static 50])
{
	unsigned char all[16 * 64], hash[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	for (size_t at = 0; at < sizeof content; at += part_bytes) {
		const size_t left = sizeof content - at;
		EVP_Digest(content + at, left < part_bytes ? left : part_bytes, all + n++ * 16ULL,
			NULL, EVP_md5(), NULL);
	}
	EVP_Digest(all, n * 16ULL, hash, NULL, EVP_md5(), NULL);
	hex_encode(hash, 16, ret);
	snprintf(ret + 32, 18, "-%u", n);
}

/* A checksum of the whole, or of parts if it is not 0. */
static struct s3_sum sum_of(enum checksum kind, size_t part_bytes)
{
	struct sums parts[64];
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	struct s3_sum sum = {.kind = kind};
	size_t n = 0;
	const size_t each = part_bytes ? part_bytes : sizeof content;
	for (size_t at = 0; at < sizeof content; at += each) {
		const size_t left = sizeof content - at;
		CHECK_INT(digest_bytes(DIGEST_OF(kind), content + at, left < each ? left : each,
				  &parts[n++]),
			0);
	}
	if (!part_bytes) {
		checksum_to_base64(kind, sums_bytes(&parts[0], kind), sum.text);
		return sum;
	}
	CHECK_INT(sums_compose(parts, n, kind, bytes), 0);
	checksum_to_base64(kind, bytes, sum.text);
	snprintf(sum.text + strlen(sum.text), 6, "-%u", (unsigned)n % 100);
	return sum;
}

#define WHOLE    SIZE_MAX /* in the place of the size of parts */
#define HEAD_ONE "HEAD /b/k?partNumber=1\n"

/* The shown values of an object, and the result. The sizes are in MiB. */
static const struct {
	const char *name;
	size_t parts;        /* it was sent in; 0: of no such size */
	size_t told, first;  /* its metadata, and the reply to HEAD ?partNumber=1, tell of that */
	enum checksum whole; /* CHECKSUMS: it shows no checksum of the whole */
	bool is_changed;     /* its checksum of the whole is that of other content */
	enum proof proof;
	const char *asked;
	size_t sent_part_mib; /* that the mark gets */
} rows[] = {
	{"its metadata tell the size", 5, 5, 0, CHECKSUMS, false, PROOF_YES, "", 5},
	{"S3 tells it", 5, 0, 5, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 5},
	{"an unusual size that S3 tells", 7, 0, 7, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 7},
	{"the metadata tell a size of another number of parts", 8, 5, 0, CHECKSUMS, false,
		PROOF_YES, "", 8},
	{"so does S3", 8, 0, 5, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 8},
	{"S3 tells the size of the whole", 8, 0, 12, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 8},
	{"the first guess", 8, 0, 0, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 8},
	{"a later guess", 10, 0, 0, CHECKSUMS, false, PROOF_YES, HEAD_ONE, 10},
	{"no guess fits, and nothing else is told", 7, 0, 0, CHECKSUMS, false, PROOF_UNKNOWN,
		HEAD_ONE, 0},
	{"no guess fits, and the checksum of the whole does", 7, 0, 0, CHECKSUM_CRC32C, false,
		PROOF_YES, HEAD_ONE, 0},
	{"no guess fits, and the checksum of the whole does not", 7, 0, 0, CHECKSUM_CRC32C, true,
		PROOF_NO, HEAD_ONE, 0},
	{"no guess fits, and a checksum that does not combine does", 7, 0, 0, CHECKSUM_SHA256,
		false, PROOF_YES, HEAD_ONE, 0},
	{"no guess fits, and a checksum that does not combine does not", 7, 0, 0, CHECKSUM_SHA256,
		true, PROOF_NO, HEAD_ONE, 0},
	{"a size that is told does not fit", 10, 8, 0, CHECKSUMS, false, PROOF_NO, "", 0},
	{"it was sent in one part", 12, 0, 0, CHECKSUMS, false, PROOF_YES, "", 12},
	{"it was sent whole", WHOLE, 0, 0, CHECKSUMS, false, PROOF_YES, "", 0},
	{"it was sent whole, and is other content", WHOLE, 0, 0, CHECKSUM_CRC32C, true, PROOF_NO,
		"", 0},
};

static void test_row(size_t i)
{
	char first[200];
	struct s3_object object = {.size = sizeof content};
	struct steps steps;
	enum proof proof;
	snprintf(first, sizeof first,
		STEPS_REPLY("206", "Content-Length: %zu\r\nETag: \"e\"\r\n", ""),
		rows[i].first * MIB);
	const struct script_step script[] = {
		{rows[i].first ? first : STEPS_REPLY("501", "", ""), .close = true}};
	etag_of_parts(rows[i].parts == WHOLE ? sizeof content : rows[i].parts * MIB, object.etag);
	if (rows[i].parts == WHOLE) {
		unsigned char hash[EVP_MAX_MD_SIZE];
		EVP_Digest(content, sizeof content, hash, NULL, EVP_md5(), NULL);
		hex_encode(hash, 16, object.etag);
	}
	object.meta.part_bytes = rows[i].told * MIB;
	if (rows[i].whole != CHECKSUMS) {
		content[0] ^= rows[i].is_changed;
		object.sum = sum_of(rows[i].whole, 0);
		content[0] ^= rows[i].is_changed;
	}
	if (!steps_make(&steps, content, sizeof content) || !steps_begin(&steps, script, 1))
		return;
	struct file *file = steps.file;
	/* Values of an earlier object, of which nothing may remain. */
	file->sent_part_bytes = 99;
	snprintf(file->parts_sum, sizeof file->parts_sum, "crc32c:before");
	file->object_sums.bytes = 99;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	bool good = CHECK_INT(proof, rows[i].proof);
	if (proof == PROOF_YES) {
		good &= CHECK_INT(file->sent_part_bytes, rows[i].sent_part_mib * MIB);
		good &= CHECK_STRING(file->parts_sum, "");
		good &= CHECK_INT(file->content_sums.bytes, sizeof content);
		good &= CHECK((file->content_sums.kinds & DIGEST_OF(checksum_default())) != 0);
	}
	good &= CHECK_INT(file->object_sums.bytes, 0);
	steps_asked(&steps, rows[i].asked);
	if (!good)
		fprintf(stderr, "\t%s\n", rows[i].name);
	steps_end(&steps);
}

/* The checksum of parts that do not combine stays, for the mark. */
static void test_checksum_of_parts(void)
{
	struct s3_object object = {.size = sizeof content, .meta.part_bytes = 5 * MIB};
	char expected[PARTS_SUM_MAX + 1];
	struct steps steps;
	enum proof proof;
	object.sum = sum_of(CHECKSUM_SHA256, 5 * MIB);
	snprintf(object.etag, sizeof object.etag, "opaque");
	snprintf(expected, sizeof expected, "sha256:%s", object.sum.text);
	if (!steps_make(&steps, content, sizeof content) || !steps_begin(&steps, NULL, 0))
		return;
	CHECK_INT(file_compare(steps.worker, steps.file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	CHECK_STRING(steps.file->parts_sum, expected);
	object.size--; /* nothing is read of a file of another size */
	CHECK_INT(file_compare(steps.worker, steps.file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* An object that this build cannot make again is known by what its metadata tell of the content. */
static void test_content_of_another_compressor(void)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	struct s3_object object = {.size = 1000};
	struct s3_meta *meta = &object.meta;
	struct steps steps;
	enum proof proof;
	if (!steps_make(&steps, content, sizeof content))
		return;
	steps.options.compress = "zstd";
	if (!steps_begin(&steps, NULL, 0))
		return;
	struct file *file = steps.file;
	SHA256(content, sizeof content, hash);
	hex_encode(hash, sizeof hash, meta->content_id);
	snprintf(meta->encoding, sizeof meta->encoding, "zstd-0.0.1:3");
	snprintf(meta->table_id, sizeof meta->table_id, "%s", steps.run->space.settings.table_id);
	snprintf(meta->suffix, sizeof meta->suffix, ".zst");
	meta->content_bytes = sizeof content;
	meta->written_for = S3_WRITTEN_FOR_THIS;
	meta->part_bytes = 5 * MIB;
	snprintf(file->parts_sum, sizeof file->parts_sum, "sha256:before-3");
	object.sum = (struct s3_sum){.kind = CHECKSUM_CRC32C, .text = "AAAAAA=="};
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	CHECK_INT(file->object_sums.bytes, 1000);
	CHECK_INT(file->sent_part_bytes, 5 * MIB);
	CHECK_STRING(file->parts_sum, "");
	CHECK(file->content_sums.kinds != 0);
	meta->content_bytes--;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	CHECK_INT(file->object_sums.bytes, 0);
	meta->content_bytes++;
	meta->content_id[0] ^= 1;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	meta->content_id[0] ^= 1;
	meta->table_id[0] ^= 1;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_UNKNOWN);
	meta->table_id[0] ^= 1;
	/* The same compressor by name has made other bytes of the same content. The object has the
	 * bytes that were sent. */
	snprintf(meta->encoding, sizeof meta->encoding, "%s", file->encoding->name);
	meta->part_bytes = 0;
	meta->sums = (struct sums){.kinds = DIGEST_CRC32C};
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	CHECK_INT(file->object_sums.bytes, 1000);
	CHECK_INT(file->object_sums.kinds, 0);
	/* Other bytes than those that were sent are no proof. */
	object.sum.text[4] = 'B';
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	/* The bytes prove it whoever has written the object. */
	const struct range whole = file_whole_range(file, file->encoding);
	struct sums sums;
	CHECK_INT(range_digest(steps.worker, NULL, DIGEST_CRC32C, &whole, &sums), 0);
	checksum_to_base64(CHECKSUM_CRC32C, sums_bytes(&sums, CHECKSUM_CRC32C), object.sum.text);
	object.size = sums.bytes;
	meta->table_id[0] ^= 1;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	CHECK_INT(file->object_sums.bytes, sums.bytes);
	CHECK((file->object_sums.kinds & DIGEST_CRC32C) != 0);
	/* So do those of an object in parts. The checksum of the content stays its own. */
	const struct sums of_content = file->content_sums;
	struct sums halves[2];
	const struct plan plan = {.part_bytes = sizeof content / 2, .n_parts = 2};
	for (unsigned i = 0; i < 2; i++) {
		const struct range half = file_part_range(file, file->encoding, &plan, i);
		CHECK_INT(range_digest(steps.worker, NULL, DIGEST_CRC32C, &half, &halves[i]), 0);
	}
	sums = sums_combine(halves, 2);
	checksum_to_base64(CHECKSUM_CRC32C, sums_bytes(&sums, CHECKSUM_CRC32C), object.sum.text);
	object.size = sums.bytes;
	meta->part_bytes = plan.part_bytes;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	CHECK_INT(file->object_sums.bytes, sums.bytes);
	CHECK_INT(file->content_sums.bytes, sizeof content);
	CHECK(sums_equal(&file->content_sums, &of_content, checksum_default()));
	meta->part_bytes = 0;
	/* So do those of another encoding than that of this run, if the build has it. */
	struct encoding gzip;
	CHECK_INT(encoding_parse("gzip:1", &gzip, &steps.problem), 0);
	const struct range by_gzip = file_whole_range(file, &gzip);
	CHECK_INT(range_digest(steps.worker, NULL, DIGEST_CRC32C, &by_gzip, &sums), 0);
	checksum_to_base64(CHECKSUM_CRC32C, sums_bytes(&sums, CHECKSUM_CRC32C), object.sum.text);
	snprintf(meta->encoding, sizeof meta->encoding, "%s", gzip.name);
	object.size = sums.bytes;
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	object.sum.text[0] = object.sum.text[0] == 'A' ? 'B' : 'A';
	/* The mark gets a checksum of the content also if nothing else had to read that. */
	file->content_sums = (struct sums){0};
	object.meta = (struct s3_meta){.mtime_ns = 1};
	CHECK_INT(file_compare(steps.worker, file, &object, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	CHECK((file->content_sums.kinds & DIGEST_OF(checksum_default())) != 0);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* Overwrites a byte of the file, and opens it again as one that changed while it was read. */
static void change(struct steps *steps)
{
	const int fd = open(steps->path, O_WRONLY | O_CLOEXEC);
	content[0] ^= 1;
	CHECK_INT(pwrite(fd, content, 1, 0), 1);
	close(fd);
	steps->file->step = STEP_LOOK;
	CHECK_INT(file_handle_read_error(steps->worker, steps->file, -ESTALE), STEP_LOOK);
}

/* A file that has changed is compared by its new content, not by an earlier checksum. */
static void test_file_that_changes(void)
{
	const struct s3_object before = {
		.size = sizeof content, .etag = "opaque", .sum = sum_of(CHECKSUM_CRC32C, 0)};
	struct steps steps;
	enum proof proof;
	if (!steps_make(&steps, content, sizeof content) || !steps_begin(&steps, NULL, 0))
		return;
	CHECK_INT(file_compare(steps.worker, steps.file, &before, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	change(&steps);
	CHECK_INT(file_compare(steps.worker, steps.file, &before, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_NO);
	change(&steps); /* back to what it was */
	CHECK_INT(file_compare(steps.worker, steps.file, &before, &proof), STEP_NEXT);
	CHECK_INT(proof, PROOF_YES);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* The metadata of a compressed object name the content that is sent, even if the file has changed
 * since its checksum was first computed. */
static void test_metadata_of_a_file_that_changes(void)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char hex[2 * sizeof hash + 1];
	struct steps steps;
	if (!steps_make(&steps, content, sizeof content))
		return;
	steps.options.compress = "zstd";
	if (!steps_begin(&steps, NULL, 0))
		return;
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(multipart_add_content_sha256(steps.worker, steps.file), STEP_NEXT);
		SHA256(content, sizeof content, hash);
		hex_encode(hash, sizeof hash, hex);
		CHECK_STRING(file_meta(steps.worker, steps.file).content_id, hex);
		change(&steps);
	}
	steps_asked(&steps, "");
	steps_end(&steps);
}

int main(void)
{
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (unsigned char)(i * 7919 >> 8);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(i);
	test_checksum_of_parts();
	test_content_of_another_compressor();
	test_file_that_changes();
	test_metadata_of_a_file_that_changes();
	return check_result();
}
