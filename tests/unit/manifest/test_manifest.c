/* What is written is read back, and anybody's bytes are a sentence at most. */
#include "../check.h"
#include "manifest/manifest_entry.h"
#include "manifest/manifest_file.h"
#include "manifest/manifest_name.h"
#include "manifest/manifest_signature.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

static const struct version version = {.size = 7,
	.mtime_ns = -1,
	.sum = "crc32c:AAAAAA==",
	.etag = "d41d8cd98f00b204e9800998ecf8427e",
	.etag_is_md5 = true,
	.version_id = "v1",
	.parts_sum = "crc32:AAAAAA==-2"};

static struct manifest_entry entry_of(const char *key, const char *path)
{
	struct manifest_entry entry = {
		.event = "uploaded", .bucket = "b", .key = key, .path = path};
	manifest_entry_of_version(&entry, &version);
	return entry;
}

static void test_line(void)
{
	const struct manifest_entry entry = entry_of("p/\"a\"\n", "/x/\xff");
	struct manifest_entry read;
	struct problem problem = {0};
	json_t *owner = NULL;
	char *line = manifest_entry_line(&entry);
	if (!CHECK(line != NULL))
		return;
	CHECK(!strchr(line, '\n'));
	CHECK(strstr(line, "\"mtime\":\"1969-12-31T23:59:59.999999999Z\"") != NULL);
	CHECK(strstr(line, "\"path_bytes\":\"L3gv/w==\"") != NULL);
	CHECK(manifest_entry_read(line, strlen(line), &read, &owner, &problem));
	CHECK_STRING(read.key, entry.key);
	CHECK_STRING(read.version_id, "v1");
	CHECK_STRING(read.sums[CHECKSUM_CRC32C], "AAAAAA==");
	CHECK_STRING(read.sums[CHECKSUM_CRC32], "AAAAAA==-2");
	CHECK_STRING(read.sums[CHECKSUM_MD5], "1B2M2Y8AsgTpgAmY7PhCfg==");
	CHECK_INT(read.size, 7);
	CHECK(read.etag_is_md5);
	json_decref(owner);
	free(line);
}

/* A server may send anything as an etag. */
static void test_what_is_no_text_is_left_out(void)
{
	struct manifest_entry entry = entry_of("k", "/x");
	entry.etag = "\xff";
	char *line = manifest_entry_line(&entry);
	if (!CHECK(line != NULL))
		return;
	CHECK(!strstr(line, "\"etag\""));
	CHECK(strstr(line, "\"version_id\":\"v1\"") != NULL);
	free(line);
}

static void test_bad_lines(void)
{
	static const char *const lines[] = {"", "null", "[]", "{", "{}", "{\"bucket\":\"b\"}",
		"{\"bucket\":1,\"key\":\"k\",\"size\":1,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":-1,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1e3,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":[]}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{\"md5\":{}}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{\"crc32c\":\"AAAA\"}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{\"crc32c\":\"AAAA=-2\"}}",
		"{\"bucket\":\"b\",\"key\":\"\",\"size\":1,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"key\":\"\xff\",\"size\":1,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{}}"};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct manifest_entry entry;
		struct problem problem = {0};
		json_t *owner = NULL;
		if (!CHECK(!manifest_entry_read(
			    lines[i], strlen(lines[i]), &entry, &owner, &problem)) ||
			!CHECK(*problem.text))
			fprintf(stderr, "\t%s\n", lines[i]);
	}
}

/* The bytes of a manifest with so many lines; the caller's to free. */
static unsigned char *spooled(unsigned lines, size_t *ret_n)
{
	struct manifest_spool *spool = NULL;
	struct problem problem = {0};
	char key[32];
	CHECK_INT(manifest_spool_new(DIGEST_CRC32C, &spool, &problem), 0);
	for (unsigned i = 0; i < lines; i++) {
		snprintf(key, sizeof key, "p/%u", i);
		const struct manifest_entry entry = entry_of(key, "/x");
		char *line = manifest_entry_line(&entry);
		manifest_spool_add(spool, line);
		free(line);
	}
	CHECK(manifest_spool_finish(spool, &problem));
	struct http_body body = manifest_spool_body(spool);
	unsigned char *bytes = malloc((size_t)body.bytes);
	size_t n = 0;
	long got;
	while (n < body.bytes && (got = body.read(body.arg, bytes + n, (size_t)body.bytes - n)) > 0)
		n += (size_t)got;
	CHECK_INT(n, body.bytes);
	manifest_spool_free(spool);
	*ret_n = n;
	return bytes;
}

static void test_line_without_memory(void)
{
	struct manifest_spool *spool = NULL;
	struct problem problem = {0};
	CHECK_INT(manifest_spool_new(DIGEST_CRC32C, &spool, &problem), 0);
	manifest_spool_add(spool, NULL);
	manifest_spool_add(spool, "{}");
	CHECK(!manifest_spool_finish(spool, &problem));
	CHECK_STRING(problem.text, "out of memory");
	manifest_spool_free(spool);
}

/* How many entries were read; *ret_end is how it ended. */
static unsigned read_bytes(const void *bytes, size_t n, int *ret_end)
{
	struct problem problem = {0};
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	unsigned entries = 0;
	const int fd = manifest_temporary_file(&problem);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	CHECK_INT(manifest_reader_new(fd, &reader, &problem), 0);
	while ((*ret_end = manifest_reader_next(reader, &entry, &problem)) > 0)
		entries++;
	CHECK(*ret_end == 0 || *problem.text);
	manifest_reader_free(reader);
	close(fd);
	return entries;
}

