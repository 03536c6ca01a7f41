/* gzip, bzip2, xz, zstd and lz4 behind one table of functions, and what all of them share: members
 * and frames that follow each other are one content. The reading of contents (content.c) gives it
 * bytes, which come from anybody: no library may take more memory than DECOMPRESS_MEMORY_MAX. */
#include "scan/content/decompress.h"
#include <bzlib.h>
#include <errno.h>
#include <limits.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG_MAX 27 /* of zstd: 1 << 27 is DECOMPRESS_MEMORY_MAX */

/* What one call of a library did. */
enum decompress_step {
	STEP_MORE, /* it goes on */
	STEP_END,  /* a member or frame has ended */
	STEP_DAMAGED,
	STEP_TOO_LARGE,
	STEP_NO_MEMORY,
};

struct decompress_format {
	bool (*begins)(const unsigned char *first, size_t n);
	bool (*init)(struct decompress *d);
	enum decompress_step (*run)(struct decompress *d, struct decompress_io *io, bool last);
	bool (*restart)(struct decompress *d); /* after END, before more; NULL: by itself */
	void (*clear)(struct decompress *d);
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

static bool begins_with(const unsigned char *first, size_t n, const char *magic, size_t bytes)
{
	return n >= bytes && memcmp(first, magic, bytes) == 0;
}

static unsigned at_most_uint(size_t n)
{
	return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

/* Of what the library left of in_bytes and out_bytes. */
static void advance_io(struct decompress_io *io, size_t used, size_t written)
{
	io->in += used;
	io->in_bytes -= used;
	io->out += written;
	io->out_bytes -= written;
}

static bool gzip_begins(const unsigned char *first, size_t n)
{
	return begins_with(first, n, "\x1f\x8b\x08", 3);
}

static bool gzip_init(struct decompress *d)
{
	return inflateInit2(&d->gzip, 15 + 16) == Z_OK;
}

static enum decompress_step gzip_run(struct decompress *d, struct decompress_io *io, bool last)
{
	const unsigned in = at_most_uint(io->in_bytes), out = at_most_uint(io->out_bytes);
	d->gzip.next_in = (Bytef *)(uintptr_t)io->in; /* zlib does not write to it */
	d->gzip.avail_in = in;
	d->gzip.next_out = io->out;
	d->gzip.avail_out = out;
	int r = inflate(&d->gzip, Z_NO_FLUSH);
	advance_io(io, in - d->gzip.avail_in, out - d->gzip.avail_out);
	if (r == Z_STREAM_END)
		return STEP_END;
	if (r == Z_MEM_ERROR)
		return STEP_NO_MEMORY;
	return r == Z_OK || r == Z_BUF_ERROR ? STEP_MORE : STEP_DAMAGED;
}

static bool gzip_restart(struct decompress *d)
{
	return inflateReset(&d->gzip) == Z_OK;
}

static void gzip_clear(struct decompress *d)
{
	inflateEnd(&d->gzip);
}

/* "BZh", the size of its blocks, and the beginning of a block or of the end. */
static bool bzip2_begins(const unsigned char *first, size_t n)
{
	return begins_with(first, n, "BZh", 3) && n >= 10 && first[3] >= '1' && first[3] <= '9' &&
	       (begins_with(first + 4, n - 4, "\x31\x41\x59\x26\x53\x59", 6) ||
		       begins_with(first + 4, n - 4, "\x17\x72\x45\x38\x50\x90", 6));
}

static bool bzip2_init(struct decompress *d)
{
	d->bzip2 = (bz_stream){0};
	return BZ2_bzDecompressInit(&d->bzip2, 0, 0) == BZ_OK;
}

static enum decompress_step bzip2_run(struct decompress *d, struct decompress_io *io, bool last)
{
	const unsigned in = at_most_uint(io->in_bytes), out = at_most_uint(io->out_bytes);
	d->bzip2.next_in = (char *)(uintptr_t)io->in; /* libbz2 does not write to it */
	d->bzip2.avail_in = in;
	d->bzip2.next_out = (char *)io->out;
	d->bzip2.avail_out = out;
	int r = BZ2_bzDecompress(&d->bzip2);
	advance_io(io, in - d->bzip2.avail_in, out - d->bzip2.avail_out);
	if (r == BZ_STREAM_END)
		return STEP_END;
	if (r == BZ_MEM_ERROR)
		return STEP_NO_MEMORY;
	return r == BZ_OK ? STEP_MORE : STEP_DAMAGED;
}

static void bzip2_clear(struct decompress *d)
{
	BZ2_bzDecompressEnd(&d->bzip2);
}

static bool bzip2_restart(struct decompress *d)
{
	bzip2_clear(d);
	d->is_initialised = bzip2_init(d);
	return d->is_initialised;
}

static bool xz_begins(const unsigned char *first, size_t n)
{
	return begins_with(first, n,
		"\xfd"
		"7zXZ\0",
		6);
}

static bool xz_init(struct decompress *d)
{
	d->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&d->xz, DECOMPRESS_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
}

/* It joins streams by itself and says END only once there is nothing after them. */
static enum decompress_step xz_run(struct decompress *d, struct decompress_io *io, bool last)
{
	d->xz.next_in = io->in;
	d->xz.avail_in = io->in_bytes;
	d->xz.next_out = io->out;
	d->xz.avail_out = io->out_bytes;
	lzma_ret r = lzma_code(&d->xz, last ? LZMA_FINISH : LZMA_RUN);
	advance_io(io, io->in_bytes - d->xz.avail_in, io->out_bytes - d->xz.avail_out);
	switch (r) {
	case LZMA_STREAM_END:
		return STEP_END;
	case LZMA_OK:
	case LZMA_BUF_ERROR:
		return STEP_MORE;
	case LZMA_MEM_ERROR:
		return STEP_NO_MEMORY;
	case LZMA_MEMLIMIT_ERROR:
		return STEP_TOO_LARGE;
	default:
		return STEP_DAMAGED;
	}
}

static void xz_clear(struct decompress *d)
{
	lzma_end(&d->xz);
}

/* Frames that decompress to nothing; zstd and lz4 share them. */
static bool is_skippable(const unsigned char *first, size_t n)
{
	return n >= 4 && first[0] >> 4 == 5 && begins_with(first + 1, n - 1, "\x2a\x4d\x18", 3);
}

static bool zstd_begins(const unsigned char *first, size_t n)
{
	return begins_with(first, n, "\x28\xb5\x2f\xfd", 4) || is_skippable(first, n);
}

static bool zstd_init(struct decompress *d)
{
	d->zstd = ZSTD_createDStream();
	if (d->zstd)
		ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	return d->zstd != NULL;
}

static enum decompress_step zstd_run(struct decompress *d, struct decompress_io *io, bool last)
{
	ZSTD_inBuffer in = {io->in, io->in_bytes, 0};
	ZSTD_outBuffer out = {io->out, io->out_bytes, 0};
	size_t r = ZSTD_decompressStream(d->zstd, &out, &in);
	advance_io(io, in.pos, out.pos);
	if (!ZSTD_isError(r))
		return r ? STEP_MORE : STEP_END;
	switch (ZSTD_getErrorCode(r)) {
	case ZSTD_error_memory_allocation:
		return STEP_NO_MEMORY;
	case ZSTD_error_frameParameter_windowTooLarge:
		return STEP_TOO_LARGE;
	default:
		return STEP_DAMAGED;
	}
}

static void zstd_clear(struct decompress *d)
{
	ZSTD_freeDStream(d->zstd);
}

static bool lz4_begins(const unsigned char *first, size_t n)
{
	return begins_with(first, n, "\x04\x22\x4d\x18", 4);
}

static bool lz4_init(struct decompress *d)
{
	return !LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION));
}

