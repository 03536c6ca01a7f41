/* Implements compressors.h. */
#include "compressors.h"
#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define PLAIN_MOST ((size_t)1 << 20) /* no log of a world is larger */

const char *const compressor_suffixes[COMPRESSORS] = {".gz", ".zst", ".xz", ".bz2", ".lz4"};

static size_t gzip(const unsigned char *bytes, size_t n, unsigned char *to, size_t most)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes,
		.avail_in = (uInt)n,
		.next_out = to,
		.avail_out = (uInt)most};
	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
		deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&z);
	return most - z.avail_out;
}

static size_t zstd(const unsigned char *bytes, size_t n, unsigned char *to, size_t most)
{
	const size_t ret = ZSTD_compress(to, most, bytes, n, 1);
	return ZSTD_isError(ret) ? 0 : ret;
}

static size_t xz(const unsigned char *bytes, size_t n, unsigned char *to, size_t most)
{
	size_t at = 0;
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	if (lzma_lzma_preset(&options, 0))
		abort();
	options.dict_size = 4096; /* the tables of a larger one cost more than the compression */
	if (lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC64, NULL, bytes, n, to, &at, most) !=
		LZMA_OK)
		abort();
	return at;
}

static size_t bzip2(const unsigned char *bytes, size_t n, unsigned char *to, size_t most)
{
	unsigned at = (unsigned)most;
	if (BZ2_bzBuffToBuffCompress(
		    (char *)to, &at, (char *)(uintptr_t)bytes, (unsigned)n, 1, 0, 0) != BZ_OK)
		abort();
	return at;
}

static size_t lz4(const unsigned char *bytes, size_t n, unsigned char *to, size_t most)
{
	const size_t ret = LZ4F_compressFrame(to, most, bytes, n, NULL);
	return LZ4F_isError(ret) ? 0 : ret;
}

unsigned char *compressor_run(unsigned i, const unsigned char *bytes, size_t n, size_t *ret_n)
{
	static size_t (*const run[COMPRESSORS])(const unsigned char *bytes, size_t n,
		unsigned char *to, size_t most) = {gzip, zstd, xz, bzip2, lz4};
	const size_t most = 2 * n + 70000; /* lz4 wants room for a whole block */
	unsigned char *ret = malloc(most);
	if (!ret)
		abort();
	*ret_n = run[i](bytes, n, ret, most);
	if (!*ret_n)
		abort();
	return ret;
}

static size_t undo_xz(const unsigned char *bytes, size_t n, unsigned char *to)
{
	uint64_t memory = UINT64_MAX;
	size_t at = 0, out = 0;
	return lzma_stream_buffer_decode(&memory, 0, NULL, bytes, &at, n, to, &out, PLAIN_MOST) ==
			       LZMA_OK
		       ? out
		       : 0;
}

static size_t undo_bzip2(const unsigned char *bytes, size_t n, unsigned char *to)
{
	unsigned out = PLAIN_MOST;
	return BZ2_bzBuffToBuffDecompress(
		       (char *)to, &out, (char *)(uintptr_t)bytes, (unsigned)n, 0, 0) == BZ_OK
		       ? out
		       : 0;
}

static size_t undo_lz4(const unsigned char *bytes, size_t n, unsigned char *to)
{
	LZ4F_dctx *context;
	size_t in = n, out = PLAIN_MOST;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
		abort();
	const size_t left = LZ4F_decompress(context, to, &out, bytes, &in, NULL);
	LZ4F_freeDecompressionContext(context);
	return left ? 0 : out;
}

int compressor_undo(const unsigned char *bytes, size_t n, unsigned char **ret, size_t *ret_n)
{
	static const struct {
		const char *magic;
		size_t (*undo)(const unsigned char *bytes, size_t n, unsigned char *to);
	} formats[] = {{"\xfd"
			"7zXZ",
			       undo_xz},
		{"BZh", undo_bzip2}, {"\x04\x22\x4d\x18", undo_lz4}};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		const size_t chars = strlen(formats[i].magic);
		if (n < chars || memcmp(bytes, formats[i].magic, chars) != 0)
			continue;
		unsigned char *plain = malloc(PLAIN_MOST);
		if (!plain)
			abort();
		*ret_n = formats[i].undo(bytes, n, plain);
		if (!*ret_n) {
			free(plain);
			plain = NULL;
		}
		*ret = plain;
		return 1;
	}
	return 0;
}
