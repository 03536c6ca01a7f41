/* What a file contains, whatever it is compressed with. The first part decompresses gzip, bzip2,
 * xz, zstd and lz4 by one function. The second part reads the content, and makes the ids of all of
 * it, of its first bytes and of a range, and a copy of a range.
 *
 * The scan and the removal of a file call it with a file that they have opened; nothing here opens
 * files or knows their names. Memory does not grow with the file. */
#include "scan/content/content.h"
#include "base/checksum.h"
#include "base/files.h"
#include "base/text.h"
#include <bzlib.h>
#include <errno.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define CHUNK_BYTES (64U << 10)
/* The most memory that decompressing may take, since the bytes may come from anyone. `zstd --ultra`
 * asks for this much, and xz for half of it. */
#define MEMORY_MAX     (128U << 20)
#define WINDOW_LOG_MAX 27 /* of zstd, as a power of two: 1 << 27 is MEMORY_MAX */
/* How many first bytes tell the format. */
#define MAGIC_BYTES 10

enum format { BARE, GZIP, BZIP2, XZ, ZSTD, LZ4 };

struct decompress {
	enum format format; /* BARE: it has not begun */
	bool has_ended;
	/* What is left of the input, and of the room for output. */
	const unsigned char *in;
	unsigned char *out;
	unsigned in_bytes, out_bytes;
	union {
		z_stream gzip;
		bz_stream bzip2;
		lzma_stream xz;
		ZSTD_DStream *zstd;
		LZ4F_dctx *lz4;
	};
};

/* Moves input and output on by what the library has used and written. */
static void advance_io(struct decompress *d, size_t used, size_t written)
{
	d->in += used;
	d->in_bytes -= (unsigned)used;
	d->out += written;
	d->out_bytes -= (unsigned)written;
}

/* gzip_run() and the four functions below it are in the table of decompress(), which says what they
 * return. Only liblzma has to be told that the input is the `last`. */
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

static bool begins_with(const unsigned char *first, size_t n, const char *magic, size_t bytes)
{
	return n >= bytes && memcmp(first, magic, bytes) == 0;
}

