/* First come the names of encodings: encoding_parse() reads the value of --compress, and marks and
 * metadata keep the name. Then comes one encoder, which makes whole zstd frames or gzip members of
 * a range of a file, and pads them to the least length that S3 takes for a part. Last come the
 * encoders of a run, of which there are as many as memory allows. payload.c takes one of these for
 * each payload that is compressed. */
#include "upload/body/encoder.h"
#include "base/files.h"
#include "base/wait_until.h"
#include "upload/body/multipart_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimateCStreamSize */
#include <zstd.h>

/* A compressor is always given chunks of these sizes, since the bytes that it makes of the same
 * input may depend on the sizes of the chunks. */
#define IN_BYTES  (256U << 10)
#define OUT_BYTES (256U << 10)

/* zlib needs 2^(windowBits+2) + 2^(memLevel+9) bytes (zconf.h), and some KiB for small objects.
 * With 15 and 8, as in begin_gzip(), that is a little more than 256 KiB. */
#define ZLIB_MEMORY (288U << 10)

/* The header of a frame that decompressors skip (RFC 8878, 3.1.2): a magic number, and the size of
 * the rest. */
#define SKIPPABLE_BYTES 8
/* gzip is padded with empty members. The extra field of such a member, between its header and its
 * end, has up to 65,535 bytes and consists of subfields (RFC 1952). */
#define MEMBER_HEADER_BYTES 12
#define MEMBER_END_BYTES    10
#define SUBFIELD_BYTES      4 /* the header of a subfield */
#define MEMBER_MIN_BYTES    (MEMBER_HEADER_BYTES + SUBFIELD_BYTES + MEMBER_END_BYTES)
#define MEMBER_MAX_BYTES    (MEMBER_HEADER_BYTES + 65535 + MEMBER_END_BYTES)

#define MIB (1ULL << 20)
/* The least buffer, and the number of tenths of a buffer that a compressed part is meant to fill.
 * Parts compress differently well, so some become larger than the sample predicts. */
#define BUFFER_MIN    (PART_BYTES_MIN + PART_BYTES_MIN / 4)
#define TENTHS_WANTED 9
/* a larger range would be too expensive to compress again after a kill */
#define RANGE_MAX      (256 * MIB)
#define OVER_SUBSCRIBE 2 /* encoders for each CPU: while one part is sent, another one is made */

struct encoder {
	struct range range;
	struct digest input;
	struct sums input_sums; /* the checksums of `input`, once all output is made */
	ZSTD_CCtx *zstd;
	z_stream zlib;
	int zlib_level;           /* level of the state in `zlib`, from 1 to 9; 0: no state */
	uint64_t taken, made;     /* bytes of input and output so far, without padding */
	size_t in_bytes, in_used; /* bytes in `in`, and how many of them the compressor has taken */
	bool has_ended;           /* all output of the range is made, except for the padding */
	uint64_t padding;         /* remaining bytes of padding */
	unsigned char in[IN_BYTES], out[OUT_BYTES];
	size_t buffer_bytes, kept_bytes; /* size of `buffer`, and its used bytes */
	bool is_kept;                    /* all output that encoder_keep() got is in `buffer` */
	unsigned char *buffer;           /* NULL until it is needed */
};

/* The levels of zstd above 19 are excluded, since their output needs much memory to decompress. */
const struct codec_info codecs[CODECS] = {
	[CODEC_ZSTD] =
		{.name = "zstd", .suffix = ".zst", .min_level = 1, .level = 3, .max_level = 19},
	[CODEC_GZIP] =
		{.name = "gzip", .suffix = ".gz", .min_level = 1, .level = 6, .max_level = 9},
};

/* Sets encoding->name by its codec and level. */
static void set_name(struct encoding *encoding)
{
	const bool is_zstd = encoding->codec == CODEC_ZSTD;
	snprintf(encoding->name, sizeof encoding->name, "%s-%s:%d", is_zstd ? "zstd" : "zlib",
		is_zstd ? ZSTD_versionString() : zlibVersion(), encoding->level);
}

