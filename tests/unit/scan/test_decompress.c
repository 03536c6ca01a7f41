/* Decompressing, in steps of every size: streams that follow each other, streams that are cut at
 * any byte, and bytes that belong to no stream. */
#include "../check.h"
#include "scan/content/decompress.h"
#include <errno.h>

#define ROOM 4000

/* Bytes in memory. */
struct bytes {
	unsigned char data[ROOM];
	size_t n;
};

static const char *const names[] = {"bare", "gzip", "bzip2", "xz", "zstd", "lz4"};

/* Adds the text to *ret, compressed as one stream of this format. */
static void add_stream(struct bytes *ret, enum format format, const char *text)
{
	const size_t n = strlen(text), room = ROOM - ret->n;
	unsigned char *out = ret->data + ret->n;
	z_stream gzip = {.next_in = (Bytef *)(uintptr_t)text,
		.avail_in = (unsigned)n,
		.next_out = out,
		.avail_out = (unsigned)room};
	unsigned bzip2_bytes = (unsigned)room;
	size_t bytes = 0;
	switch (format) {
	case GZIP:
		CHECK_INT(deflateInit2(&gzip, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
		CHECK_INT(deflate(&gzip, Z_FINISH), Z_STREAM_END);
		bytes = gzip.total_out;
		deflateEnd(&gzip);
		break;
	case BZIP2:
		CHECK_INT(BZ2_bzBuffToBuffCompress((char *)out, &bzip2_bytes,
				  (char *)(uintptr_t)text, (unsigned)n, 1, 0, 0),
			BZ_OK);
		bytes = bzip2_bytes;
		break;
	case XZ:
		CHECK_INT(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, (const uint8_t *)text,
				  n, out, &bytes, room),
			LZMA_OK);
		break;
	case ZSTD:
		bytes = ZSTD_compress(out, room, text, n, 1);
		CHECK(!ZSTD_isError(bytes));
		break;
	case LZ4:
		bytes = LZ4F_compressFrame(out, room, text, n, NULL);
		CHECK(!LZ4F_isError(bytes));
		break;
	case BARE:
		break;
	}
	ret->n += bytes;
}

/* Decompresses the bytes as content.c does: with `in_step` bytes of input and room for `out_step`
 * bytes of output at a time, and with no input at the end. Returns the last result. */
static int run(struct decompress *d, const struct bytes *bytes, unsigned in_step, unsigned out_step,
	struct bytes *ret)
{
	int r = 0;
	ret->n = 0;
	for (size_t at = 0; r == 0 && at <= bytes->n; at += in_step) {
		const size_t left = bytes->n - at;
		d->in = bytes->data + at;
		d->in_bytes = left < in_step ? (unsigned)left : in_step;
		do {
			d->out = ret->data + ret->n;
			d->out_bytes = out_step;
			r = decompress(d, false, NULL);
			ret->n += r < 0 ? 0 : out_step - d->out_bytes;
		} while (r > 0 && CHECK(ret->n + out_step <= ROOM));
		CHECK(r < 0 || d->in_bytes == 0);
	}
	d->in_bytes = 0;
	for (int i = 0; r >= 0 && i < ROOM; i++) {
		d->out = ret->data + ret->n;
		d->out_bytes = out_step;
		r = decompress(d, true, NULL);
		ret->n += r < 0 ? 0 : out_step - d->out_bytes;
		if (r <= 0 || !CHECK(ret->n + out_step <= ROOM))
			break;
	}
	return r;
}

/* Whether the bytes are taken for a whole content of this format, and for which. */
static bool is_whole(enum format format, const struct bytes *bytes, unsigned in_step,
	unsigned out_step, struct bytes *ret)
{
	struct decompress d = {.format = BARE};
	CHECK_INT(decompress_begin(&d, format), 0);
	CHECK(!d.has_ended);
	const int r = run(&d, bytes, in_step, out_step, ret);
	const bool has_ended = d.has_ended;
	CHECK(r == 0 || r == -EBADMSG);
	decompress_clear(&d);
	CHECK_INT(d.format, BARE);
	return r == 0 && has_ended;
}

static const char *const texts[] = {"", "a", "one line\n", "the second stream is a longer one\n"};
#define TEXTS_N (sizeof texts / sizeof *texts)

/* Two streams are one content, however the input is cut and however small the output is. */
static void test_steps(enum format format)
{
	static const unsigned steps[] = {1, 2, 7, 64, 1000};
	static struct bytes bytes, got;
	for (size_t i = 0; i < TEXTS_N * TEXTS_N; i++) {
		const char *first = texts[i / TEXTS_N], *second = texts[i % TEXTS_N];
		char want[200];
		bytes.n = 0;
		add_stream(&bytes, format, first);
		add_stream(&bytes, format, second);
		snprintf(want, sizeof want, "%s%s", first, second);
		for (int j = 0; j < 25; j++) {
			const bool whole =
				is_whole(format, &bytes, steps[j / 5], steps[j % 5], &got);
			if (!CHECK(whole) || !CHECK_INT(got.n, strlen(want)) ||
				!CHECK(memcmp(got.data, want, got.n) == 0))
				fprintf(stderr, "\t%s, texts %zu, steps %u and %u\n", names[format],
					i, steps[j / 5], steps[j % 5]);
		}
	}
}

/* A content that is cut at any byte is whole only where its first stream ends. */
static void test_cut(enum format format)
{
	static struct bytes bytes, got;
	bytes.n = 0;
	add_stream(&bytes, format, texts[2]);
	const size_t middle = bytes.n;
	add_stream(&bytes, format, texts[3]);
	const size_t all = bytes.n;
	for (size_t n = 0; n <= all; n++)
		for (unsigned step = 1; step <= 1000; step *= 10) {
			bytes.n = n;
			if (!CHECK(is_whole(format, &bytes, step, 100, &got) ==
				    (n == middle || n == all)))
				fprintf(stderr, "\t%s cut at %zu of %zu, steps of %u\n",
					names[format], n, all, step);
		}
}

/* Whatever follows a stream, of any length, makes the file one that is not compressed. Its first
 * byte may come together with the end of the stream, or alone. */
static void test_followed(enum format format)
{
	static struct bytes bytes, got;
	for (unsigned step = 1; step <= 1000; step *= 10)
		for (size_t n = 1; n <= 40; n += 13)
			for (unsigned byte = 0; byte < 256; byte += 51) {
				bytes.n = 0;
				add_stream(&bytes, format, texts[2]);
				memset(bytes.data + bytes.n, (int)byte, n);
				bytes.n += n;
				/* xz pads a stream with zeros, by fours. */
				if (!CHECK(is_whole(format, &bytes, step, 100, &got) ==
					    (format == XZ && !byte && n % 4 == 0)))
					fprintf(stderr, "\t%s and %zu bytes %u, steps of %u\n",
						names[format], n, byte, step);
			}
}

/* A bit that was flipped anywhere never gives another content. */
static void test_damaged(enum format format)
{
	static struct bytes bytes, got;
	bytes.n = 0;
	add_stream(&bytes, format, texts[3]);
	const size_t n = strlen(texts[3]);
	unsigned refused = 0;
	for (size_t i = 0; i < bytes.n; i++) {
		bytes.data[i] ^= 4;
		refused += !is_whole(format, &bytes, 1000, 100, &got) || got.n != n ||
			   memcmp(got.data, texts[3], n) != 0;
		bytes.data[i] ^= 4;
	}
	CHECK(is_whole(format, &bytes, 1000, 100, &got));
	CHECK(refused > 0);
}

/* The same struct serves one content after another, of any format: nothing of the last one is
 * left. */
static void test_again(void)
{
	static struct bytes bytes, none, got;
	struct decompress d = {.format = BARE};
	decompress_clear(&d);
	for (int i = 0; i < 25; i++) {
		const enum format first = (enum format)(GZIP + i / 5);
		const enum format second = (enum format)(GZIP + i % 5);
		bytes.n = 0;
		add_stream(&bytes, first, texts[2]);
		CHECK_INT(decompress_begin(&d, first), 0);
		CHECK_INT(run(&d, &bytes, 7, 7, &got), 0);
		CHECK(d.has_ended);
		decompress_clear(&d);
		decompress_clear(&d);
		CHECK_INT(decompress_begin(&d, second), 0);
		CHECK(!d.has_ended);
		const int r = run(&d, &none, 7, 7, &got);
		CHECK(r == -EBADMSG || !d.has_ended);
		CHECK_INT(got.n, 0);
		decompress_clear(&d);
	}
}

/* The first bytes of each format, and each of them with a byte missing or changed. */
static void test_format_of(void)
{
	static const struct {
		enum format format;
		size_t n;
		unsigned char bytes[MAGIC_BYTES];
		size_t any; /* the index of a byte with several values, which `least` to `most` are
			     */
		unsigned least, most;
	} rows[] = {
		{GZIP, 3, {0x1f, 0x8b, 8}, 0, 0x1f, 0x1f},
		{BZIP2, 10, {'B', 'Z', 'h', '9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59}, 3, '1', '9'},
		{BZIP2, 10, {'B', 'Z', 'h', '9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90}, 3, '1', '9'},
		{XZ, 6, {0xfd, '7', 'z', 'X', 'Z', 0}, 0, 0xfd, 0xfd},
		{ZSTD, 4, {0x28, 0xb5, 0x2f, 0xfd}, 0, 0x28, 0x28},
		{ZSTD, 4, {0x50, 0x2a, 0x4d, 0x18}, 0, 0x50, 0x5f},
		{LZ4, 4, {0x04, 0x22, 0x4d, 0x18}, 0, 0x04, 0x04},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned char bytes[MAGIC_BYTES] = {0};
		memcpy(bytes, rows[i].bytes, rows[i].n);
		for (size_t n = 0; n <= MAGIC_BYTES; n++)
			CHECK_INT(format_of(bytes, n), n < rows[i].n ? BARE : rows[i].format);
		for (size_t at = 0; at < rows[i].n; at++)
			for (unsigned value = 0; value < 256; value++) {
				bytes[at] = (unsigned char)value;
				const bool fits = value == rows[i].bytes[at] ||
						  (at == rows[i].any && value >= rows[i].least &&
							  value <= rows[i].most);
				if (!CHECK_INT(format_of(bytes, MAGIC_BYTES),
					    fits ? rows[i].format : BARE))
					fprintf(stderr, "\trow %zu, byte %zu: %u\n", i, at, value);
				bytes[at] = rows[i].bytes[at];
			}
	}
}

int main(void)
{
	for (enum format format = GZIP; format <= LZ4; format++) {
		test_steps(format);
		test_cut(format);
		test_followed(format);
		test_damaged(format);
	}
	test_again();
	test_format_of();
	return check_result();
}