/* Returns the format that a file has by its first n bytes. */
static enum format format_of(const unsigned char *first, size_t n)
{
	if (begins_with(first, n, "\x1f\x8b\x08", 3))
		return GZIP;
	/* Behind "BZh" come the size of the blocks, and the magic number of a block or of the end.
	 */
	if (begins_with(first, n, "BZh", 3) && n >= 10 && first[3] >= '1' && first[3] <= '9' &&
		(memcmp(first + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
			memcmp(first + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0))
		return BZIP2;
	if (begins_with(first, n, "\xfd\x37\x7a\x58\x5a\0", 6))
		return XZ;
	/* A frame of zstd, or a skippable frame, which decompresses to nothing. zstd and lz4 share
	 * the latter. */
	if (begins_with(first, n, "\x28\xb5\x2f\xfd", 4) ||
		(n >= 4 && first[0] >> 4 == 5 && memcmp(first + 1, "\x2a\x4d\x18", 3) == 0))
		return ZSTD;
	if (begins_with(first, n, "\x04\x22\x4d\x18", 4))
		return LZ4;
	return BARE;
}

/* Decompresses until the input is used up and all that came of it is written, or the output is
 * full. `last` says that no more input follows. Members and frames that follow each other are one
 * content.
 *
 * Returns 0; 1 if the output is full and more may come without input; -EBADMSG if the bytes do not
 * have the format throughout (damaged, or followed by something else); -EFBIG with a sentence if
 * more memory is needed than is allowed; or -ENOMEM. */
static int decompress(struct decompress *d, bool last, struct problem *ret_problem)
{
	/* By format. Each function uses input and writes output. It returns 1 if a member or frame
	 * has ended, else 0, or -EBADMSG, -EFBIG or -ENOMEM. */
	static int (*const runs[])(struct decompress *, bool) = {
		NULL, gzip_run, bzip2_run, xz_run, zstd_run, lz4_run};
	for (;;) {
		const unsigned in = d->in_bytes, out = d->out_bytes;
		if (d->has_ended && !in) /* the library has no output left behind an end */
			return 0;
		/* Each member of gzip and bzip2 needs a new init. */
		if (d->has_ended && (d->format == GZIP || d->format == BZIP2)) {
			clear_format(d);
			if (!init_format(d)) {
				d->format = BARE; /* nothing is left for clear_format() */
				return -ENOMEM;
			}
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
		if (d->in_bytes == in && d->out_bytes == out && !d->has_ended)
			return 0; /* the library waits for input */
	}
}

/* One reading of a content. The content is measured, or a range of it is copied. */
struct reading {
	const struct content *content;
	const struct content_range *range; /* that is copied; NULL: the content is measured */
	struct content_prefix *prefixes;
	size_t n_prefixes;
	unsigned char *in, *out;
	struct decompress decompress; /* BARE: the bytes are taken as they are */

	uint64_t at;               /* offset in the file of what is read next */
	uint64_t bytes;            /* of the content that were taken so far */
	size_t next;               /* the first prefix that is not shorter than these bytes */
	bool has_prefix;           /* the content begins with one of the prefixes */
	bool has_enough;           /* the end of the range was reached */
	struct digest whole, rest; /* whole: of the content, or of the range; rest: of
				      what follows the last prefix that is there */
};

/* Reads all of the next chunk of the file, and moves `at` behind it. Returns its bytes, 0 at the
 * end of the file, or -errno, also if the file has become too short (-ESTALE). */
static long read_next(struct reading *reading)
{
	const struct content *content = reading->content;
	const uint64_t left = content->size - reading->at;
	const size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	if (content->is_over && content->is_over(content->arg))
		return -ECANCELED;
	reading->at += want;
	return read_at(content->fd, reading->in, want, reading->at - want);
}

/* Sets ret_id to the id of the bytes that the digest has so far. Returns 0 or -errno. */
static int peek(const struct digest *digest, char ret_id[static CONTENT_ID_CHARS + 1])
{
	struct sums sums;
	const int error = digest_peek(digest, &sums);
	if (!error)
		hex_encode(sums.sha256, sizeof sums.sha256, ret_id);
	return error;
}

/* Compares the id of the bytes that were taken so far with each prefix of this length. If one is
 * the same, the content begins with that prefix, and `rest` begins anew behind it. Returns 0 or
 * -errno. */
static int compare_prefixes(struct reading *reading)
{
	int error = 0;
	for (; !error && reading->next < reading->n_prefixes; reading->next++) {
		struct content_prefix *prefix = &reading->prefixes[reading->next];
		char id[CONTENT_ID_CHARS + 1];
		if (prefix->bytes != reading->bytes)
			break;
		error = peek(&reading->whole, id);
		prefix->is_there = !error && strcmp(id, prefix->id) == 0;
		if (!prefix->is_there)
			continue;
		reading->has_prefix = true;
		error = digest_restart(&reading->rest, DIGEST_SHA256);
	}
	return error;
}

/* Begins to read the content, and discards what was taken of it before. It is called once more if
 * the file turns out not to be compressed throughout. Returns 0 or -errno. */
static int begin_reading(struct reading *reading)
{
	const struct content_range *range = reading->range;
	reading->at = reading->bytes = reading->next = 0;
	reading->has_prefix = reading->has_enough = false;
	for (size_t i = 0; i < reading->n_prefixes; i++)
		reading->prefixes[i].is_there = false;
	if (range && (ftruncate(range->copy_fd, 0) < 0 || lseek(range->copy_fd, 0, SEEK_SET) < 0))
		return -errno;
	const int error = digest_restart(&reading->whole, DIGEST_SHA256);
	return error ? error : compare_prefixes(reading);
}

/* Takes the next n bytes of the content. Those before the range are skipped, those in it are
 * copied, and those behind it are not taken. Returns 0 or the error of writing. */
static int copy_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	const uint64_t from = reading->range->from, to = reading->range->to, at = reading->bytes;
	const size_t taken = to - at < n ? (size_t)(to - at) : n;
	const uint64_t before = from > at ? from - at : 0;
	const size_t skipped = before < taken ? (size_t)before : taken;
	digest_update(&reading->whole, bytes + skipped, taken - skipped);
	reading->bytes += taken;
	reading->has_enough = reading->bytes == to;
	return write_all(reading->range->copy_fd, bytes + skipped, taken - skipped);
}

/* Takes the next n bytes of the content, in steps. A step ends where a prefix ends, so that the id
 * of the bytes so far can be compared with that of the prefix. */
static int measure_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	int error = 0;
	while (!error && n) {
		uint64_t step = n;
		if (reading->next < reading->n_prefixes)
			step = reading->prefixes[reading->next].bytes - reading->bytes;
		const size_t now = step < n ? (size_t)step : n;
		digest_update(&reading->whole, bytes, now);
		if (reading->has_prefix)
			digest_update(&reading->rest, bytes, now);
		reading->bytes += now;
		bytes += now;
		n -= now;
		error = compare_prefixes(reading);
	}
	return error;
}

static int take_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	return reading->range ? copy_bytes(reading, bytes, n) : measure_bytes(reading, bytes, n);
}