/* Returns the level, or -1 if the text is not a level of this codec. */
static int read_level(const struct codec_info *codec, const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	const bool is_number = digits && digits < 3 && !text[digits];
	const long level = is_number ? strtol(text, NULL, 10) : -1;
	return (level >= codec->min_level && level <= codec->max_level) ? (int)level : -1;
}

/* Returns the codec whose name these n bytes are, or CODECS. */
static enum codec codec_named(const char *name, size_t n)
{
	enum codec codec = 0;
	while (codec < CODECS &&
		(strlen(codecs[codec].name) != n || strncmp(codecs[codec].name, name, n) != 0))
		codec++;
	return codec;
}

int encoding_parse(const char *text, struct encoding *ret, struct problem *ret_problem)
{
	const size_t n = strcspn(text, ":");
	struct encoding encoding = {.codec = codec_named(text, n)};
	if (encoding.codec == CODECS)
		return problem_error(ret_problem, -EINVAL,
			"\"%s\" is neither zstd nor gzip, with or without :LEVEL",
			quote(text).text);
	const struct codec_info *codec = &codecs[encoding.codec];
	encoding.level = text[n] ? read_level(codec, text + n + 1) : codec->level;
	if (encoding.level < 0)
		return problem_error(ret_problem, -EINVAL,
			"\"%s\" is not a level of %s: give a number from %d to %d",
			quote(text + n + 1).text, codec->name, codec->min_level, codec->max_level);
	set_name(&encoding);
	*ret = encoding;
	return 0;
}

struct encoding encoding_in_parts(const struct encoding *encoding, uint64_t part_bytes)
{
	struct encoding ret = *encoding;
	/* The name may end with the length of other parts, which is replaced. */
	const size_t n = strcspn(ret.name, "=");
	ret.part_bytes = part_bytes;
	snprintf(ret.name + n, sizeof ret.name - n, "=%" PRIu64, part_bytes);
	return ret;
}

int encoding_named(const char *name, struct encoding *ret)
{
	char base[ENCODING_MAX + 1];
	const size_t n = strcspn(name, "=");
	if (n >= sizeof base)
		return -ENOENT;
	memcpy(base, name, n);
	base[n] = '\0';
	const char *colon = strrchr(base, ':');
	/* The name has the version of the library. So the codec is the one by which this program
	 * gives an encoding of this level the same name. */
	for (enum codec codec = 0; colon && codec < CODECS; codec++) {
		struct encoding encoding = {
			.codec = codec, .level = read_level(&codecs[codec], colon + 1)};
		if (encoding.level < 0)
			continue;
		set_name(&encoding);
		if (strcmp(encoding.name, base) != 0)
			continue;
		if (name[n])
			encoding = encoding_in_parts(&encoding, strtoull(name + n + 1, NULL, 10));
		/* strtoull() also reads a length such as "=007" or "=8x", whose name would
		 * differ. */
		if (strcmp(encoding.name, name) != 0 || (name[n] && !encoding.part_bytes))
			return -ENOENT;
		*ret = encoding;
		return 0;
	}
	return -ENOENT;
}

size_t encoding_memory(const struct encoding *encoding)
{
	return encoding->codec == CODEC_ZSTD ? ZSTD_estimateCStreamSize(encoding->level)
					     : ZLIB_MEMORY;
}

int encoder_new(size_t buffer_bytes, struct encoder **ret)
{
	struct encoder *encoder = calloc(1, sizeof *encoder);
	if (!encoder || digest_init(&encoder->input, 0)) {
		free(encoder);
		return -ENOMEM;
	}
	encoder->buffer_bytes = buffer_bytes;
	*ret = encoder;
	return 0;
}

void encoder_free(struct encoder *encoder)
{
	if (!encoder)
		return;
	ZSTD_freeCCtx(encoder->zstd);
	if (encoder->zlib_level)
		deflateEnd(&encoder->zlib);
	digest_clear(&encoder->input);
	free(encoder->buffer);
	free(encoder);
}

/* Resets zlib, so that the bytes of a member do not depend on the members before it. 0 or -ENOMEM.
 */
