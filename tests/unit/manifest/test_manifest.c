/* A manifest is read back as it was written, and foreign bytes cause a sentence at most. */
#include "../check.h"
#include "manifest/manifest_entry.h"
#include "manifest/manifest_file.h"
#include "manifest/manifest_name.h"
#include "manifest/manifest_signature.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
	manifest_entry_set_version(&entry, &version);
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

/* Each field of the entry stays what it was, and is null where there is nothing. */
static void test_fields(void)
{
	static const struct version compressed = {.size = 9,
		.mtime_ns = 1000000005,
		.sum = "crc32c:AAAAAA==",
		.object_sum = "crc32c:AAAAAQ==",
		.object_bytes = 5,
		.content_id = "c1",
		.etag = "e-2",
		.etag_is_md5 = true};
	struct manifest_entry entry = {
		.event = "adopted", .bucket = "b", .key = "k.zst", .path = "/k"};
	struct manifest_entry read;
	struct problem problem = {0};
	json_t *owner = NULL;
	manifest_entry_set_version(&entry, &compressed);
	char *line = manifest_entry_line(&entry);
	CHECK_STRING(line,
		"{\"event\":\"adopted\",\"bucket\":\"b\",\"key\":\"k.zst\",\"version_id\":null,"
		"\"size\":5,\"etag\":\"e-2\",\"etag_is_md5\":true,"
		"\"checksums\":{\"crc32c\":\"AAAAAQ==\"},\"content_id\":\"c1\",\"path\":\"/k\","
		"\"file_size\":9,\"mtime\":\"1970-01-01T00:00:01.000000005Z\"}");
	CHECK(manifest_entry_read(line, strlen(line), &read, &owner, &problem));
	CHECK_STRING(read.event, "adopted");
	CHECK_STRING(read.bucket, "b");
	CHECK_STRING(read.path, "/k");
	CHECK_STRING(read.version_id, "");
	CHECK_STRING(read.etag, "e-2");
	CHECK_STRING(read.content, "c1");
	CHECK_INT(read.size, 5);
	CHECK_STRING(read.sums[CHECKSUM_MD5], ""); /* an etag of parts is no MD5 of the whole */
	json_decref(owner);
	free(line);
}

