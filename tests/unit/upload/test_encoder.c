/* The encoding of ranges of files: always the same bytes, which every decompressor reads, and never
 * fewer than a part needs. */
#include "../check.h"
#include "upload/body/encoder.h"
#include "upload/body/multipart_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (1U << 20)

static void test_parse(void)
{
	static const struct {
		const char *text;
		enum codec codec;
		int level;
	} good[] = {{"zstd", CODEC_ZSTD, 3}, {"zstd:19", CODEC_ZSTD, 19}, {"gzip", CODEC_GZIP, 6},
		{"gzip:1", CODEC_GZIP, 1}, {"gzip:3", CODEC_GZIP, 3}, {"gzip:4", CODEC_GZIP, 4}};
	static const char *const bad[] = {"", "zst", "zstd:", "zstd:0", "zstd:20", "gzip:10",
		"gzip:-1", "gzip:6x", "zstd:3:1", "Zstd", "gzip:100000000000"};
	struct encoding encoding, again;
	struct problem problem;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CHECK_INT(encoding_parse(good[i].text, &encoding, &problem), 0);
		CHECK_INT((long long)encoding.codec, (long long)good[i].codec);
		CHECK_INT(encoding.level, good[i].level);
		CHECK_INT(encoding_named(encoding.name, &again), 0);
		CHECK_INT((int64_t)again.part_bytes, 0);
		const struct encoding in_parts = encoding_in_parts(&encoding, PART_BYTES_MAX);
		struct encoding named;
		CHECK_INT(encoding_named(in_parts.name, &named), 0);
		CHECK(named.part_bytes == PART_BYTES_MAX && named.level == encoding.level &&
			strcmp(named.name, in_parts.name) == 0);
		CHECK_STRING(again.name, encoding.name);
		CHECK(again.codec == encoding.codec && again.level == encoding.level);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!CHECK_INT(encoding_parse(bad[i], &encoding, &problem), -EINVAL))
			fprintf(stderr, "\tof \"%s\"\n", bad[i]);
}

/* The output of another version of the compressor is not reproduced. */
static void test_other_version(void)
{
	static const char *const others[] = {
		"", "zstd-0.0.1:3", "zlib-0.9:6", "lzma-1:3", "zstd", ":3"};
	struct encoding encoding, again;
	struct problem problem;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK_INT(encoding_named(others[i], &again), -ENOENT);
	CHECK_INT(encoding_parse("zstd:4", &encoding, &problem), 0);
	CHECK_INT(encoding_named(encoding.name, &again), 0);
	CHECK_INT(again.level, 4);
	/* Nor what was made at a level that is none here, which the metadata of an object may name.
	 */
	static const char *const levels[] = {":-1", ":0", ":20", ":"};
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		strcpy(strrchr(encoding.name, ':'), levels[i]);
		CHECK_INT(encoding_named(encoding.name, &again), -ENOENT);
	}
}

/* The output of zlib depends on its version and level, so its name has both. */
static void test_names_of_gzip(void)
{
	static const char *const others[] = {"zlib-0:1", "zlib-0:6", "zlib:6", "isal-1830e00c:1"};
	struct encoding encoding, again;
	struct problem problem;
	CHECK_INT(encoding_parse("gzip", &encoding, &problem), 0);
	CHECK(strncmp(encoding.name, "zlib-", 5) == 0);
	CHECK(strcmp(encoding.name + strlen(encoding.name) - 2, ":6") == 0);
	CHECK_INT(encoding_named(encoding.name, &again), 0);
	CHECK_INT(again.level, 6);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		CHECK_INT(encoding_named(others[i], &again), -ENOENT);
}

static struct encoding encoding_of(const char *text)
{
	struct encoding encoding = {0};
	struct problem problem;
	CHECK_INT(encoding_parse(text, &encoding, &problem), 0);
	return encoding;
}

