/* Encodes ranges of files, each into whole zstd frames or gzip members, so that what is made of any
 * ranges in a row is one file that every decompressor reads. The same range gives the same bytes
 * each time. One thread at a time. */
#pragma once
#include "upload/body/body.h"
#include "upload/body/encoding.h"

struct encoder;
/* Makes an encoder that keeps up to this many bytes of its output. Returns 0 or -ENOMEM. */
int encoder_new(size_t buffer_bytes, struct encoder **ret);
void encoder_free(struct encoder *encoder);
/* What it needs beside the stream and that buffer. */
#define ENCODER_OWN_BYTES (640U << 10)

/* Begins a range that has an encoding, from its first byte, and forgets the range before. `kinds`
 * are the digests of the input. Returns 0, -ENOMEM or -ENOTSUP. */
int encoder_begin(struct encoder *encoder, const struct range *range, unsigned kinds);
/* Returns the number of the next bytes of the output, which are at *ret until the next call, or 0
 * at the end. Errors are -ESTALE if the file is shorter by now, or the error of reading. */
long encoder_next(struct encoder *encoder, const void **ret);
/* After the end: of the input, with the digests that were asked for. */
const struct sums *encoder_read_sums(const struct encoder *encoder);

/* Appends to the buffer, which encoder_begin() empties. If the bytes do not fit, the buffer is
 * emptied, and stays empty until then. */
void encoder_keep(struct encoder *encoder, const void *bytes, size_t n);
/* The whole output if it fitted, or else NULL. */
const void *encoder_kept(const struct encoder *encoder);
