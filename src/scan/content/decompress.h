/* gzip, bzip2, xz, zstd and lz4 behind one streaming interface. Memory is flat: what one stream may
 * ask for is capped. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stddef.h>

/* The most memory that decompressing may take: what `zstd --ultra` asks for; xz takes half. */
#define DECOMPRESS_MEMORY_MAX (128U << 20)
/* How many first bytes tell the format. */
#define DECOMPRESS_MAGIC_BYTES 10

/* Whether these first n bytes are of a format that is known here. */
bool decompress_knows(const void *first, size_t n);

struct decompress;
/* Begins the decompression of what begins with these n bytes, which are given to decompress_run
 * again. Frees with decompress_free. 0, -ENOENT if they are of no format that is known here, or
 * -ENOMEM. */
int decompress_new(const void *first, size_t n, struct decompress **ret);
void decompress_free(struct decompress *d);

/* What is left of the input, and of the room for output. */
struct decompress_io {
	const unsigned char *in;
	unsigned in_bytes;
	unsigned char *out;
	unsigned out_bytes;
};
/* Moves on in both until the input is used up and all that came of it is written, or the output is
 * full. With last there is no input after this. Members and frames that follow each other are one
 * content. Returns 0, 1 if the output is full and more may come without input; -EBADMSG if this is
 * not the format throughout (damaged, or followed by something else), -EFBIG with a sentence if it
 * needs more memory than is allowed, or -ENOMEM. */
int decompress_run(
	struct decompress *d, struct decompress_io *io, bool last, struct problem *ret_problem);
/* Whether what was read so far ends where the format may end. */
bool decompress_is_whole(const struct decompress *d);
