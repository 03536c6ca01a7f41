#include "scan/content_id.h"
#include "base/checksum.h"
#include "base/text.h"
#include "scan/decompress.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK_BYTES (64U << 10)

/* One reading of the content. */
struct reading {
	const struct content *content;
	uint64_t at;
	struct digest digest;
	struct decompress *decompress; /* NULL: the bytes themselves count */
	unsigned char in[CHUNK_BYTES], out[CHUNK_BYTES];
};

/* Reads the next bytes: how many, 0 at the end, or -errno. */
static long read_next(struct reading *reading)
{
	const struct content *content = reading->content;
	const uint64_t left = content->size - reading->at;
	const size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	ssize_t n;
	if (content->is_over && content->is_over(content->arg))
		return -ECANCELED;
	do
		n = pread(content->fd, reading->in, want, (off_t)reading->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0 && want)
		return -ESTALE;
	reading->at += (uint64_t)n;
	return n;
}

/* Adds what comes of the n bytes that were read; n is 0 at the end. */
static int add_decompressed(struct reading *reading, size_t n, struct problem *ret_problem)
{
	struct decompress_io io = {.in = reading->in, .in_bytes = n};
	int r;
	do {
		io.out = reading->out;
		io.out_bytes = CHUNK_BYTES;
		r = decompress_run(reading->decompress, &io, n == 0, ret_problem);
		digest_update(&reading->digest, reading->out, CHUNK_BYTES - io.out_bytes);
		const struct content *content = reading->content;
		if (r > 0 && content->is_over && content->is_over(content->arg))
			return -ECANCELED;
	} while (r > 0);
	return r;
}

/* 0, -EBADMSG if it is not compressed throughout, or another -errno. */
static int read_content_of_file(struct reading *reading, struct problem *ret_problem)
{
	for (;;) {
		long n = read_next(reading);
		if (n < 0)
			return (int)n;
		if (n > 0 && reading->at == (uint64_t)n) {
			int r = decompress_new(reading->in, (size_t)n, &reading->decompress);
			if (r < 0 && r != -ENOENT)
				return r;
		}
		int r = 0;
		if (reading->decompress)
			r = add_decompressed(reading, (size_t)n, ret_problem);
		else
			digest_update(&reading->digest, reading->in, (size_t)n);
		if (r < 0)
			return r;
		if (n == 0)
			break;
	}
	return reading->decompress && !decompress_is_whole(reading->decompress) ? -EBADMSG : 0;
}

static int read_plain(struct reading *reading)
{
	long n;
	reading->at = 0;
	int r = digest_restart(&reading->digest, DIGEST_SHA256);
	if (r < 0)
		return r;
	while ((n = read_next(reading)) > 0)
		digest_update(&reading->digest, reading->in, (size_t)n);
	return (int)n;
}

int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct reading *reading = malloc(sizeof *reading);
	if (!reading)
		return -ENOMEM;
	reading->content = content;
	reading->at = 0;
	reading->decompress = NULL;
	int r = digest_init(&reading->digest, DIGEST_SHA256);
	if (r < 0) {
		free(reading);
		return r;
	}
	r = read_content_of_file(reading, ret_problem);
	if (r == -EBADMSG)
		r = read_plain(reading);
	struct sums sums;
	digest_finish(&reading->digest, &sums);
	if (r == 0)
		hex_encode(sums.sha256, sizeof sums.sha256, ret_id);
	digest_clear(&reading->digest);
	decompress_free(reading->decompress);
	free(reading);
	return r;
}