static int begin_gzip(struct encoder *e, int level)
{
	if (e->zlib_level == level)
		return deflateReset(&e->zlib) == Z_OK ? 0 : -ENOMEM;
	if (e->zlib_level)
		deflateEnd(&e->zlib);
	e->zlib = (z_stream){0};
	/* windowBits is 15, the most; adding 16 makes a gzip header. 8 is the default memLevel. */
	const int r = deflateInit2(&e->zlib, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	e->zlib_level = r == Z_OK ? level : 0;
	return r == Z_OK ? 0 : -ENOMEM;
}

int encoder_begin(struct encoder *e, const struct range *range, unsigned kinds)
{
	const int level = range->encoding->level;
	e->range = *range;
	e->taken = e->made = e->padding = 0;
	e->in_bytes = e->in_used = e->kept_bytes = 0;
	e->has_ended = false;
	e->is_kept = true;
	const int error = digest_restart(&e->input, kinds);
	if (error)
		return error;
	if (range->encoding->codec != CODEC_ZSTD)
		return begin_gzip(e, level);
	if (!e->zstd && !(e->zstd = ZSTD_createCCtx()))
		return -ENOMEM;
	/* zstd writes the size of the content into the frame's header, and a checksum at the
	 * end. These calls fail only for values that zstd does not know. */
	ZSTD_CCtx_reset(e->zstd, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setPledgedSrcSize(e->zstd, range->bytes);
	return 0;
}

/* Fills `in` with the next chunk of the range, or with all that is left of the range. Returns 0,
 * -ESTALE if the file is shorter by now, or the error of reading. */
static int read_input(struct encoder *e)
{
	const uint64_t left = e->range.bytes - e->taken;
	e->in_used = 0;
	e->in_bytes = left < IN_BYTES ? (size_t)left : IN_BYTES;
	const long got = read_at(e->range.fd, e->in, e->in_bytes, e->range.offset + e->taken);
	if (got < 0)
		return (int)got;
	digest_update(&e->input, e->in, e->in_bytes);
	e->taken += e->in_bytes;
	return 0;
}

/* Runs zlib once, as run_compressor(). */
static long run_gzip(struct encoder *e, bool is_last)
{
	z_stream *zlib = &e->zlib;
	zlib->next_in = e->in + e->in_used;
	zlib->avail_in = (uInt)(e->in_bytes - e->in_used);
	zlib->next_out = e->out;
	zlib->avail_out = OUT_BYTES;
	const int r = deflate(zlib, is_last ? Z_FINISH : Z_NO_FLUSH);
	/* Z_BUF_ERROR is no error: zlib waits for more input, or for room. Z_STREAM_ERROR would
	 * mean that the state is damaged, and cannot happen. */
	if (r == Z_STREAM_ERROR)
		return -ENOMEM;
	e->in_used = e->in_bytes - zlib->avail_in;
	e->has_ended = r == Z_STREAM_END;
	return (long)(OUT_BYTES - zlib->avail_out);
}

/* Runs the compressor once on what is left in `in`. Returns the number of bytes put into `out`,
 * which may be 0, or -ENOMEM. If they are the last ones, has_ended is set. */
static long run_compressor(struct encoder *e)
{
	const bool is_last = e->taken == e->range.bytes;
	if (e->range.encoding->codec != CODEC_ZSTD)
		return run_gzip(e, is_last);
	ZSTD_inBuffer in = {e->in, e->in_bytes, e->in_used};
	ZSTD_outBuffer out = {e->out, OUT_BYTES, 0};
	const size_t left =
		ZSTD_compressStream2(e->zstd, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
	if (ZSTD_isError(left))
		return -ENOMEM; /* the other errors cannot happen */
	e->in_used = in.pos;
	e->has_ended = is_last && left == 0;
	return (long)out.pos;
}

static void put_le(unsigned char *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> (8 * i));
}

/* Returns the number of bytes of padding that the output needs: 0, or at least the length of the
 * smallest frame or member that padding can be made of. */
static uint64_t padding_of(const struct encoder *e)
{
	const bool is_zstd = e->range.encoding->codec == CODEC_ZSTD;
	const uint64_t min_bytes = is_zstd ? SKIPPABLE_BYTES : MEMBER_MIN_BYTES;
	const uint64_t lacks =
		e->made < e->range.pad_to_bytes ? e->range.pad_to_bytes - e->made : 0;
	return (lacks && lacks < min_bytes) ? min_bytes : lacks;
}

/* Makes the next bytes of the padding, and returns their number. All of the padding is one
 * skippable frame: a header with its length in 4 bytes, and then zeros. */
static long pad_zstd(struct encoder *e)
{
	const size_t n = e->padding < OUT_BYTES ? (size_t)e->padding : OUT_BYTES;
	memset(e->out, 0, n);
	/* As long as no padding was made, e->padding is all of it, and the header comes now. */
	if (e->padding == padding_of(e)) {
		put_le(e->out, ZSTD_MAGIC_SKIPPABLE_START, 4);
		put_le(e->out + 4, e->padding - SKIPPABLE_BYTES, 4);
	}
	e->padding -= n;
	return (long)n;
}

/* Makes one empty member of the padding, and returns its length. It leaves either no padding or
 * enough for another member. The extra field of the member is one subfield, named "s3". */
static long pad_gzip(struct encoder *e)
{
	/* The magic number, "deflate", the flag of an extra field, no time, an unknown system. */
	static const unsigned char header[] = {31, 139, 8, 4, 0, 0, 0, 0, 0, 255};
	size_t n = e->padding < MEMBER_MAX_BYTES ? (size_t)e->padding : MEMBER_MAX_BYTES;
	if (e->padding > n && e->padding - n < MEMBER_MIN_BYTES)
		n -= MEMBER_MIN_BYTES;
	const size_t extra = n - MEMBER_HEADER_BYTES - MEMBER_END_BYTES;
	unsigned char *field = e->out + MEMBER_HEADER_BYTES;
	memset(e->out, 0, n);
	memcpy(e->out, header, sizeof header);
	put_le(e->out + sizeof header, extra, 2);
	field[0] = 's';
	field[1] = '3';
	put_le(field + 2, extra - SUBFIELD_BYTES, 2);
	/* The end of the member: the bytes 3 and 0 are a deflate block without content, and the
	 * checksum and the length of no content are 0. */
	field[extra] = 3;
	e->padding -= n;
	return (long)n;
}

long encoder_next(struct encoder *e, const void **ret)
{
	*ret = e->out;
	/* The compressor may take several chunks before it makes any output. */
	while (!e->has_ended) {
		const bool needs_input = e->in_used == e->in_bytes && e->taken < e->range.bytes;
		const int error = needs_input ? read_input(e) : 0;
		if (error)
			return error;
		const long made = run_compressor(e);
		if (made < 0)
			return made;
		e->made += (uint64_t)made;
		if (e->has_ended) {
			digest_finish(&e->input, &e->input_sums);
			e->padding = padding_of(e);
		}
		if (made)
			return made;
	}
	if (!e->padding)
		return 0;
	return e->range.encoding->codec == CODEC_ZSTD ? pad_zstd(e) : pad_gzip(e);
}

const struct sums *encoder_input_sums(const struct encoder *encoder)
{
	return &encoder->input_sums;
}

void encoder_keep(struct encoder *e, const void *bytes, size_t n)
{
	if (!e->is_kept) /* earlier output had no room */
		return;
	if (!e->buffer)
		e->buffer = malloc(e->buffer_bytes);
	e->is_kept = e->buffer && n <= e->buffer_bytes - e->kept_bytes;
	if (!e->is_kept)
		return;
	memcpy(e->buffer + e->kept_bytes, bytes, n);
	e->kept_bytes += n;
}

const void *encoder_kept(const struct encoder *encoder)
{
	return encoder->is_kept ? encoder->buffer : NULL;
}

uint64_t encoders_min_memory(const struct encoding *encoding)
{
	return encoding_memory(encoding) + ENCODER_OWN_BYTES + BUFFER_MIN;
}

/* Returns the number of encoders for this memory, if each needs at least min_bytes. */
static unsigned count_encoders(uint64_t memory_bytes, uint64_t min_bytes, unsigned cpus)
{
	const uint64_t wanted = (uint64_t)cpus * OVER_SUBSCRIBE;
	const uint64_t allowed = wanted < ENCODERS_MAX ? wanted : ENCODERS_MAX;
	const uint64_t fit = memory_bytes / min_bytes;
	return (unsigned)(allowed < fit ? allowed : fit ? fit : 1);
}

/* Returns the size of the buffer that is wanted for each encoder: that of a part and a quarter
 * more.
 *
 * Where all parts must have one length, each has that of a buffer (plan_by_sample()), and nearly
 * all of it may be padding. The padding of zstd is one skippable frame, which has less than 4 GiB.
 * So a buffer has at most 3,840 MiB, which is five quarters of 3,072. */
static uint64_t wanted_buffer(uint64_t part_bytes)
{
	const uint64_t part = part_bytes < 3072 * MIB ? part_bytes : 3072 * MIB;
	return part + part / 4;
}

void encoders_init(struct encoders *encoders, const struct encoding *encoding,
	const struct s3once_options *options, unsigned cpus)
{
	const uint64_t memory_bytes = ENCODERS_MEMORY_TIMES * options->memory_bytes;
	const uint64_t min_bytes = encoders_min_memory(encoding); /* has a buffer of BUFFER_MIN */
	const unsigned max_encoders = count_encoders(memory_bytes, min_bytes, cpus);
	/* The encoders share the memory evenly. What one does not need goes to its buffer, up to
	 * the size that is wanted. */
	const uint64_t share_bytes = memory_bytes / max_encoders;
	const uint64_t spare_bytes = share_bytes > min_bytes ? share_bytes - min_bytes : 0;
	const uint64_t fits_bytes = BUFFER_MIN + spare_bytes;
	const uint64_t wanted_bytes = wanted_buffer(options->part_bytes);
	*encoders = (struct encoders){.max_encoders = max_encoders,
		.buffer_bytes = (size_t)(fits_bytes < wanted_bytes ? fits_bytes : wanted_bytes)};
	uv_mutex_init(&encoders->locked.mutex);
	uv_cond_init(&encoders->locked.is_free);
}

void encoders_clear(struct encoders *encoders)
{
	if (!encoders->max_encoders) /* nothing is compressed in this run */
		return;
	while (encoders->locked.n_free)
		encoder_free(encoders->locked.free[--encoders->locked.n_free]);
	uv_cond_destroy(&encoders->locked.is_free);
	uv_mutex_destroy(&encoders->locked.mutex);
}

/* If encoder_new() fails, n_made is unchanged, so that another caller may try. */
int encoders_take(
	struct encoders *encoders, bool (*abandon)(void *arg), void *arg, struct encoder **ret)
{
	uv_mutex_lock(&encoders->locked.mutex);
	const enum waited waited = wait_until(
		encoders->locked.n_free || encoders->locked.n_made < encoders->max_encoders,
		.cond = &encoders->locked.is_free, .mutex = &encoders->locked.mutex,
		.abandon = abandon, .arg = arg);
	int error = 0;
	if (waited != WAIT_MET) {
		error = -ECANCELED;
	} else if (encoders->locked.n_free) {
		*ret = encoders->locked.free[--encoders->locked.n_free];
	} else {
		error = encoder_new(encoders->buffer_bytes, ret);
		encoders->locked.n_made += !error;
	}
	uv_mutex_unlock(&encoders->locked.mutex);
	return error;
}

void encoders_give_back(struct encoders *encoders, struct encoder *encoder)
{
	if (!encoder)
		return;
	uv_mutex_lock(&encoders->locked.mutex);
	encoders->locked.free[encoders->locked.n_free++] = encoder;
	uv_cond_signal(&encoders->locked.is_free);
	uv_mutex_unlock(&encoders->locked.mutex);
}

uint64_t encoders_part_bytes(
	const struct encoders *encoders, uint64_t sample_bytes, uint64_t compressed_bytes)
{
	const double part = (double)encoders->buffer_bytes * TENTHS_WANTED / 10;
	/* If the sample became larger, or there is none, a part is expected to be as large as the
	 * range that it is made of. */
	const double range = (compressed_bytes && sample_bytes > compressed_bytes)
				     ? part * (double)sample_bytes / (double)compressed_bytes
				     : part;
	const uint64_t in_mib = range < (double)RANGE_MAX ? (uint64_t)range / MIB * MIB : RANGE_MAX;
	return in_mib < PART_BYTES_MIN ? PART_BYTES_MIN : in_mib;
}