/* Makes all of the range, appends it to the file, and checks that what was kept is the same. */
static uint64_t make(struct encoder *encoder, const struct range *range, int to)
{
	const void *bytes;
	uint64_t made = 0;
	long n;
	CHECK_INT(encoder_begin(encoder, range, DIGEST_CRC32C), 0);
	while ((n = encoder_next(encoder, &bytes)) > 0) {
		encoder_keep(encoder, bytes, (size_t)n);
		made += (uint64_t)n;
		CHECK(write(to, bytes, (size_t)n) == n);
	}
	CHECK_INT(n, 0);
	CHECK_INT(encoder_next(encoder, &bytes), 0);
	CHECK_INT((long long)encoder_input_sums(encoder)->bytes, (long long)range->bytes);
	if (made > BUFFER_BYTES) {
		CHECK(encoder_kept(encoder) == NULL);
	} else if (made) {
		char *written = malloc(made);
		const off_t at = lseek(to, 0, SEEK_CUR) - (off_t)made;
		CHECK(pread(to, written, made, at) == (ssize_t)made);
		CHECK(encoder_kept(encoder) && memcmp(encoder_kept(encoder), written, made) == 0);
		free(written);
	}
	CHECK(made >= range->pad_to_bytes);
	return made;
}

static bool runs(const char *command)
{
	const int r = system(command); // NOLINT(cert-env33-c): fixed commands
	if (r)
		fprintf(stderr, "\t%s\n", command);
	return r == 0;
}