static void test_spool_and_reader(void)
{
	size_t n;
	int end;
	unsigned char *bytes = spooled(5000, &n);
	CHECK_INT(read_bytes(bytes, n, &end), 5000);
	CHECK_INT(end, 0);
	free(bytes);
	bytes = spooled(0, &n);
	CHECK_INT(read_bytes(bytes, n, &end), 0);
	CHECK_INT(end, 0);
	free(bytes);
}

/* Cut anywhere, or with any bit flipped: an error, and never more than there was. The header of
 * gzip has bits that say nothing of the content. Where a bit makes deflate copy the same bytes from
 * another place, the content is what it was, and is read to its end. */
static void test_damage(void)
{
	size_t n;
	int end;
	unsigned char *bytes = spooled(3, &n);
	for (size_t cut = 0; cut < n; cut++) {
		CHECK(read_bytes(bytes, cut, &end) <= 3);
		CHECK_INT(end, -EBADMSG);
	}
	for (size_t bit = 10 * 8; bit < n * 8; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
		const unsigned entries = read_bytes(bytes, n, &end);
		CHECK(end == 0 ? entries == 3 : end == -EBADMSG && entries <= 3);
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
	}
	free(bytes);
}

static void test_names(void)
{
	struct text key = TEXT(500);
	const struct manifest_run run = {"p/q", "web.1/x", "00112233445566778899aabbccddeeff", 0};
	manifest_add_key(&key, &run);
	CHECK_STRING(text_string(&key),
		"p/q/_s3once/runs/dt=1970-01-01/host=web.1_x/"
		"19700101T000000Z-00112233445566778899aabbccddeeff.jsonl.gz");
	CHECK(manifest_is_key(text_string(&key)));
	CHECK(manifest_is_key(text_string(&key) + 4));
	text_add(&key, ".sig");
	CHECK(manifest_is_key(text_string(&key)));
	text_add(&key, "x");
	CHECK(!manifest_is_key(text_string(&key)));
	static const char *const others[] = {"", "_s3once/runs/", "_s3once/runs/dt=1970-01-01",
		"_s3once/runs/dt=1970-01-01/host=", "_s3once/runs/dt=1970-01-01/host=a/x.jsonl.gz",
		"x_s3once/runs/dt=1970-01-01/host=a/19700101T.jsonl.gz",
		"_s3once/runs/dt=1970-01-01/host=a/b/19700101T.jsonl.gz", "_s3once/runs/dt="};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK(!manifest_is_key(others[i]));
	text_clear(&key);
}

static void test_derive(void)
{
	const struct manifest_entry entry = entry_of("p/a\\ \nü", "/x");
	struct text line = TEXT(500);
	struct problem problem = {0};
	CHECK(manifest_derive(MANIFEST_MD5SUM, &entry, "p/", &line, &problem));
	CHECK_STRING(text_string(&line), "\\d41d8cd98f00b204e9800998ecf8427e  a\\\\ \\nü");
	text_reset(&line);
	CHECK(manifest_derive(MANIFEST_S3_BATCH_VERSIONS, &entry, "", &line, &problem));
	CHECK_STRING(text_string(&line), "b,p/a%5C%20%0A%C3%BC,v1");
	CHECK(!manifest_derive(MANIFEST_SHA256SUM, &entry, "p/", &line, &problem));
	CHECK(strstr(problem.text, "--checksum sha256") != NULL);
	CHECK(!manifest_derive(MANIFEST_MD5SUM, &entry, "q/", &line, &problem));
	static const char *const outside[] = {"p/", "p//x", "p/..", "p/../x", "p/x/../y", "p/x/.."};
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		const struct manifest_entry out = entry_of(outside[i], "/x");
		CHECK(!manifest_derive(MANIFEST_MD5SUM, &out, "p/", &line, &problem));
		CHECK(strstr(problem.text, "not a file below the folder"));
	}
	const struct manifest_entry dash = entry_of("p/-", "/x"),
				    dots = entry_of("p/..x/y..", "/x");
	text_reset(&line);
	CHECK(manifest_derive(MANIFEST_MD5SUM, &dash, "p/", &line, &problem));
	CHECK_STRING(text_string(&line), "d41d8cd98f00b204e9800998ecf8427e  ./-");
	CHECK(manifest_derive(MANIFEST_MD5SUM, &dots, "p/", &line, &problem));
	text_clear(&line);
}

static void test_bad_keys(void)
{
	EVP_PKEY *key = NULL;
	struct problem problem = {0};
	CHECK_INT(signing_key_read("/nonexistent/key", true, &key, &problem), -ENOENT);
	CHECK_INT(signing_key_read("/dev/null", true, &key, &problem), -EINVAL);
	CHECK_INT(signing_key_read("/dev/null", false, &key, &problem), -EINVAL);
	CHECK(!key);
}

int main(void)
{
	test_line();
	test_what_is_no_text_is_left_out();
	test_bad_lines();
	test_line_without_memory();
	test_spool_and_reader();
	test_damage();
	test_names();
	test_derive();
	test_bad_keys();
	return check_result();
}
