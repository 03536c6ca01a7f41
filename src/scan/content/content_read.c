#include "scan/content/content_read.h"
#include "scan/content/decompress.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK_BYTES (64U << 10)

/* One reading of the content. */
struct reading {
	const struct content *content;
	uint64_t at;
	const struct content_sink *sink;
	bool has_enough;
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

/* Gives it to the sink until that wants no more: 0 or -errno. */
static int give_content(struct reading *reading, const unsigned char *bytes, size_t n)
{
	const int r = reading->has_enough ? 0 : reading->sink->take(reading->sink->arg, bytes, n);
	reading->has_enough = reading->has_enough || r > 0;
	return r < 0 ? r : 0;
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
		const size_t n_out = CHUNK_BYTES - io.out_bytes;
		const int taken = r < 0 || !n_out ? 0 : give_content(reading, reading->out, n_out);
		const struct content *content = reading->content;
		if (taken < 0)
			return taken;
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
			r = n ? give_content(reading, reading->in, (size_t)n) : 0;
		if (r < 0)
			return r;
		if (n == 0 || (reading->has_enough && !reading->decompress))
			break;
	}
	return reading->decompress && !decompress_is_whole(reading->decompress) ? -EBADMSG : 0;
}

static int read_plain(struct reading *reading)
{
	long n;
	reading->at = 0;
	reading->has_enough = false;
	int r = reading->sink->begin(reading->sink->arg);
	while (r == 0 && !reading->has_enough && (n = read_next(reading)) != 0)
		r = n < 0 ? (int)n : give_content(reading, reading->in, (size_t)n);
	return r;
}

int content_read(
	const struct content *content, const struct content_sink *sink, struct problem *ret_problem)
{
	struct reading *reading = malloc(sizeof *reading);
	if (!reading)
		return -ENOMEM;
	reading->content = content;
	reading->sink = sink;
	reading->at = 0;
	reading->has_enough = false;
	reading->decompress = NULL;
	int r = sink->begin(sink->arg);
	if (r == 0)
		r = read_content_of_file(reading, ret_problem);
	if (r == -EBADMSG)
		r = read_plain(reading);
	decompress_free(reading->decompress);
	free(reading);
	return r;
}

int content_seems_compressed(int fd)
{
	unsigned char first[DECOMPRESS_MAGIC_BYTES];
	struct decompress *decompress;
	ssize_t n;
	do
		n = pread(fd, first, sizeof first, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	const int r = decompress_new(first, (size_t)n, &decompress);
	if (r == 0)
		decompress_free(decompress);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}
