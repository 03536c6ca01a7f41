/* gzip members, made by zlib, or by isa-l at the levels where the build has it. encoder.c makes
 * members with these functions, and gets the name of the compressor here. */
#include "upload/body/gzip.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#define ISAL_LEVELS 3 /* isa-l makes the levels from 1 to this */
#else
#define ISAL_LEVELS 0
#endif

/* zlib needs 2^(windowBits+2) + 2^(memLevel+9) bytes (zconf.h), and some KiB for small objects.
 * With 15 and 8, as in gzip_begin(), that is a little more than 256 KiB. */
#define ZLIB_MEMORY (288U << 10)
/* size of the sample by which gzip_name() distinguishes versions of isa-l */
#define SAMPLE_BYTES (64U << 10)

struct gzip {
	int level;         /* level of the last member, whose state is kept; 0: there is none */
	struct isal *isal; /* the state of a level that isa-l makes, or NULL */
	z_stream zlib;     /* the state of any other level */
};

#ifdef HAVE_ISAL
struct isal {
	struct isal_zstream stream;
	unsigned char buffer[]; /* has level_bytes bytes */
};

/* The size of the buffer that isa-l wants at each level. */
static const uint32_t level_bytes[ISAL_LEVELS + 1] = {
	0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};

static int begin_isal(struct gzip *gzip, int level)
{
	struct isal *isal = gzip->isal ? gzip->isal : malloc(gzip_memory(level));
	if (!isal)
		return -ENOMEM;
	memset(isal, 0, gzip_memory(level));
	isal_deflate_init(&isal->stream);
	isal->stream.level = (uint32_t)level;
	isal->stream.level_buf = isal->buffer;
	isal->stream.level_buf_size = level_bytes[level];
	isal->stream.gzip_flag = IGZIP_GZIP;
	gzip->isal = isal;
	gzip->level = level;
	return 0;
}

static long run_isal(struct isal_zstream *stream, struct gzip_buffers *b)
{
	stream->next_in = b->in;
	stream->avail_in = (uint32_t)b->in_bytes;
	stream->next_out = b->out;
	stream->avail_out = (uint32_t)b->out_bytes;
	stream->end_of_stream = b->is_last;
	if (isal_deflate(stream) != COMP_OK)
		return -ENOMEM; /* the other errors cannot happen */
	b->used = b->in_bytes - stream->avail_in;
	b->has_ended = stream->internal_state.state == ZSTATE_END;
	return (long)(b->out_bytes - stream->avail_out);
}
#endif

size_t gzip_memory(int level)
{
#ifdef HAVE_ISAL
	if (level <= ISAL_LEVELS)
		return sizeof(struct isal) + level_bytes[level];
#endif
	/* zlib makes all other levels. */
	return sizeof(z_stream) + ZLIB_MEMORY;
}

/* Frees the state of the last compressor, which was zlib if the level is above ISAL_LEVELS. */
static void drop_state(struct gzip *gzip)
{
	if (gzip->level > ISAL_LEVELS)
		deflateEnd(&gzip->zlib);
	free(gzip->isal);
	*gzip = (struct gzip){0};
}

/* Resets the compressor, so that the bytes of a member do not depend on the members before it. A
 * compressor of another level is freed first. After an error, gzip_free() frees *ret. */
int gzip_begin(struct gzip **ret, int level)
{
	if (!*ret && !(*ret = calloc(1, sizeof **ret)))
		return -ENOMEM;
	struct gzip *gzip = *ret;
	if (gzip->level != level)
		drop_state(gzip);
#ifdef HAVE_ISAL
	if (level <= ISAL_LEVELS)
		return begin_isal(gzip, level);
#endif
	/* windowBits is 15, the most; adding 16 makes a gzip header. 8 is the default memLevel. */
	const int r = gzip->level ? deflateReset(&gzip->zlib)
				  : deflateInit2(&gzip->zlib, level, Z_DEFLATED, 15 + 16, 8,
					    Z_DEFAULT_STRATEGY);
	if (r != Z_OK)
		return -ENOMEM;
	gzip->level = level;
	return 0;
}

void gzip_free(struct gzip *gzip)
{
	if (gzip)
		drop_state(gzip);
	free(gzip);
}

long gzip_run(struct gzip *gzip, struct gzip_buffers *b)
{
#ifdef HAVE_ISAL
	if (gzip->level <= ISAL_LEVELS)
		return run_isal(&gzip->isal->stream, b);
#endif
	z_stream *stream = &gzip->zlib;
	stream->next_in = b->in;
	stream->avail_in = (uInt)b->in_bytes;
	stream->next_out = b->out;
	stream->avail_out = (uInt)b->out_bytes;
	const int r = deflate(stream, b->is_last ? Z_FINISH : Z_NO_FLUSH);
	/* Z_BUF_ERROR is no error: zlib waits for more input, or for room. Z_STREAM_ERROR would
	 * mean that the state is damaged, and cannot happen. */
	if (r == Z_STREAM_ERROR)
		return -ENOMEM;
	b->used = b->in_bytes - stream->avail_in;
	b->has_ended = r == Z_STREAM_END;
	return (long)(b->out_bytes - stream->avail_out);
}

int gzip_name(int level, char *ret, size_t bytes)
{
	if (level > ISAL_LEVELS) {
		snprintf(ret, bytes, "zlib-%s:%d", zlibVersion(), level);
		return 0;
	}
	/* The name has the CRC of isa-l's output for a sample. The sample is lines like those of a
	 * log, which differ by pseudo-random numbers and repeat each other. `number` is a linear
	 * congruential generator, whose upper bits are used. */
	unsigned char *sample = malloc(SAMPLE_BYTES), *out = malloc(SAMPLE_BYTES);
	struct gzip_buffers buffers = {.in = sample,
		.out = out,
		.in_bytes = SAMPLE_BYTES,
		.out_bytes = SAMPLE_BYTES,
		.is_last = true};
	struct gzip *gzip = NULL;
	long made = -ENOMEM;
	uint32_t number = 1;
	for (size_t at = 0; sample && at < SAMPLE_BYTES;) {
		number = number * 1664525 + 1013904223;
		const int n = snprintf((char *)sample + at, SAMPLE_BYTES - at,
			"10.0.%u.%u GET /item/%x %s\n", number >> 30, number >> 25, number >> 18,
			number & 0x20000 ? "200 \"curl/8.5.0\"" : "304 \"-\"");
		/* snprintf() cuts the last line, and returns the length of all of it. This ends the
		 * loop. */
		at += (size_t)n;
	}
	if (sample && out && gzip_begin(&gzip, level) == 0)
		made = gzip_run(gzip, &buffers);
	if (made > 0)
		snprintf(ret, bytes, "isal-%08x:%d", (unsigned)crc32(0, out, (uInt)made), level);
	gzip_free(gzip);
	free(sample);
	free(out);
	return made > 0 ? 0 : -ENOMEM;
}
