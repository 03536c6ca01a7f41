/* Encodes ranges of files, each into whole zstd frames or gzip members, so that what is made of any
 * ranges in a row is one file that every decompressor reads. The same range gives the same bytes
 * each time. One thread at a time. */
#pragma once
#include "upload/body/body.h"
#include "upload/body/encoding.h"
#include <uv.h>

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

/* The encoders of a run: as many as the memory for them allows. Whoever encodes holds one until
 * what was made is sent or copied. Thread-safe. */
#define ENCODERS_MAX 64

struct encoders {
	size_t buffer_bytes; /* of the output that each of them can keep */
	unsigned most;
	struct {
		uv_mutex_t mutex;
		uv_cond_t is_free;
		struct encoder *free[ENCODERS_MAX];
		unsigned n_free, n_made;
	} locked;
};
/* What they may take beside the memory for buffers and bodies: so many times options.memory_bytes.
 */
#define ENCODERS_MEMORY_TIMES 2
/* The least of that with which an encoding can be used. */
uint64_t encoders_least_memory(const struct encoding *encoding);
/* For output of about options->part_bytes each, on so many CPUs. In place; it is not moved. */
void encoders_init(struct encoders *encoders, const struct encoding *encoding,
	const struct s3once_options *options, unsigned cpus);
/* Call it when all encoders were given back. */
void encoders_clear(struct encoders *encoders);
/* Waits for an encoder. is_over is asked from time to time. Returns 0, -ECANCELED or -ENOMEM. A
 * caller that holds an encoder must not wait for a second one. */
int encoders_take(
	struct encoders *encoders, bool (*is_over)(void *arg), void *arg, struct encoder **ret);
/* NULL is fine. */
void encoders_give_back(struct encoders *encoders, struct encoder *encoder);
/* So many bytes of a file that is compressed `in` to `out` come to a part that an encoder can keep:
 * whole MiB, at least what S3 takes as a part. */
uint64_t encoders_part_bytes(const struct encoders *encoders, uint64_t in, uint64_t out);