static enum decompress_step lz4_run(struct decompress *d, struct decompress_io *io, bool last)
{
	size_t in = io->in_bytes, out = io->out_bytes;
	size_t r = LZ4F_decompress(d->lz4, io->out, &out, io->in, &in, NULL);
	if (LZ4F_isError(r))
		return strcmp(LZ4F_getErrorName(r), "ERROR_allocation_failed") == 0 ? STEP_NO_MEMORY
										    : STEP_DAMAGED;
	advance_io(io, in, out);
	return r ? STEP_MORE : STEP_END;
}

static void lz4_clear(struct decompress *d)
{
	LZ4F_freeDecompressionContext(d->lz4);
}

static const struct decompress_format formats[] = {
	{gzip_begins, gzip_init, gzip_run, gzip_restart, gzip_clear},
	{bzip2_begins, bzip2_init, bzip2_run, bzip2_restart, bzip2_clear},
	{xz_begins, xz_init, xz_run, NULL, xz_clear},
	{zstd_begins, zstd_init, zstd_run, NULL, zstd_clear},
	{lz4_begins, lz4_init, lz4_run, NULL, lz4_clear},
};

static const struct decompress_format *format_of(const void *first, size_t n)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].begins(first, n))
			return &formats[i];
	return NULL;
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

static int step_error(enum decompress_step step, struct problem *ret_problem)
{
	switch (step) {
	case STEP_DAMAGED:
		return -EBADMSG;
	case STEP_NO_MEMORY:
		return -ENOMEM;
	case STEP_TOO_LARGE:
		problem_set(ret_problem,
			"needs more than %u MiB of memory to be decompressed; compress it with a "
			"smaller window (without zstd --long, xz with a smaller dictionary)",
			DECOMPRESS_MEMORY_MAX >> 20);
		return -EFBIG;
	default:
		return 0;
	}
}

int decompress_run(
	struct decompress *d, struct decompress_io *io, bool last, struct problem *ret_problem)
{
	for (;;) {
		const size_t in = io->in_bytes, out = io->out_bytes;
		if (d->has_ended && in && d->format->restart && !d->format->restart(d))
			return -ENOMEM;
		if (d->has_ended && !in) /* nothing is pending behind an end */
			return 0;
		enum decompress_step step = d->format->run(d, io, last);
		int error = step_error(step, ret_problem);
		if (error)
			return error;
		d->has_ended = step == STEP_END;
		if (!io->out_bytes)
			return 1;
		if (io->in_bytes == in && io->out_bytes == out && step == STEP_MORE)
			return 0; /* it waits for input */
	}
}
