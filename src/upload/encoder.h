/* Encodes ranges of files, each into whole zstd frames or gzip members, so that what is made of any
 * ranges in a row is one file that every decompressor reads. The same range gives the same bytes
 * each time. One thread at a time. */
#pragma once
#include "upload/body.h"
#include "upload/encoding.h"

struct encoder;
/* Its output is kept in a buffer of up to so many bytes. 0 or -ENOMEM. */
int encoder_new(size_t buffer_bytes, struct encoder **ret);
void encoder_free(struct encoder *encoder);
/* What it needs beside the stream and that buffer. */
#define ENCODER_OWN_BYTES (640U << 10)

/* Begins a range that has an encoding, from its first byte; what was begun before is forgotten.
 * `kinds`: digests of the input. 0, -ENOMEM or -ENOTSUP. */
int encoder_begin(struct encoder *encoder, const struct range *range, unsigned kinds);
/* The next bytes of the output: how many there are at *ret, valid until the next call; 0 at the
 * end; -ESTALE if the file is shorter by now, or the error of reading. */
long encoder_next(struct encoder *encoder, const void **ret);
/* After the end: of the input, with the digests that were asked for. */
const struct sums *encoder_read_sums(const struct encoder *encoder);

/* Appends to its buffer, which encoder_begin() empties; what does not fit any more empties it for
 * good. */
void encoder_keep(struct encoder *encoder, const void *bytes, size_t n);
/* All of the output, if it fitted; else NULL. */
const void *encoder_kept(const struct encoder *encoder);
