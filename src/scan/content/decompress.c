/* gzip, bzip2, xz, zstd and lz4 behind the same three functions, and what all of them share:
 * members and frames that follow each other are one content. The reading of contents (content.c)
 * gives it bytes, which come from anybody: no library may take more memory than
 * DECOMPRESS_MEMORY_MAX. */
#include "scan/content/decompress.h"
#include <bzlib.h>
#include <errno.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG_MAX 27 /* of zstd: 1 << 27 is DECOMPRESS_MEMORY_MAX */

struct decompress_format {
	bool (*init)(struct decompress *d);
	/* Moves on in both. 0; 1 if a member or frame has ended; -EBADMSG, -EFBIG if it needs more
	 * memory than is allowed, or -ENOMEM. */
	int (*run)(struct decompress *d, struct decompress_io *io, bool last);
	void (*clear)(struct decompress *d);
	bool begins_anew; /* each member needs an init of its own */
};

struct decompress {
	const struct decompress_format *format;
	bool is_initialised, has_ended;
	union {
		z_stream gzip;
		bz_stream bzip2;
		lzma_stream xz;
		ZSTD_DStream *zstd;
		LZ4F_dctx *lz4;
	};
};

/* Of what the library left of in_bytes and out_bytes. */
static void advance_io(struct decompress_io *io, size_t used, size_t written)
{
	io->in += used;
	io->in_bytes -= (unsigned)used;
	io->out += written;
	io->out_bytes -= (unsigned)written;
}

static bool gzip_init(struct decompress *d)
{
	d->gzip = (z_stream){0};
	return inflateInit2(&d->gzip, 15 + 16) == Z_OK;
}

static int gzip_run(struct decompress *d, struct decompress_io *io, bool last)
{
	d->gzip.next_in = (Bytef *)(uintptr_t)io->in; /* zlib does not write to it */
	d->gzip.avail_in = io->in_bytes;
	d->gzip.next_out = io->out;
	d->gzip.avail_out = io->out_bytes;
	const int r = inflate(&d->gzip, Z_NO_FLUSH);
	advance_io(io, io->in_bytes - d->gzip.avail_in, io->out_bytes - d->gzip.avail_out);
	if (r == Z_STREAM_END || r == Z_OK || r == Z_BUF_ERROR)
		return r == Z_STREAM_END;
	return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static void gzip_clear(struct decompress *d)
{
	inflateEnd(&d->gzip);
}

static bool bzip2_init(struct decompress *d)
{
	d->bzip2 = (bz_stream){0};
	return BZ2_bzDecompressInit(&d->bzip2, 0, 0) == BZ_OK;
}

static int bzip2_run(struct decompress *d, struct decompress_io *io, bool last)
{
	d->bzip2.next_in = (char *)(uintptr_t)io->in; /* libbz2 does not write to it */
	d->bzip2.avail_in = io->in_bytes;
	d->bzip2.next_out = (char *)io->out;
	d->bzip2.avail_out = io->out_bytes;
	const int r = BZ2_bzDecompress(&d->bzip2);
	advance_io(io, io->in_bytes - d->bzip2.avail_in, io->out_bytes - d->bzip2.avail_out);
	if (r == BZ_STREAM_END || r == BZ_OK)
		return r == BZ_STREAM_END;
	return r == BZ_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static void bzip2_clear(struct decompress *d)
{
	BZ2_bzDecompressEnd(&d->bzip2);
}

static bool xz_init(struct decompress *d)
{
	d->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&d->xz, DECOMPRESS_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
}

/* It joins streams by itself and has ended only once there is nothing after them. */
static int xz_run(struct decompress *d, struct decompress_io *io, bool last)
{
	d->xz.next_in = io->in;
	d->xz.avail_in = io->in_bytes;
	d->xz.next_out = io->out;
	d->xz.avail_out = io->out_bytes;
	const lzma_ret r = lzma_code(&d->xz, last ? LZMA_FINISH : LZMA_RUN);
	advance_io(io, io->in_bytes - d->xz.avail_in, io->out_bytes - d->xz.avail_out);
	if (r == LZMA_STREAM_END || r == LZMA_OK || r == LZMA_BUF_ERROR)
		return r == LZMA_STREAM_END;
	return r == LZMA_MEM_ERROR ? -ENOMEM : r == LZMA_MEMLIMIT_ERROR ? -EFBIG : -EBADMSG;
}

static void xz_clear(struct decompress *d)
{
	lzma_end(&d->xz);
}

static bool zstd_init(struct decompress *d)
{
	d->zstd = ZSTD_createDStream();
	if (d->zstd)
		ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	return d->zstd != NULL;
}

static int zstd_run(struct decompress *d, struct decompress_io *io, bool last)
{
	ZSTD_inBuffer in = {io->in, io->in_bytes, 0};
	ZSTD_outBuffer out = {io->out, io->out_bytes, 0};
	const size_t r = ZSTD_decompressStream(d->zstd, &out, &in);
	const ZSTD_ErrorCode error = ZSTD_getErrorCode(r);
	advance_io(io, in.pos, out.pos);
	if (!error)
		return r == 0;
	return error == ZSTD_error_memory_allocation               ? -ENOMEM
	       : error == ZSTD_error_frameParameter_windowTooLarge ? -EFBIG
								   : -EBADMSG;
}

static void zstd_clear(struct decompress *d)
{
	ZSTD_freeDStream(d->zstd);
}

static bool lz4_init(struct decompress *d)
{
	return !LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION));
}

