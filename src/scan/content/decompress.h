/* Decompresses gzip, bzip2, xz, zstd and lz4 by one function. The first bytes say which format it
 * is. Memory does not grow with the content. */
#pragma once
#include "base/problem.h"
#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>
#include <zstd.h>

/* The number of first bytes that determine the format. */
#define MAGIC_BYTES 10

enum format { BARE, GZIP, BZIP2, XZ, ZSTD, LZ4 };
/* Returns the format that a file has by its first n bytes; BARE: it is not compressed. Pure. */
enum format format_of(const unsigned char *first, size_t n);

/* One content that is decompressed. Zero it to start. The caller sets input and output before each
 * call of decompress(). */
struct decompress {
	enum format format; /* BARE: not begun */
	bool has_ended;     /* a member or frame has ended, and no other has begun */
	/* The rest of the input, and of the room for output. */
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
/* Begins to decompress this format, which is not BARE. Returns 0 or -ENOMEM. */
int decompress_begin(struct decompress *d, enum format format);
/* Decompresses until the input is used up and its result is written, or the output is full. `last`
 * says that no more input follows. Members and frames that follow each other are one content.
 *
 * Returns 0; 1 if the output is full and more may come without input; -EBADMSG if the bytes do not
 * have the format throughout (damaged, or followed by something else); -EFBIG with a sentence if
 * more memory is needed than is allowed; or -ENOMEM. The content is whole if has_ended is set after
 * the last input. */
int decompress(struct decompress *d, bool last, struct problem *ret_problem);
/* Frees the memory, and makes the format BARE. It may be called at any time. */
void decompress_clear(struct decompress *d);
