#include "judge_content.h"
#include "compressors.h"
#include "pipes.h"
#include "world.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

struct content content_of(const void *bytes, size_t n)
{
	struct content ret = {.n = n};
	struct sums sums;
	struct digest digest;
	if (digest_init(&digest, DIGEST_MD5))
		abort();
	digest_update(&digest, bytes ? bytes : "", n);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	memcpy(ret.md5, sums.md5, sizeof ret.md5);
	return ret;
}

bool content_is_same(const struct content *a, const struct content *b)
{
	return a->n == b->n && memcmp(a->md5, b->md5, sizeof a->md5) == 0;
}

static unsigned char *grow(unsigned char *bytes, size_t *cap)
{
	*cap = 2 * *cap + 65536;
	bytes = realloc(bytes, *cap);
	if (!bytes)
		abort();
	return bytes;
}

static unsigned char *undo_zstd(const unsigned char *bytes, size_t n, size_t *ret_n)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	ZSTD_inBuffer in = {bytes, n, 0};
	size_t cap = 0, left = 0;
	unsigned char *ret = grow(NULL, &cap);
	ZSTD_outBuffer out = {ret, cap, 0};
	while (in.pos < in.size || out.pos == out.size) {
		if (out.pos == out.size) {
			ret = grow(ret, &cap);
			out.dst = ret;
			out.size = cap;
		}
		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_isError(left))
			break;
		if (in.pos == in.size && out.pos < out.size)
			break;
	}
	ZSTD_freeDCtx(context);
	*ret_n = out.pos;
	if (!left)
		return ret;
	free(ret);
	return NULL;
}

static unsigned char *undo_gzip(const unsigned char *bytes, size_t n, size_t *ret_n)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (uInt)n};
	size_t cap = 0, at = 0;
	unsigned char *ret = grow(NULL, &cap);
	int result = inflateInit2(&z, 15 + 16);
	while (result == Z_OK || (result == Z_STREAM_END && z.avail_in)) {
		if (result == Z_STREAM_END)
			inflateReset(&z);
		if (at == cap)
			ret = grow(ret, &cap);
		z.next_out = ret + at;
		z.avail_out = (uInt)(cap - at);
		result = inflate(&z, Z_NO_FLUSH);
		at = cap - z.avail_out;
		if (result == Z_BUF_ERROR && !z.avail_out)
			result = Z_OK;
	}
	inflateEnd(&z);
	*ret_n = at;
	if (result == Z_STREAM_END)
		return ret;
	free(ret);
	return NULL;
}

unsigned char *content_decompress(const unsigned char *bytes, size_t n, size_t *ret_n)
{
	static const unsigned char zstd[4] = {0x28, 0xb5, 0x2f, 0xfd}, gzip[2] = {0x1f, 0x8b};
	if (n >= 4 && memcmp(bytes, zstd, 4) == 0)
		return undo_zstd(bytes, n, ret_n);
	if (n >= 2 && memcmp(bytes, gzip, 2) == 0)
		return undo_gzip(bytes, n, ret_n);
	unsigned char *ret;
	if (compressor_undo(bytes, n, &ret, ret_n))
		return ret;
	ret = malloc(n + 1);
	if (!ret)
		abort();
	if (n)
		memcpy(ret, bytes, n);
	*ret_n = n;
	return ret;
}

struct content content_of_object(const struct s3_stored *object)
{
	size_t n = 0;
	/* The output of a program may begin by chance like a compressed file. */
	const bool is_log = world_rotates_key(object->key) && !pipe_makes(object->key);
	if (!is_log && !s3_stored_header(object, "x-amz-meta-s3once-encoding")) {
		struct content raw = {.n = object->n};
		memcpy(raw.md5, object->sums.md5, sizeof raw.md5);
		return raw;
	}
	unsigned char *bytes = content_decompress(object->bytes, object->n, &n);
	struct content ret = bytes ? content_of(bytes, n) : (struct content){.n = SIZE_MAX};
	free(bytes);
	return ret;
}