static int lz4_run(struct decompress *d, struct decompress_io *io, bool last)
{
	size_t in = io->in_bytes, out = io->out_bytes;
	const size_t r = LZ4F_decompress(d->lz4, io->out, &out, io->in, &in, NULL);
	if (LZ4F_isError(r))
		return strcmp(LZ4F_getErrorName(r), "ERROR_allocation_failed") == 0 ? -ENOMEM
										    : -EBADMSG;
	advance_io(io, in, out);
	return r == 0;
}

static void lz4_clear(struct decompress *d)
{
	LZ4F_freeDecompressionContext(d->lz4);
}

static const struct decompress_format gzip = {gzip_init, gzip_run, gzip_clear, true};
static const struct decompress_format bzip2 = {bzip2_init, bzip2_run, bzip2_clear, true};
static const struct decompress_format xz = {xz_init, xz_run, xz_clear, false};
static const struct decompress_format zstd = {zstd_init, zstd_run, zstd_clear, false};
static const struct decompress_format lz4 = {lz4_init, lz4_run, lz4_clear, false};

static bool begins_with(const unsigned char *first, size_t n, const char *magic, size_t bytes)
{
	return n >= bytes && memcmp(first, magic, bytes) == 0;
}

static const struct decompress_format *format_of(const unsigned char *first, size_t n)
{
	if (begins_with(first, n, "\x1f\x8b\x08", 3))
		return &gzip;
	/* The size of its blocks follows, and the beginning of a block or of the end. */
	if (begins_with(first, n, "BZh", 3) && n >= 10 && first[3] >= '1' && first[3] <= '9' &&
		(memcmp(first + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
			memcmp(first + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0))
		return &bzip2;
	if (begins_with(first, n, "\xfd\x37\x7a\x58\x5a\0", 6))
		return &xz;
	/* Or a frame that decompresses to nothing; zstd and lz4 share them. */
	if (begins_with(first, n, "\x28\xb5\x2f\xfd", 4) ||
		(n >= 4 && first[0] >> 4 == 5 && memcmp(first + 1, "\x2a\x4d\x18", 3) == 0))
		return &zstd;
	if (begins_with(first, n, "\x04\x22\x4d\x18", 4))
		return &lz4;
	return NULL;
}

bool decompress_knows(const void *first, size_t n)
{
	return format_of(first, n) != NULL;
}

int decompress_new(const void *first, size_t n, struct decompress **ret)
{
	const struct decompress_format *format = format_of(first, n);
	if (!format)
		return -ENOENT;
	struct decompress *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->format = format;
	d->is_initialised = format->init(d);
	if (!d->is_initialised) {
		free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void decompress_free(struct decompress *d)
{
	if (d && d->is_initialised)
		d->format->clear(d);
	free(d);
}

bool decompress_is_whole(const struct decompress *d)
{
	return d->has_ended;
}

int decompress_run(
	struct decompress *d, struct decompress_io *io, bool last, struct problem *ret_problem)
{
	for (;;) {
		const unsigned in = io->in_bytes, out = io->out_bytes;
		if (d->has_ended && !in) /* nothing is pending behind an end */
			return 0;
		if (d->has_ended && d->format->begins_anew) {
			d->format->clear(d);
			d->is_initialised = d->format->init(d);
			if (!d->is_initialised)
				return -ENOMEM;
		}
		const int r = d->format->run(d, io, last);
		if (r == -EFBIG)
			problem_set(ret_problem,
				"needs more than %u MiB of memory to be decompressed; compress it "
				"with a smaller window (without zstd --long, xz with a smaller "
				"dictionary)",
				DECOMPRESS_MEMORY_MAX >> 20);
		if (r < 0)
			return r;
		d->has_ended = r == 1;
		if (!io->out_bytes)
			return 1;
		if (io->in_bytes == in && io->out_bytes == out && !d->has_ended)
			return 0; /* it waits for input */
	}
}
