/* Decompresses by the libraries of five formats. content.c reads files by it, and src/cat objects.
 */
#include "scan/content/decompress.h"
#include <errno.h>
#include <string.h>
#include <zstd_errors.h>

/* The most memory that decompressing may take, since the bytes may come from anyone. `zstd --ultra`
 * asks for this much, and xz for half of it. */
#define MEMORY_MAX     (128U << 20)
#define WINDOW_LOG_MAX 27 /* the largest window of zstd, a power of two: 1 << 27 is MEMORY_MAX */

/* Advances input and output by the bytes that the library has used and written. */
static void advance_io(struct decompress *d, size_t used, size_t written)
{
	d->in += used;
	d->in_bytes -= (unsigned)used;
	d->out += written;
	d->out_bytes -= (unsigned)written;
}

/* gzip_run() and the four functions below it are in the table of decompress(). Each uses input and
 * writes output. It returns 1 if a member or frame has ended, else 0, or -EBADMSG, -EFBIG or
 * -ENOMEM. Only liblzma has to know that this input is the `last`. */
static int gzip_run(struct decompress *d, bool last)
{
	d->gzip.next_in = (Bytef *)(uintptr_t)d->in; /* zlib does not write to it */
	d->gzip.avail_in = d->in_bytes;
	d->gzip.next_out = d->out;
	d->gzip.avail_out = d->out_bytes;
	const int r = inflate(&d->gzip, Z_NO_FLUSH);
	advance_io(d, d->in_bytes - d->gzip.avail_in, d->out_bytes - d->gzip.avail_out);
	if (r == Z_STREAM_END || r == Z_OK || r == Z_BUF_ERROR)
		return r == Z_STREAM_END;
	return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int bzip2_run(struct decompress *d, bool last)
{
	d->bzip2.next_in = (char *)(uintptr_t)d->in; /* libbz2 does not write to it */
	d->bzip2.avail_in = d->in_bytes;
	d->bzip2.next_out = (char *)d->out;
	d->bzip2.avail_out = d->out_bytes;
	const int r = BZ2_bzDecompress(&d->bzip2);
	advance_io(d, d->in_bytes - d->bzip2.avail_in, d->out_bytes - d->bzip2.avail_out);
	if (r == BZ_STREAM_END || r == BZ_OK)
		return r == BZ_STREAM_END;
	return r == BZ_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* liblzma joins streams by itself. It reports the end only when no stream follows. */
static int xz_run(struct decompress *d, bool last)
{
	d->xz.next_in = d->in;
	d->xz.avail_in = d->in_bytes;
	d->xz.next_out = d->out;
	d->xz.avail_out = d->out_bytes;
	const lzma_ret r = lzma_code(&d->xz, last ? LZMA_FINISH : LZMA_RUN);
	advance_io(d, d->in_bytes - d->xz.avail_in, d->out_bytes - d->xz.avail_out);
	if (r == LZMA_STREAM_END || r == LZMA_OK || r == LZMA_BUF_ERROR)
		return r == LZMA_STREAM_END;
	return r == LZMA_MEM_ERROR ? -ENOMEM : r == LZMA_MEMLIMIT_ERROR ? -EFBIG : -EBADMSG;
}

static int zstd_run(struct decompress *d, bool last)
{
	ZSTD_inBuffer in = {d->in, d->in_bytes, 0};
	ZSTD_outBuffer out = {d->out, d->out_bytes, 0};
	const size_t r = ZSTD_decompressStream(d->zstd, &out, &in);
	const ZSTD_ErrorCode error = ZSTD_getErrorCode(r);
	advance_io(d, in.pos, out.pos);
	if (!error)
		return r == 0;
	return error == ZSTD_error_memory_allocation               ? -ENOMEM
	       : error == ZSTD_error_frameParameter_windowTooLarge ? -EFBIG
								   : -EBADMSG;
}

static int lz4_run(struct decompress *d, bool last)
{
	size_t in = d->in_bytes, out = d->out_bytes;
	const size_t r = LZ4F_decompress(d->lz4, d->out, &out, d->in, &in, NULL);
	if (LZ4F_isError(r))
		return strcmp(LZ4F_getErrorName(r), "ERROR_allocation_failed") == 0 ? -ENOMEM
										    : -EBADMSG;
	advance_io(d, in, out);
	return r == 0;
}

/* Begins to decompress by the library of this format. Returns false if memory ran out. */
static bool init_format(struct decompress *d)
{
	switch (d->format) {
	case GZIP:
		d->gzip = (z_stream){0};
		/* 15: windows of every size; 16: the format is gzip and not that of zlib */
		return inflateInit2(&d->gzip, 15 + 16) == Z_OK;
	case BZIP2:
		d->bzip2 = (bz_stream){0};
		return BZ2_bzDecompressInit(&d->bzip2, 0, 0) == BZ_OK;
	case XZ:
		d->xz = (lzma_stream)LZMA_STREAM_INIT;
		return lzma_stream_decoder(&d->xz, MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
	case ZSTD:
		d->zstd = ZSTD_createDStream();
		if (d->zstd)
			ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
		return d->zstd != NULL;
	case LZ4:
		return !LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION));
	case BARE:
		break;
	}
	return false;
}

static void clear_format(struct decompress *d)
{
	if (d->format == GZIP)
		inflateEnd(&d->gzip);
	else if (d->format == BZIP2)
		BZ2_bzDecompressEnd(&d->bzip2);
	else if (d->format == XZ)
		lzma_end(&d->xz);
	else if (d->format == ZSTD)
		ZSTD_freeDStream(d->zstd);
	else if (d->format == LZ4)
		LZ4F_freeDecompressionContext(d->lz4);
}

int decompress_begin(struct decompress *d, enum format format)
{
	d->format = format;
	d->has_ended = false;
	if (init_format(d))
		return 0;
	d->format = BARE; /* makes clear_format() do nothing */
	return -ENOMEM;
}

void decompress_clear(struct decompress *d)
{
	clear_format(d);
	d->format = BARE;
}

static bool begins_with(const unsigned char *first, size_t n, const char *magic, size_t bytes)
{
	return n >= bytes && memcmp(first, magic, bytes) == 0;
}

/* Behind "BZh" come the size of the blocks, and the magic number of a block or of the end. */
static bool is_bzip2(const unsigned char *first, size_t n)
{
	if (n < 10 || !begins_with(first, n, "BZh", 3) || first[3] < '1' || first[3] > '9')
		return false;
	return memcmp(first + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
	       memcmp(first + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0;
}

enum format format_of(const unsigned char *first, size_t n)
{
	if (begins_with(first, n, "\x1f\x8b\x08", 3))
		return GZIP;
	if (is_bzip2(first, n))
		return BZIP2;
	if (begins_with(first, n, "\xfd\x37\x7a\x58\x5a\0", 6))
		return XZ;
	/* A skippable frame decompresses to nothing. zstd and lz4 share it. */
	const bool is_skippable =
		n >= 4 && first[0] >> 4 == 5 && memcmp(first + 1, "\x2a\x4d\x18", 3) == 0;
	if (begins_with(first, n, "\x28\xb5\x2f\xfd", 4) || is_skippable)
		return ZSTD;
	if (begins_with(first, n, "\x04\x22\x4d\x18", 4))
		return LZ4;
	return BARE;
}

int decompress(struct decompress *d, bool last, struct problem *ret_problem)
{
	static int (*const runs[])(struct decompress *, bool) = {[GZIP] = gzip_run,
		[BZIP2] = bzip2_run,
		[XZ] = xz_run,
		[ZSTD] = zstd_run,
		[LZ4] = lz4_run};
	for (;;) {
		const unsigned in = d->in_bytes, out = d->out_bytes;
		if (d->has_ended && !in) /* after an end, the library has no more output */
			return 0;
		/* Each member of gzip and bzip2 needs a new init. */
		if (d->has_ended && (d->format == GZIP || d->format == BZIP2)) {
			const enum format format = d->format;
			decompress_clear(d);
			if (decompress_begin(d, format))
				return -ENOMEM;
		}
		const int r = runs[d->format](d, last);
		if (r == -EFBIG)
			problem_set(ret_problem,
				"needs more than %u MiB of memory to be decompressed; compress it "
				"with a smaller window (without zstd --long, xz with a smaller "
				"dictionary)",
				MEMORY_MAX >> 20);
		if (r < 0)
			return r;
		d->has_ended = r == 1;
		if (!d->out_bytes)
			return 1;
		const bool has_moved = d->in_bytes != in || d->out_bytes != out;
		if (!has_moved && !d->has_ended)
			return 0; /* the library waits for input */
	}
}