/* In ranges of each of these sizes, padded or not: twice the same, and decompressed the file. */
static void test_ranges(const char *name, const char *decompress)
{
	static const uint64_t sizes[] = {1, 1000, 262143, 262144, 262145, 700000, 3000000};
	static const uint64_t leasts[] = {0, 300001};
	const struct encoding encoding = encoding_of(name);
	struct encoder *encoder;
	char command[200];
	const int fd = open("plain", O_RDONLY | O_CLOEXEC);
	const uint64_t whole = (uint64_t)lseek(fd, 0, SEEK_END);
	CHECK_INT(encoder_new(BUFFER_BYTES, &encoder), 0);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 2; i++) {
		const uint64_t size = sizes[i / 2], bytes = size * 5 > whole ? whole : size * 5;
		const int first = open("first", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		const int second = open("second", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		struct range range = {fd, 0, size, &encoding, leasts[i % 2]};
		for (; range.offset < bytes; range.offset += size) {
			if (range.offset + size > bytes)
				range.bytes = bytes - range.offset;
			make(encoder, &range, first);
			make(encoder, &range, second);
		}
		close(first);
		close(second);
		snprintf(command, sizeof command,
			"cmp first second && head -c %llu plain >part && %s <first | cmp - part",
			(unsigned long long)bytes, decompress);
		CHECK(runs(command));
	}
	encoder_free(encoder);
	close(fd);
}

/* The padding has exactly the length that was asked for, unless it is less than a frame of its own.
 */
static void test_padding(const char *name, uint64_t smallest)
{
	const struct encoding encoding = encoding_of(name);
	struct encoder *encoder;
	const int fd = open("plain", O_RDONLY | O_CLOEXEC);
	const int to = open("first", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct range range = {fd, 0, 1000, &encoding, 0};
	CHECK_INT(encoder_new(BUFFER_BYTES, &encoder), 0);
	const uint64_t own = make(encoder, &range, to);
	static const uint64_t more[] = {1, 2, 25, 26, 27, 65556, 65557, 65558, 65570, 65582, 65583,
		65584, 131114, 131115, 140000, 600000};
	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		range.pad_to_bytes = own + more[i];
		const uint64_t want = own + (more[i] < smallest ? smallest : more[i]);
		CHECK_INT((long long)make(encoder, &range, to), (long long)want);
	}
	encoder_free(encoder);
	close(fd);
	close(to);
	CHECK(runs(
		encoding.codec == CODEC_ZSTD ? "zstd -dcq <first >part" : "gzip -dc <first >part"));
	CHECK(runs(
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do head -c 1000 plain; done | "
		"cmp - part"));
}

static void test_errors(void)
{
	const struct encoding encoding = encoding_of("zstd");
	struct encoder *encoder;
	const void *bytes;
	long n;
	const int fd = open("plain", O_RDONLY | O_CLOEXEC);
	const uint64_t whole = (uint64_t)lseek(fd, 0, SEEK_END);
	const struct range range = {fd, whole - 10, 20, &encoding, 0};
	CHECK_INT(encoder_new(BUFFER_BYTES, &encoder), 0);
	CHECK_INT(encoder_begin(encoder, &range, 0), 0);
	while ((n = encoder_next(encoder, &bytes)) > 0)
		;
	CHECK_INT(n, -ESTALE);
	encoder_free(encoder);
	close(fd);
}

static bool is_over(void *arg)
{
	return *(const bool *)arg;
}

static void test_pool(void)
{
	const struct encoding encoding = encoding_of("zstd");
	const uint64_t min_bytes = encoders_min_memory(&encoding);
	const struct s3once_options options = {
		.memory_bytes = min_bytes + 50, .part_bytes = 16 << 20};
	struct encoders encoders;
	struct encoder *one = NULL, *two = NULL, *three = NULL;
	bool over = true;
	encoders_init(&encoders, &encoding, &options, 8);
	CHECK_INT((long long)encoders.max_encoders, 2);
	CHECK(encoders.buffer_bytes >= PART_BYTES_MIN);
	CHECK_INT(encoders_take(&encoders, is_over, &over, &one), 0);
	CHECK_INT(encoders_take(&encoders, is_over, &over, &two), 0);
	CHECK_INT(encoders_take(&encoders, is_over, &over, &three), -ECANCELED);
	encoders_give_back(&encoders, two);
	CHECK_INT(encoders_take(&encoders, is_over, &over, &three), 0);
	CHECK(three == two);
	encoders_give_back(&encoders, three);
	encoders_give_back(&encoders, one);
	/* Ranges are whole MiB that come to what can be kept, and to no less than a part has. */
	CHECK_INT((long long)encoders_part_bytes(&encoders, 100, 100), 5 << 20);
	CHECK_INT((long long)encoders_part_bytes(&encoders, 100, 150), 5 << 20);
	CHECK_INT((long long)encoders_part_bytes(&encoders, 1000, 1), 256 << 20);
	const uint64_t tenfold = encoders_part_bytes(&encoders, 1000, 100);
	CHECK(tenfold % (1 << 20) == 0 && tenfold <= 10 * encoders.buffer_bytes &&
		tenfold >= 10 * PART_BYTES_MIN);
	encoders_clear(&encoders);
}

/* All output of a range, which is at most `most` bytes. */
static size_t output_of(
	struct encoder *encoder, const struct range *range, unsigned char *ret, size_t most)
{
	const void *bytes;
	size_t made = 0;
	long n;
	CHECK_INT(encoder_begin(encoder, range, DIGEST_CRC32C), 0);
	while ((n = encoder_next(encoder, &bytes)) > 0 && made + (size_t)n <= most) {
		encoder_keep(encoder, bytes, (size_t)n);
		memcpy(ret + made, bytes, (size_t)n);
		made += (size_t)n;
	}
	CHECK_INT(n, 0);
	return made;
}

/* An encoder makes of each range what a new one makes of it, whatever it has made before, and
 * wherever it was interrupted: by another level or codec, in the padding, or before its end. */
static void test_used_before(void)
{
	enum { MOST = 1 << 20 };
	static const char *const names[] = {
		"gzip:1", "zstd:1", "gzip:9", "gzip:1", "zstd:9", "zstd:1"};
	static unsigned char got[MOST], want[MOST];
	struct encoder *used, *fresh;
	const int fd = open("plain", O_RDONLY | O_CLOEXEC);
	CHECK_INT(encoder_new(MOST, &used), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (unsigned cut = 0; cut < 4; cut++) {
			const struct encoding encoding = encoding_of(names[i]);
			const struct range range = {fd, 1000 * i, 300000, &encoding, 0},
					   before = {fd, 700000, 1000000, &encoding,
						   cut == 3 ? MOST : 0};
			const void *bytes;
			/* the range before it is interrupted after so many calls */
			CHECK_INT(encoder_begin(used, &before, DIGEST_SHA256), 0);
			for (unsigned calls = 0; calls < cut; calls++) {
				const long n = encoder_next(used, &bytes);
				CHECK(n > 0);
				encoder_keep(used, bytes, (size_t)n);
			}
			CHECK_INT(encoder_new(MOST, &fresh), 0);
			const size_t n = output_of(fresh, &range, want, MOST);
			bool good = CHECK_INT(output_of(used, &range, got, MOST), n);
			good &= CHECK(memcmp(got, want, n) == 0);
			good &= CHECK(encoder_kept(used) && !memcmp(encoder_kept(used), want, n));
			const struct sums *a = encoder_input_sums(used),
					  *b = encoder_input_sums(fresh);
			good &= CHECK_INT(a->kinds, DIGEST_CRC32C);
			good &= CHECK_INT(a->bytes, range.bytes);
			good &= CHECK(sums_equal(a, b, CHECKSUM_CRC32C));
			if (!good)
				fprintf(stderr, "\t%s, cut %u\n", names[i], cut);
			encoder_free(fresh);
		}
	encoder_free(used);
	close(fd);
}

/* How many encoders there are, and how much each keeps: two for each CPU if memory allows, and a
 * part and a quarter. */
static void test_memory(void)
{
	const struct encoding encoding = encoding_of("zstd");
	const uint64_t least = encoders_min_memory(&encoding), mib = 1 << 20;
	const uint64_t buffer_min = PART_BYTES_MIN + PART_BYTES_MIN / 4;
	const struct {
		uint64_t memory, part_bytes;
		unsigned cpus;
		unsigned max_encoders;
		uint64_t buffer_bytes;
	} rows[] = {
		{100 * least, 16 * mib, 4, 8, 20 * mib},
		{100 * least, 16 * mib, 100, ENCODERS_MAX, 20 * mib},
		{least / 4, 16 * mib, 4, 1, buffer_min},
		{least + least / 2 + 1, 16 * mib, 8, 3, buffer_min},
		{2 * least, 1024 * mib, 1, 2, buffer_min + least},
		{100 * 1024 * mib, 5 * 1024 * mib, 1, 2, 3840 * mib},
		{100 * 1024 * mib, 3072 * mib, 1, 2, 3840 * mib},
		{100 * 1024 * mib, 1024 * mib, 1, 2, 1280 * mib},
	};
	struct encoders encoders;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct s3once_options options = {
			.memory_bytes = rows[i].memory, .part_bytes = rows[i].part_bytes};
		encoders_init(&encoders, &encoding, &options, rows[i].cpus);
		bool good = CHECK_INT(encoders.max_encoders, rows[i].max_encoders);
		good &= CHECK_INT(encoders.buffer_bytes, rows[i].buffer_bytes);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		encoders_clear(&encoders);
	}
	/* A part is meant to fill nine tenths of 20 MiB, once it is compressed as the sample was.
	 */
	static const struct {
		uint64_t sample, compressed, mib;
	} samples[] = {{100, 100, 18}, {100, 150, 18}, {0, 0, 18}, {100, 0, 18}, {200, 100, 36},
		{199, 100, 35}, {1400, 100, 252}, {1500, 100, 256}, {100, 99, 18}};
	encoders.buffer_bytes = 20 * mib;
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
		CHECK_INT(encoders_part_bytes(&encoders, samples[i].sample, samples[i].compressed),
			samples[i].mib * mib);
}

int main(void)
{
	char directory[] = "/tmp/encoder-XXXXXX";
	if (!CHECK(mkdtemp(directory) && chdir(directory) == 0))
		return check_result();
	CHECK(runs(
		"{ seq 1 150000; head -c 1500000 /dev/urandom; head -c 3000000 /dev/zero; } >plain"));
	test_parse();
	test_other_version();
	test_names_of_gzip();
	test_ranges("zstd", "zstd -dcq");
	test_ranges("gzip:3", "gzip -dc");
	test_padding("zstd", 8);
	test_padding("gzip", 26);
	test_errors();
	test_pool();
	test_used_before();
	test_memory();
	CHECK(runs("rm plain part first second"));
	CHECK_INT(rmdir(directory), 0);
	return check_result();
}
