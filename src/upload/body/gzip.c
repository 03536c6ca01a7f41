/* gzip members, of zlib or, at the levels where the build has it, of isa-l. encoder.c makes members
 * with it, encoding.c asks for the name of what makes them. */
#include "upload/body/gzip.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

/* zlib, "How much memory": 2^(windowBits+2) + 2^(memLevel+9) at windowBits 15 and memLevel 8. */
#define ZLIB_MEMORY  (288U << 10)
#define SAMPLE_BYTES (64U << 10)

/* What makes members. */
struct gzip_maker {
	const char *name;
	/* Of the state of an encoder, and how much more it is at a level; NULL: nothing more. */
	size_t state_bytes;
	const uint32_t *level_bytes;
	/* Begins a member. What it becomes does not depend on members before. For the first one the
	 * state is all zeros, and it is not moved from then on. Returns 0 or -ENOMEM. */
	int (*begin)(void *state, int level, bool is_first);
	int (*clear)(void *state); /* NULL: nothing is to be done */
	/* As gzip_run(). */
	long (*run)(void *state, const struct gzip_buffers *buffers, size_t *ret_used,
		bool *ret_has_ended);
};

struct gzip {
	const struct gzip_maker *maker;
	int level;
	void *state;
};

static int zlib_clear(void *state)
{
	return deflateEnd(state);
}

static int zlib_begin(void *state, int level, bool is_first)
{
	const int r =
		is_first ? deflateInit2(state, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY)
			 : deflateReset(state);
	return r == Z_OK ? 0 : -ENOMEM;
}

static long zlib_run(
	void *state, const struct gzip_buffers *b, size_t *ret_used, bool *ret_has_ended)
{
	z_stream *stream = state;
	stream->next_in = b->in;
	stream->avail_in = (uInt)b->in_bytes;
	stream->next_out = b->out;
	stream->avail_out = (uInt)b->out_bytes;
	const int r = deflate(stream, b->is_last ? Z_FINISH : Z_NO_FLUSH);
	if (r == Z_STREAM_ERROR)
		return -ENOMEM;
	*ret_used = b->in_bytes - stream->avail_in;
	*ret_has_ended = r == Z_STREAM_END;
	return (long)(b->out_bytes - stream->avail_out);
}

static const struct gzip_maker gzip_zlib = {
	"zlib", sizeof(z_stream), NULL, zlib_begin, zlib_clear, zlib_run};

#ifdef HAVE_ISAL
#define GZIP_ISAL_LEVELS 3 /* the levels from 1 on that it makes */

struct isal {
	struct isal_zstream stream;
	unsigned char buffer[]; /* of isal_level_bytes */
};

static const uint32_t isal_level_bytes[GZIP_ISAL_LEVELS + 1] = {
	0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};

static int isal_begin(void *state, int level, bool is_first)
{
	struct isal *isal = state;
	memset(isal, 0, sizeof *isal + isal_level_bytes[level]);
	isal_deflate_init(&isal->stream);
	isal->stream.level = (uint32_t)level;
	isal->stream.level_buf = isal->buffer;
	isal->stream.level_buf_size = isal_level_bytes[level];
	isal->stream.gzip_flag = IGZIP_GZIP;
	return 0;
}

static long isal_run(
	void *state, const struct gzip_buffers *b, size_t *ret_used, bool *ret_has_ended)
{
	struct isal_zstream *stream = &((struct isal *)state)->stream;
	stream->next_in = b->in;
	stream->avail_in = (uint32_t)b->in_bytes;
	stream->next_out = b->out;
	stream->avail_out = (uint32_t)b->out_bytes;
	stream->end_of_stream = b->is_last;
	if (isal_deflate(stream) != COMP_OK)
		return -ENOMEM; /* all else is right by construction */
	*ret_used = b->in_bytes - stream->avail_in;
	*ret_has_ended = stream->internal_state.state == ZSTATE_END;
	return (long)(b->out_bytes - stream->avail_out);
}

static const struct gzip_maker gzip_isal = {
	"isal", sizeof(struct isal), isal_level_bytes, isal_begin, NULL, isal_run};
#endif

static const struct gzip_maker *maker_of(int level)
{
#ifdef HAVE_ISAL
	if (level <= GZIP_ISAL_LEVELS)
		return &gzip_isal;
#endif
	return &gzip_zlib;
}

static size_t state_bytes(const struct gzip_maker *maker, int level)
{
	return maker->state_bytes + (maker->level_bytes ? maker->level_bytes[level] : 0);
}

static void drop_state(struct gzip *gzip)
{
	if (gzip->state && gzip->maker->clear)
		gzip->maker->clear(gzip->state);
	free(gzip->state);
	*gzip = (struct gzip){0};
}

int gzip_begin(struct gzip **ret, int level)
{
	if (!*ret && !(*ret = calloc(1, sizeof **ret)))
		return -ENOMEM;
	struct gzip *gzip = *ret;
	if (gzip->state && gzip->level == level)
		return gzip->maker->begin(gzip->state, level, false);
	drop_state(gzip);
	const struct gzip_maker *maker = maker_of(level);
	void *state = calloc(1, state_bytes(maker, level));
	if (!state || maker->begin(state, level, true)) {
		free(state);
		return -ENOMEM;
	}
	*gzip = (struct gzip){maker, level, state};
	return 0;
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	drop_state(gzip);
	free(gzip);
}

long gzip_run(struct gzip *gzip, const struct gzip_buffers *buffers, size_t *ret_used,
	bool *ret_has_ended)
{
	return gzip->maker->run(gzip->state, buffers, ret_used, ret_has_ended);
}

size_t gzip_memory(int level)
{
	const struct gzip_maker *maker = maker_of(level);
	return state_bytes(maker, level) + (maker == &gzip_zlib ? ZLIB_MEMORY : 0);
}

int gzip_name(int level, char *ret, size_t bytes)
{
	const struct gzip_maker *maker = maker_of(level);
	if (maker == &gzip_zlib) {
		snprintf(ret, bytes, "%s-%s:%d", maker->name, zlibVersion(), level);
		return 0;
	}
	/* The CRC of what becomes of a sample: lines as a log has them, which differ and repeat. */
	unsigned char *sample = malloc(SAMPLE_BYTES), *out = malloc(SAMPLE_BYTES);
	const struct gzip_buffers buffers = {sample, out, SAMPLE_BYTES, SAMPLE_BYTES, true};
	struct gzip *gzip = NULL;
	size_t used;
	bool has_ended;
	long made = -ENOMEM;
	uint32_t number = 1;
	for (size_t at = 0; sample && at < SAMPLE_BYTES;) {
		number = number * 1664525 + 1013904223;
		const int n = snprintf((char *)sample + at, SAMPLE_BYTES - at,
			"10.0.%u.%u GET /item/%x %s\n", number >> 30, number >> 25, number >> 18,
			number & 0x20000 ? "200 \"curl/8.5.0\"" : "304 \"-\"");
		at += (size_t)n;
	}
	if (sample && out && gzip_begin(&gzip, level) == 0)
		made = gzip_run(gzip, &buffers, &used, &has_ended);
	if (made > 0)
		snprintf(ret, bytes, "%s-%08x:%d", maker->name, (unsigned)crc32(0, out, (uInt)made),
			level);
	gzip_free(gzip);
	free(sample);
	free(out);
	return made > 0 ? 0 : -ENOMEM;
}
