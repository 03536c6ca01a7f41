/* Compresses ranges of files. Each range becomes whole zstd frames or gzip members, so the output
 * of any ranges in a row is one file that every decompressor reads. The same range gives the same
 * bytes each time. One thread at a time. */
#pragma once
#include "upload/body/body.h"
#include <uv.h>

/* A compressor, by the format that it makes. */
enum codec { CODEC_ZSTD, CODEC_GZIP, CODECS };
struct codec_info {
	const char *name;                /* the name in --compress and in HTTP's Content-Encoding */
	const char *suffix;              /* suffix of the object's key */
	int min_level, level, max_level; /* `level` is the default */
};
extern const struct codec_info codecs[CODECS];

#define ENCODING_MAX 47
/* An encoding of a file's content: compressor, its version, and level. */
struct encoding {
	enum codec codec;
	int level;
	/* Each part of an upload but the last one is padded to exactly this length, for servers
	 * that take only parts of one length. 0: parts have any length. */
	uint64_t part_bytes;
	/* "zstd-1.5.7:3" or "zlib-1.2.13:6"; if part_bytes is set, followed by "=16777216".
	 * Encodings of the same name make the same bytes of the same input, unless the library has
	 * code for some CPUs that makes others. Marks and the metadata of objects have this name.
	 */
	char name[ENCODING_MAX + 1];
};

/* Parses "zstd" or "gzip", with or without ":LEVEL". Returns 0, or -EINVAL with a sentence. */
int encoding_parse(const char *text, struct encoding *ret, struct problem *ret_problem);
/* Returns the same encoding with parts of this length, which is greater than 0. */
struct encoding encoding_in_parts(const struct encoding *encoding, uint64_t part_bytes);
/* Finds the encoding of this name. Returns 0, or -ENOENT if this program cannot make the same
 * bytes: it does not know the compressor, or has another version of it. */
int encoding_named(const char *name, struct encoding *ret);
/* Returns the memory that one compressor needs, in bytes. */
size_t encoding_memory(const struct encoding *encoding);

struct encoder;
/* Makes an encoder that keeps up to this many bytes of its output. Returns 0 or -ENOMEM. */
int encoder_new(size_t buffer_bytes, struct encoder **ret);
void encoder_free(struct encoder *encoder);
/* The memory that an encoder needs beside the compressor and the output that it keeps: a chunk of
 * input and one of output, of 256 KiB each, and what belongs to them. */
#define ENCODER_OWN_BYTES (640U << 10)

/* Begins to compress a range, with range->encoding, from its first byte. Forgets the previous range
 * and its kept output. `kinds` are the digests of the input. Returns 0, -ENOMEM or -ENOTSUP. */
int encoder_begin(struct encoder *encoder, const struct range *range, unsigned kinds);
/* Makes the next bytes of the output, and sets *ret to them. They are valid until the next call.
 * Returns their number, which is 0 at the end. Errors are -ESTALE if the file is shorter by now, or
 * the error of reading. */
long encoder_next(struct encoder *encoder, const void **ret);
/* Returns the requested digests of the input. Call it after encoder_next() has returned 0. */
const struct sums *encoder_input_sums(const struct encoder *encoder);

/* Appends output to what the encoder keeps. Once bytes do not fit, nothing is kept until the next
 * encoder_begin(). */
void encoder_keep(struct encoder *encoder, const void *bytes, size_t n);
/* Returns all that was appended, or NULL if it did not fit. */
const void *encoder_kept(const struct encoder *encoder);

/* The encoders of a run, as many as the memory for them allows. A worker holds one until its output
 * is sent, or copied to the worker's buffer. Thread-safe. */
#define ENCODERS_MAX 64

struct encoders {
	size_t buffer_bytes; /* output that each of them can keep, in bytes */
	unsigned max_encoders;
	struct {
		uv_mutex_t mutex;
		uv_cond_t is_free;
		struct encoder *free[ENCODERS_MAX];
		unsigned n_free, n_made;
	} locked;
};
/* All encoders together may take this many times options.memory_bytes. The memory for buffers and
 * bodies comes on top of that. */
#define ENCODERS_MEMORY_TIMES 2
/* Returns the least memory with which one encoder of this encoding works. */
uint64_t encoders_min_memory(const struct encoding *encoding);
/* Decides the number of encoders, and the size of the output that each can keep. There are two for
 * each CPU, or fewer if memory allows fewer. Each can keep a part of options->part_bytes and a
 * quarter more, or less if memory allows less. encoders_take() makes them. *encoders must not be
 * moved afterwards. */
void encoders_init(struct encoders *encoders, const struct encoding *encoding,
	const struct s3once_options *options, unsigned cpus);
/* Call it when all encoders were given back. */
void encoders_clear(struct encoders *encoders);
/* Waits for an encoder. abandon() is called from time to time. Returns 0, -ECANCELED or -ENOMEM. A
 * caller that holds an encoder must not wait for a second one. */
int encoders_take(
	struct encoders *encoders, bool (*abandon)(void *arg), void *arg, struct encoder **ret);
/* NULL is fine. */
void encoders_give_back(struct encoders *encoders, struct encoder *encoder);
/* Returns the number of bytes of a file from which each part should be made, so that an encoder can
 * keep the compressed part. A sample of sample_bytes was compressed to compressed_bytes. The result
 * is in whole MiB, and no less than S3 takes as a part. */
uint64_t encoders_part_bytes(
	const struct encoders *encoders, uint64_t sample_bytes, uint64_t compressed_bytes);