/* Of the checksums of one kind, that of the whole object stays, and a computed one replaces it. */
static void test_checksums(void)
{
	static const struct version both = {.sum = "sha256:"
						   "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
		.parts_sum = "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=-2",
		.etag = "900150983cd24fb0d6963f7d28e17f72"};
	struct manifest_entry entry = {.event = "skipped"};
	struct digest digest;
	struct sums sums;
	manifest_entry_set_version(&entry, &both);
	CHECK_STRING(entry.sums[CHECKSUM_SHA256], "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
	CHECK_STRING(entry.sums[CHECKSUM_MD5], ""); /* the etag is not said to be one */
	CHECK_INT(digest_init(&digest, DIGEST_OF(CHECKSUM_CRC32C) | DIGEST_OF(CHECKSUM_SHA256)), 0);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	manifest_entry_set_sums(&entry, &sums);
	CHECK_STRING(entry.sums[CHECKSUM_CRC32C], "AAAAAA==");
	CHECK_STRING(entry.sums[CHECKSUM_SHA256], "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
	CHECK_STRING(entry.sums[CHECKSUM_SHA1], "");
}

/* A server may send anything as an etag. */
static void test_etag_that_is_no_text_is_dropped(void)
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
		"{\"bucket\":\"\",\"key\":\"k\",\"size\":1,\"checksums\":{}}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{},\"event\":1}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{},\"etag\":1}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{},\"version_id\":1}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{},\"content_id\":1}",
		"{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{},\"path\":1}",
		"{\"bucket\":\"b\",\"key\":1,\"size\":1,\"checksums\":{}}",
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

/* A key or an etag that no object has would not fit where it is used. */
static void test_long_values(void)
{
	for (unsigned is_etag = 0; is_etag < 2; is_etag++)
		for (unsigned is_longer = 0; is_longer < 2; is_longer++) {
			const int most = is_etag ? S3_ETAG_MAX : KEY_BYTES_MAX + SUFFIX_MAX;
			struct manifest_entry entry;
			struct problem problem = {0};
			json_t *owner = NULL;
			char line[4 * KEY_BYTES_MAX];
			const int n = snprintf(line, sizeof line,
				"{\"bucket\":\"b\",\"key\":\"k%0*d\",\"etag\":\"e%0*d\","
				"\"size\":1,\"checksums\":{}}",
				is_etag ? 1 : most - 1 + (int)is_longer, 0,
				is_etag ? most - 1 + (int)is_longer : 1, 0);
			CHECK_INT(manifest_entry_read(line, (size_t)n, &entry, &owner, &problem),
				!is_longer);
			json_decref(owner);
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

/* A manifest of many buffers has all lines in their order, and the checksum of all its bytes. */
static void test_many_lines(void)
{
	enum { LINES = 900, DIGITS = 400 };
	struct manifest_spool *spool = NULL;
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	struct problem problem = {0};
	struct sums sums;
	unsigned random = 1, again = 1;
	char key[DIGITS + 1];
	CHECK_INT(manifest_spool_new(DIGEST_CRC32C, &spool, &problem), 0);
	for (unsigned i = 0; i < LINES; i++) {
		for (unsigned at = 0; at < DIGITS; at++) {
			random = random * 1103515245 + 12345;
			key[at] = (char)('a' + (random >> 16) % 26);
		}
		key[DIGITS] = '\0';
		entry = entry_of(key, "/x");
		char *line = manifest_entry_line(&entry);
		manifest_spool_add(spool, line);
		free(line);
	}
	CHECK(manifest_spool_finish(spool, &problem));
	/* It is sent twice, in pieces. */
	const int fd = manifest_temporary_file(&problem);
	for (int i = 0; i < 2; i++) {
		const struct http_body body = manifest_spool_body(spool);
		unsigned char *bytes = malloc(body.bytes);
		uint64_t n = 0;
		long got;
		while (n < body.bytes && (got = body.read(body.arg, bytes + n, 5000)) > 0)
			n += (uint64_t)got;
		CHECK(n == body.bytes && n > 3 * (64U << 10));
		CHECK_INT(digest_bytes(DIGEST_CRC32C, bytes, n, &sums), 0);
		CHECK(sums_equal(&sums, manifest_spool_sums(spool), CHECKSUM_CRC32C));
		CHECK_INT(manifest_spool_sums(spool)->bytes, n);
		CHECK_INT(pwrite(fd, bytes, n, 0), (int64_t)n);
		free(bytes);
	}
	manifest_spool_free(spool);
	CHECK_INT(manifest_reader_new(fd, &reader, &problem), 0);
	unsigned lines = 0;
	while (manifest_reader_next(reader, &entry, &problem) > 0) {
		bool is_same = strlen(entry.key) == DIGITS;
		for (unsigned at = 0; is_same && at < DIGITS; at++) {
			again = again * 1103515245 + 12345;
			is_same = entry.key[at] == (char)('a' + (again >> 16) % 26);
		}
		if (!CHECK(is_same))
			break;
		lines++;
	}
	CHECK_INT(lines, LINES);
	manifest_reader_free(reader);
	close(fd);
}

/* An etag that says it is an MD5 is one only if it has the length of one. */
static void test_short_md5(void)
{
	struct version odd = version;
	struct manifest_entry entry = {.event = "uploaded", .bucket = "b", .key = "k", .path = "p"};
	snprintf(odd.etag, sizeof odd.etag, "d41d8cd98f00b204");
	manifest_entry_set_version(&entry, &odd);
	CHECK_STRING(entry.sums[CHECKSUM_MD5], "");
	manifest_entry_set_version(&entry, &version);
	CHECK_STRING(entry.sums[CHECKSUM_MD5], "1B2M2Y8AsgTpgAmY7PhCfg==");
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

/* A manifest that could not be written whole is not complete, wherever the disk was full. */
static void test_full_disk(void)
{
	struct rlimit before, small;
	CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (unsigned i = 0; i < 2; i++) {
		struct manifest_spool *spool = NULL;
		struct problem problem = {0};
		unsigned random = 1;
		CHECK_INT(manifest_spool_new(DIGEST_CRC32C, &spool, &problem), 0);
		small = before;
		small.rlim_cur = 10;
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
		/* At first the buffer is written while lines are added; then only at the end. */
		for (unsigned line = 0; line < (i ? 1U : 20000U); line++) {
			char text[60];
			random = random * 1103515245 + 12345;
			snprintf(text, sizeof text, "{\"a\":%u,\"b\":%u}", random, random / 7);
			manifest_spool_add(spool, text);
		}
		CHECK(!manifest_spool_finish(spool, &problem));
		CHECK(strstr(problem.text, "its temporary file") != NULL);
		CHECK(strstr(problem.text, "cannot be written: ") != NULL);
		CHECK(strstr(problem.text, strerror(EFBIG)) != NULL);
		CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
		manifest_spool_free(spool);
	}
}

/* A disk or a quota that is full says what helps. */
static void test_no_room(void)
{
	static const int full[] = {-ENOSPC, -EDQUOT, -EIO};
	for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
		struct problem problem = {0};
		const int fd = manifest_temporary_file(&problem);
		manifest_explain_write_error(fd, full[i], &problem);
		CHECK(strstr(problem.text, strerror(-full[i])) != NULL);
		CHECK_INT(strstr(problem.text, "; make room there") != NULL, full[i] != -EIO);
		close(fd);
	}
}

/* A request that is repeated sends the manifest from its beginning, or from a part on. */
static void test_body_again(void)
{
	struct manifest_spool *spool = NULL;
	struct problem problem = {0};
	char first[1000], again[1000];
	CHECK_INT(manifest_spool_new(DIGEST_CRC32C, &spool, &problem), 0);
	manifest_spool_add(spool, "{}");
	CHECK(manifest_spool_finish(spool, &problem));
	CHECK_INT(manifest_spool_sums(spool)->kinds, DIGEST_CRC32C);
	const struct http_body body = manifest_spool_body(spool);
	const long n = body.read(body.arg, first, sizeof first);
	CHECK_INT(n, (int64_t)body.bytes);
	CHECK_INT(body.read(body.arg, again, sizeof again), 0);
	CHECK_INT(body.rewind(body.arg, 5), 0);
	CHECK_INT(body.read(body.arg, again, sizeof again), n - 5);
	CHECK(memcmp(first + 5, again, (size_t)n - 5) == 0);
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

/* Every line is an entry, is not too long, and ends; the sentence names the line. */
static void test_wrong_lines(void)
{
	static char long_line[MANIFEST_LINE_MAX + 10];
	static const char good[] = "{\"bucket\":\"b\",\"key\":\"k\",\"size\":1,\"checksums\":{}}";
	memset(long_line, ' ', sizeof long_line - 1);
	memcpy(long_line, good, sizeof good - 1);
	static const struct {
		const char *second, *end; /* end: "" where its newline is missing */
		const char *problem;
	} lines[] = {{long_line, "\n", "it is damaged after line 1: the next line is too long"},
		{good, "", "it is damaged after line 1: the last line has no end"},
		{"{}", "\n", "line 2: "}};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct problem problem = {0};
		struct manifest_reader *reader = NULL;
		struct manifest_entry entry;
		const int fd = manifest_temporary_file(&problem);
		const gzFile gz = gzdopen(dup(fd), "wb");
		gzprintf(gz, "%s\n", good);
		gzwrite(gz, lines[i].second, (unsigned)strlen(lines[i].second));
		gzputs(gz, lines[i].end);
		gzclose(gz);
		CHECK_INT(manifest_reader_new(fd, &reader, &problem), 0);
		CHECK_INT(manifest_reader_next(reader, &entry, &problem), 1);
		CHECK_STRING(manifest_reader_line(reader), good);
		CHECK_INT(manifest_reader_next(reader, &entry, &problem), -EBADMSG);
		CHECK(strncmp(problem.text, lines[i].problem, strlen(lines[i].problem)) == 0);
		manifest_reader_free(reader);
		close(fd);
	}
}

/* Bytes behind the end, and what cannot be read at all. */
static void test_unreadable(void)
{
	size_t n;
	int end;
	unsigned char *bytes = spooled(3, &n), *longer = malloc(n + 1);
	memcpy(longer, bytes, n);
	longer[n] = 0;
	CHECK_INT(read_bytes(longer, n + 1, &end), 3);
	CHECK_INT(end, -EBADMSG);
	free(bytes);
	free(longer);
	struct manifest_reader *reader = NULL;
	struct manifest_entry entry;
	struct problem problem = {0};
	const int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(manifest_reader_new(fd, &reader, &problem), 0);
	CHECK_INT(manifest_reader_next(reader, &entry, &problem), -EISDIR);
	CHECK_STRING(problem.text, "it cannot be read: Is a directory");
	manifest_reader_free(reader);
	close(fd);
}

static void test_names(void)
{
	struct text key = TEXT(500);
	const struct manifest_run run = {"p/q", "web.1/x", "00112233445566778899aabbccddeeff", 0};
	manifest_add_key(&key, &run);
	CHECK_STRING(text_string(&key),
		"p/q/_s3once/runs/dt=1970-01-01/host=web.1_x/"
		"19700101T000000Z-00112233445566778899aabbccddeeff.jsonl.gz");
	CHECK(manifest_is_key_or_signature(text_string(&key)));
	CHECK(manifest_is_key_or_signature(text_string(&key) + 4));
	CHECK(manifest_is_key(text_string(&key)));
	text_add(&key, ".sig");
	CHECK(manifest_is_key_or_signature(text_string(&key)));
	CHECK(!manifest_is_key(text_string(&key)));
	text_add(&key, "x");
	CHECK(!manifest_is_key_or_signature(text_string(&key)));
	static const char *const others[] = {"", "_s3once/runs/", "_s3once/runs/dt=1970-01-01",
		"_s3once/runs/dt=1970-01-01/host=", "_s3once/runs/dt=1970-01-01/host=a/x.jsonl.gz",
		"x_s3once/runs/dt=1970-01-01/host=a/19700101T.jsonl.gz",
		"_s3once/runs/dt=1970-01-01/host=a/b/19700101T.jsonl.gz",
		"_s3once/runs/dt=1970-01-01/host=a/19700101T/b.jsonl.gz",
		"_s3once/runs/dt=", "_s3once/runs/dt=1970-01-01/host=a/197001010.jsonl.gz",
		"_s3once/runs/dt=1970-01-01/host=a/1970010.jsonl.gz",
		"_s3once/runs/dt=1970-01-1/host=a/19700101T.jsonl.gz",
		"_s3once/runs/dt=1970-01-01/host=a/19700101T.jsonl"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK(!manifest_is_key_or_signature(others[i]));
	CHECK(manifest_is_key("_s3once/runs/dt=1970-01-01/host=a/19700101T.jsonl.gz"));
	CHECK(manifest_is_key("_s3once/runs/_s3once/runs/dt=1970-01-01/host=a/19700101T.jsonl.gz"));
	CHECK(!manifest_is_key("p/19700101T.jsonl.gz"));
	text_reset(&key);
	manifest_add_key(&key, &(struct manifest_run){"", "", "s", 0});
	CHECK_STRING(text_string(&key),
		"_s3once/runs/dt=1970-01-01/host=unknown/19700101T000000Z-s.jsonl.gz");
	text_reset(&key);
	CHECK(manifest_add_day_folder(&key, "p", "20261122T"));
	CHECK_STRING(text_string(&key), "p/_s3once/runs/dt=2026-11-22/");
	CHECK(!manifest_add_day_folder(&key, "p", "2026-11-22"));
	CHECK(!manifest_add_day_folder(&key, "p", "20261122"));
	text_clear(&key);
}

static void test_derive(void)
{
	const struct manifest_entry entry = entry_of("p/a\\ \nü", "/x");
	struct text line = TEXT(500);
	struct problem problem = {0};
	CHECK(manifest_add_list_line(MANIFEST_MD5SUM, &entry, "p/", &line, &problem));
	CHECK_STRING(text_string(&line), "\\d41d8cd98f00b204e9800998ecf8427e  a\\\\ \\nü");
	text_reset(&line);
	CHECK(manifest_add_list_line(MANIFEST_S3_BATCH_VERSIONS, &entry, "", &line, &problem));
	CHECK_STRING(text_string(&line), "b,p/a%5C%20%0A%C3%BC,v1");
	CHECK(!manifest_add_list_line(MANIFEST_SHA256SUM, &entry, "p/", &line, &problem));
	CHECK(strstr(problem.text, "--checksum sha256") != NULL);
	CHECK(!manifest_add_list_line(MANIFEST_MD5SUM, &entry, "q/", &line, &problem));
	static const char *const outside[] = {"p/", "p//x", "p/..", "p/../x", "p/x/../y", "p/x/.."};
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		const struct manifest_entry out = entry_of(outside[i], "/x");
		CHECK(!manifest_add_list_line(MANIFEST_MD5SUM, &out, "p/", &line, &problem));
		CHECK(strstr(problem.text, "not a file below the folder"));
	}
	/* An object without a version, or with one that cannot stand in the list. */
	static const char *const versions[] = {"", "a,b", "a\"b", "a\nb", "a\rb"};
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		struct manifest_entry odd = entry;
		odd.version_id = versions[i];
		CHECK(!manifest_add_list_line(
			MANIFEST_S3_BATCH_VERSIONS, &odd, "", &line, &problem));
		CHECK(manifest_add_list_line(MANIFEST_S3_BATCH, &odd, "", &line, &problem));
	}
	text_reset(&line);
	CHECK(manifest_add_list_line(MANIFEST_S3_BATCH, &entry, "", &line, &problem));
	CHECK_STRING(text_string(&line), "b,p/a%5C%20%0A%C3%BC");
	/* The checksum of parts is not that of the file. */
	CHECK(!manifest_add_list_line(MANIFEST_SHA1SUM, &entry, "p/", &line, &problem));
	struct manifest_entry parts = entry;
	snprintf(parts.sums[CHECKSUM_SHA256], S3_SUM_MAX,
		"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=-2");
	CHECK(!manifest_add_list_line(MANIFEST_SHA256SUM, &parts, "p/", &line, &problem));
	const struct manifest_entry dash = entry_of("p/-", "/x"),
				    dots = entry_of("p/..x/y..", "/x");
	text_reset(&line);
	CHECK(manifest_add_list_line(MANIFEST_MD5SUM, &dash, "p/", &line, &problem));
	CHECK_STRING(text_string(&line), "d41d8cd98f00b204e9800998ecf8427e  ./-");
	CHECK(manifest_add_list_line(MANIFEST_MD5SUM, &dots, "p/", &line, &problem));
	text_clear(&line);
}

/* A signature is about this manifest alone, whatever part of it another one shares. */
static void test_signatures(void)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"),
		 *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	const struct sums sums = {.bytes = 3, .sha256 = {1}}, longer = {.bytes = 4, .sha256 = {1}},
			  changed = {.bytes = 3, .sha256 = {2}};
	const struct signed_manifest manifest = {"b", "k\n", &sums};
	static const char wrong[] = "is about other bytes, another key or another bucket",
			  forged[] = "is not by this key";
	struct text t = TEXT(MANIFEST_SIGNATURE_MAX);
	struct problem problem;
	CHECK(manifest_sign(key, &manifest, &t, &problem));
	CHECK(manifest_signature_check(key, &manifest, text_string(&t), t.len, &problem));
	CHECK(!manifest_signature_check(other, &manifest, text_string(&t), t.len, &problem));
	CHECK(strstr(problem.text, forged) != NULL);
	const struct signed_manifest others[] = {{"c", "k\n", &sums}, {"b", "k", &sums},
		{"b", "k\n", &longer}, {"b", "k\n", &changed}};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		CHECK(!manifest_signature_check(key, &others[i], text_string(&t), t.len, &problem));
		CHECK(strstr(problem.text, wrong) != NULL);
	}
	/* With any byte changed, cut off or added. */
	char *bytes = strdup(text_string(&t));
	for (size_t i = 0; i < t.len; i++) {
		bytes[i] ^= 1;
		CHECK(!manifest_signature_check(key, &manifest, bytes, t.len, &problem));
		bytes[i] ^= 1;
	}
	CHECK(!manifest_signature_check(key, &manifest, bytes, t.len - 1, &problem));
	text_add_char(&t, '\n');
	CHECK(!manifest_signature_check(key, &manifest, text_string(&t), t.len, &problem));
	free(bytes);
	text_clear(&t);
	/* A key of another kind signs nothing, and neither does a lack of room. */
	EVP_PKEY *exchange = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
	CHECK(!manifest_sign(exchange, &manifest, &t, &problem));
	CHECK_STRING(problem.text, "the manifest cannot be signed with this key");
	text_clear(&t);
	t = (struct text)TEXT(150);
	CHECK(!manifest_sign(key, &manifest, &t, &problem));
	text_clear(&t);
	EVP_PKEY_free(exchange);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
}

/* A private key that others may read can be used by others; of a public one that is no matter. */
static void test_mode_of_keys(void)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), *read = NULL;
	EVP_PKEY *rsa = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	struct problem problem;
	char path[] = "/tmp/key-XXXXXX";
	const int fd = mkstemp(path);
	static const struct {
		mode_t mode;
		int result;
	} modes[] = {{0600, 0}, {0640, 0}, {0604, -EPERM}, {0602, -EPERM}};
	FILE *file = fdopen(dup(fd), "w");
	CHECK_INT(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
	fflush(file);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		CHECK_INT(fchmod(fd, modes[i].mode), 0);
		read = NULL;
		CHECK_INT(signing_key_read(path, KEY_PRIVATE, &read, &problem), modes[i].result);
		CHECK_INT(read != NULL, !modes[i].result);
		EVP_PKEY_free(read);
	}
	CHECK_INT(ftruncate(fd, 0), 0);
	rewind(file);
	CHECK_INT(PEM_write_PUBKEY(file, key), 1);
	fflush(file);
	CHECK_INT(fchmod(fd, 0644), 0);
	CHECK_INT(signing_key_read(path, KEY_PUBLIC, &read, &problem), 0);
	EVP_PKEY_free(read);
	read = NULL;
	CHECK_INT(ftruncate(fd, 0), 0);
	rewind(file);
	CHECK_INT(PEM_write_PUBKEY(file, rsa), 1); /* of another kind */
	fflush(file);
	CHECK_INT(signing_key_read(path, KEY_PUBLIC, &read, &problem), -EINVAL);
	fclose(file);
	close(fd);
	unlink(path);
	EVP_PKEY_free(key);
	EVP_PKEY_free(rsa);
}

static void test_bad_keys(void)
{
	EVP_PKEY *key = NULL;
	struct problem problem = {0};
	CHECK_INT(signing_key_read("/nonexistent/key", KEY_PRIVATE, &key, &problem), -ENOENT);
	CHECK(strstr(problem.text, "the key file /nonexistent/key cannot be opened: "));
	CHECK_INT(signing_key_read("/dev/null", KEY_PRIVATE, &key, &problem), -EINVAL);
	CHECK_INT(signing_key_read("/dev/null", KEY_PUBLIC, &key, &problem), -EINVAL);
	CHECK(!key);
}

int main(void)
{
	test_line();
	test_fields();
	test_checksums();
	test_long_values();
	test_wrong_lines();
	test_signatures();
	test_mode_of_keys();
	test_etag_that_is_no_text_is_dropped();
	test_bad_lines();
	test_line_without_memory();
	test_many_lines();
	test_short_md5();
	test_spool_and_reader();
	test_damage();
	test_unreadable();
	test_full_disk();
	test_no_room();
	test_body_again();
	test_names();
	test_derive();
	test_bad_keys();
	return check_result();
}