/* Decompresses the n bytes that were read, and takes what comes out. At the end of the file n is
 * 0. Returns 0, an error of decompress(), of writing, or -ECANCELED. */
static int add_decompressed(struct reading *reading, size_t n, struct problem *ret_problem)
{
	struct decompress *d = &reading->decompress;
	d->in = reading->in;
	d->in_bytes = (unsigned)n;
	int r;
	do {
		d->out = reading->out;
		d->out_bytes = CHUNK_BYTES;
		r = decompress(d, n == 0, ret_problem);
		const struct content *content = reading->content;
		const int error =
			r < 0 ? 0 : take_bytes(reading, reading->out, CHUNK_BYTES - d->out_bytes);
		if (error)
			return error;
		if (r > 0 && content->is_over && content->is_over(content->arg))
			return -ECANCELED;
	} while (r > 0);
	return r;
}

/* Reads the content from the first byte. If may_decompress is set and the file begins as a
 * compressed one does, it is decompressed. Returns 0, -EBADMSG if it is not compressed throughout,
 * or another -errno. */
static int read_through(struct reading *reading, bool may_decompress, struct problem *ret_problem)
{
	struct decompress *d = &reading->decompress;
	int r = begin_reading(reading);
	long n = 1; /* bytes of the last chunk; 0 once the file was read to its end */
	/* A compressed file is read to its end, even if the range is complete: only the end shows
	 * that the file is compressed throughout. */
	while (r == 0 && n && (!reading->has_enough || d->format)) {
		const bool is_first_chunk = reading->at == 0;
		n = read_next(reading);
		if (n < 0)
			return (int)n;
		if (may_decompress && is_first_chunk)
			d->format = format_of(reading->in, (size_t)n);
		if (is_first_chunk && d->format && !init_format(d)) {
			d->format = BARE; /* nothing has begun for clear_format() */
			return -ENOMEM;
		}
		r = d->format ? add_decompressed(reading, (size_t)n, ret_problem)
			      : take_bytes(reading, reading->in, (size_t)n);
	}
	const bool is_whole = !d->format || d->has_ended;
	return r == 0 && !is_whole ? -EBADMSG : r;
}

/* Reads the content: decompressed if the file is compressed throughout, else as it is. Sets ret_id
 * to the id of the content or, if a range is copied, of the range. Returns as content_id() or
 * content_copy(). The caller clears the digests in any case. */
static int read_content(struct reading *reading, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	reading->in = malloc(2UL * CHUNK_BYTES);
	if (!reading->in)
		return -ENOMEM;
	reading->out = reading->in + CHUNK_BYTES;
	int r = read_through(reading, true, ret_problem);
	clear_format(&reading->decompress);
	reading->decompress.format = BARE;
	if (r == -EBADMSG)
		r = read_through(reading, false, ret_problem);
	free(reading->in);
	return r ? r : peek(&reading->whole, ret_id);
}

int content_seems_compressed(int fd)
{
	unsigned char first[MAGIC_BYTES];
	ssize_t n;
	while ((n = pread(fd, first, sizeof first, 0)) < 0 && errno == EINTR)
		;
	return n < 0 ? -errno : format_of(first, (size_t)n) != BARE;
}

int content_measure(const struct content *content, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret, struct problem *ret_problem)
{
	struct reading reading = {.content = content, .prefixes = prefixes, .n_prefixes = n};
	int r = read_content(&reading, ret->id, ret_problem);
	ret->bytes = reading.bytes;
	if (r == 0)
		r = peek(reading.has_prefix ? &reading.rest : &reading.whole, ret->rest);
	digest_clear(&reading.whole);
	digest_clear(&reading.rest);
	return r;
}

int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct content_measured found;
	const int r = content_measure(content, NULL, 0, &found, ret_problem);
	if (r == 0)
		memcpy(ret_id, found.id, sizeof found.id);
	return r;
}

int content_copy(const struct content *content, const struct content_range *range,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem)
{
	struct reading reading = {.content = content, .range = range};
	const int r = read_content(&reading, ret_id, ret_problem);
	digest_clear(&reading.whole);
	return r == 0 && reading.bytes != range->to ? -ESTALE : r;
}
