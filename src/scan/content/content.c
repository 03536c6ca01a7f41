/* The content of a file, whatever it is compressed with. Reads the content, and makes the ids of
 * all of it, of its first bytes and of a range, and a copy of a range. decompress.c decompresses.
 *
 * The scan and the removal of a file call it with a file that they have opened; nothing here opens
 * files or knows their names. Memory does not grow with the file. */
#include "scan/content/content.h"
#include "base/files.h"
#include "scan/content/decompress.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (64U << 10)

/* One reading of a content. The content is measured, or a range of it is copied. */
struct reading {
	const struct content *content;
	const struct content_range *range; /* the range to copy; NULL: the content is measured */
	struct content_prefix *prefixes;
	size_t n_prefixes;
	unsigned char *in, *out;
	struct decompress decompress; /* BARE: the bytes are taken as they are */
	bool was_decompressed;        /* from the first byte to the last */

	uint64_t at;               /* offset of the next read in the file */
	uint64_t bytes;            /* bytes of the content that were taken so far */
	size_t next;               /* index of the first prefix that was not compared yet */
	bool has_prefix;           /* the content begins with one of the prefixes compared */
	bool has_enough;           /* the end of the range was reached */
	struct sha256 whole, rest; /* `whole` hashes the content or the range, `rest` the bytes
				      after the last matching prefix */
	char first[CONTENT_ID_CHARS + 1]; /* id of the first CONTENT_EDGE_BYTES of the content */
};

static bool is_abandoned(const struct content *content)
{
	return content->abandon && content->abandon(content->arg);
}

/* Reads all of the next chunk of the file, and moves `at` past it. Returns its length, 0 at the end
 * of the file, or -errno, even if the file has become too short (-ESTALE). */
static long read_chunk(struct reading *reading)
{
	const struct content *content = reading->content;
	const uint64_t left = content->size - reading->at;
	const size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	if (is_abandoned(content))
		return -ECANCELED;
	const long n = read_at(content->fd, reading->in, want, reading->at);
	reading->at += want;
	return n;
}

/* Compares the bytes that were taken so far with each prefix of this length, by their ids. If they
 * are the same, `rest` is started again after the prefix. */
static void compare_prefixes(struct reading *reading)
{
	for (; reading->next < reading->n_prefixes; reading->next++) {
		struct content_prefix *prefix = &reading->prefixes[reading->next];
		char id[CONTENT_ID_CHARS + 1];
		if (prefix->bytes != reading->bytes)
			break;
		sha256_hex(&reading->whole, id);
		prefix->is_there = strcmp(id, prefix->id) == 0;
		if (prefix->is_there) {
			reading->has_prefix = true;
			sha256_begin(&reading->rest);
		}
	}
}

/* Begins to read the content, and discards the results of an earlier reading: a file that turns out
 * not to be compressed throughout is read a second time. Returns 0 or -errno. */
static int begin_reading(struct reading *reading)
{
	const struct content_range *range = reading->range;
	reading->at = reading->bytes = reading->next = 0;
	reading->has_prefix = reading->has_enough = false;
	for (size_t i = 0; i < reading->n_prefixes; i++)
		reading->prefixes[i].is_there = false;
	if (range && (ftruncate(range->copy_fd, 0) < 0 || lseek(range->copy_fd, 0, SEEK_SET) < 0))
		return -errno;
	sha256_begin(&reading->whole);
	compare_prefixes(reading);
	return 0;
}

/* Takes the next n bytes of the content. Bytes before the range are skipped, those in it are
 * copied, and those after it are ignored. Returns 0 or the error of writing. */
static int copy_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	const struct content_range *range = reading->range;
	const uint64_t offset = reading->bytes; /* of these bytes in the content */
	const uint64_t to_end = range->to - offset;
	const size_t taken = to_end < n ? (size_t)to_end : n;
	const uint64_t to_begin = range->from > offset ? range->from - offset : 0;
	const size_t skipped = to_begin < taken ? (size_t)to_begin : taken;
	sha256_add(&reading->whole, bytes + skipped, taken - skipped);
	reading->bytes += taken;
	reading->has_enough = reading->bytes == range->to;
	return write_all(range->copy_fd, bytes + skipped, taken - skipped);
}

/* Returns how many of the next n bytes, of which there is at least one, are taken in one step. A
 * step ends where a prefix ends, so that the bytes so far can be compared with it, and at
 * CONTENT_EDGE_BYTES, where the id of the first edge is due. */
static size_t bytes_of_step(const struct reading *reading, size_t n)
{
	uint64_t step = n;
	if (reading->next < reading->n_prefixes)
		step = reading->prefixes[reading->next].bytes - reading->bytes;
	if (reading->bytes < CONTENT_EDGE_BYTES && step > CONTENT_EDGE_BYTES - reading->bytes)
		step = CONTENT_EDGE_BYTES - reading->bytes;
	return step < n ? (size_t)step : n;
}

/* Takes the next n bytes of the content, in steps. */
static void measure_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	while (n) {
		const size_t step = bytes_of_step(reading, n);
		sha256_add(&reading->whole, bytes, step);
		if (reading->has_prefix)
			sha256_add(&reading->rest, bytes, step);
		reading->bytes += step;
		bytes += step;
		n -= step;
		if (reading->bytes == CONTENT_EDGE_BYTES)
			sha256_hex(&reading->whole, reading->first);
		compare_prefixes(reading);
	}
}

/* Takes the next n bytes of the content: copies those in the range if there is one, and otherwise
 * measures them. Returns 0 or -errno. */
static int take_bytes(struct reading *reading, const unsigned char *bytes, size_t n)
{
	if (reading->range)
		return copy_bytes(reading, bytes, n);
	measure_bytes(reading, bytes, n);
	return 0;
}

/* Decompresses the n bytes that were read, and takes the result. At the end of the file n is 0.
 * Returns 0, an error of decompress(), of writing, or -ECANCELED. */
static int add_decompressed(struct reading *reading, size_t n, struct problem *ret_problem)
{
	struct decompress *d = &reading->decompress;
	const bool is_last = n == 0;
	d->in = reading->in;
	d->in_bytes = (unsigned)n;
	for (;;) {
		d->out = reading->out;
		d->out_bytes = CHUNK_BYTES;
		const int r = decompress(d, is_last, ret_problem);
		if (r < 0)
			return r;
		const int error = take_bytes(reading, reading->out, CHUNK_BYTES - d->out_bytes);
		const bool has_more = r > 0;
		if (error || !has_more)
			return error;
		/* A few bytes of input may become many of output. */
		if (is_abandoned(reading->content))
			return -ECANCELED;
	}
}

/* Skips to the beginning of the range, if that is still ahead, in a file that is read as it is. */
static void skip_to_range(struct reading *reading)
{
	const struct content_range *range = reading->range;
	const uint64_t size = reading->content->size;
	if (range && reading->bytes < range->from)
		reading->at = reading->bytes = range->from < size ? range->from : size;
}

/* How the bytes of a file become its content. */
enum content_form {
	AS_IT_IS,
	DECOMPRESSED, /* if the file begins as a compressed one does, otherwise as it is */
};

/* Reads the content from the first byte. Returns 0, -EBADMSG if the file begins as a compressed one
 * but is not compressed throughout, or another -errno. */
static int read_through(
	struct reading *reading, enum content_form form, struct problem *ret_problem)
{
	struct decompress *d = &reading->decompress;
	int r = begin_reading(reading);
	bool is_at_end = false;
	/* A compressed file is read to its end, even if the range is complete: only the end shows
	 * that the file is compressed throughout. */
	while (r == 0 && !is_at_end && (!reading->has_enough || d->format != BARE)) {
		const bool is_first_chunk = reading->at == 0;
		const long n = read_chunk(reading);
		if (n < 0)
			return (int)n;
		is_at_end = n == 0;
		const enum format format = form == DECOMPRESSED && is_first_chunk
						   ? format_of(reading->in, (size_t)n)
						   : BARE;
		if (format != BARE && decompress_begin(d, format))
			return -ENOMEM;
		if (d->format != BARE) {
			r = add_decompressed(reading, (size_t)n, ret_problem);
			continue;
		}
		r = take_bytes(reading, reading->in, (size_t)n);
		if (r == 0)
			skip_to_range(reading);
	}
	const bool is_whole = d->format == BARE || d->has_ended;
	return r == 0 && !is_whole ? -EBADMSG : r;
}

/* Reads the content: decompressed if the file is compressed throughout, else as it is. Returns as
 * content_id() or content_copy(). */
static int read_content(struct reading *reading, struct problem *ret_problem)
{
	reading->in = malloc(2UL * CHUNK_BYTES);
	if (!reading->in)
		return -ENOMEM;
	reading->out = reading->in + CHUNK_BYTES;
	int r = read_through(reading, DECOMPRESSED, ret_problem);
	reading->was_decompressed = r == 0 && reading->decompress.format != BARE;
	decompress_clear(&reading->decompress);
	if (r == -EBADMSG)
		r = read_through(reading, AS_IT_IS, ret_problem);
	free(reading->in);
	return r;
}

int content_seems_compressed(int fd)
{
	unsigned char first[MAGIC_BYTES];
	ssize_t n;
	while ((n = pread(fd, first, sizeof first, 0)) < 0 && errno == EINTR)
		;
	return n < 0 ? -errno : format_of(first, (size_t)n) != BARE;
}

enum edges { FIRST_EDGE, BOTH_EDGES };

/* Computes the id of the edges of the range from 0 to `end` of the file: of its first
 * CONTENT_EDGE_BYTES, or also of its last ones. Returns 0 or -errno. */
static int read_edges(const struct content *content, uint64_t end, enum edges which,
	char ret_id[static CONTENT_ID_CHARS + 1])
{
	const size_t n = end < CONTENT_EDGE_BYTES ? (size_t)end : CONTENT_EDGE_BYTES;
	struct sha256 edges;
	unsigned char *bytes = malloc(CONTENT_EDGE_BYTES);
	if (!bytes)
		return -ENOMEM;
	sha256_begin(&edges);
	long r = read_at(content->fd, bytes, n, 0);
	if (r >= 0)
		sha256_add(&edges, bytes, n);
	if (r >= 0 && which == BOTH_EDGES) {
		r = read_at(content->fd, bytes, n, end - n);
		sha256_add(&edges, bytes, r < 0 ? 0 : n);
	}
	if (r >= 0)
		sha256_hex(&edges, ret_id);
	free(bytes);
	return r < 0 ? (int)r : 0;
}

int content_edges(
	const struct content *content, uint64_t end, char ret_id[static CONTENT_ID_CHARS + 1])
{
	return read_edges(content, end, BOTH_EDGES, ret_id);
}

int content_first(
	const struct content *content, uint64_t end, char ret_id[static CONTENT_ID_CHARS + 1])
{
	return read_edges(content, end, FIRST_EDGE, ret_id);
}

/* Sets *ret after the reading has succeeded. Returns 0 or -errno. */
static int set_measured(const struct reading *reading, struct content_measured *ret)
{
	ret->bytes = reading->bytes;
	ret->sha256 = sha256_save(&reading->whole);
	sha256_hex(&reading->whole, ret->id);
	memcpy(ret->first, reading->bytes < CONTENT_EDGE_BYTES ? ret->id : reading->first,
		sizeof ret->first);
	sha256_hex(reading->has_prefix ? &reading->rest : &reading->whole, ret->rest);
	*ret->edges = '\0';
	return reading->was_decompressed
		       ? 0
		       : content_edges(reading->content, reading->bytes, ret->edges);
}

int content_measure(const struct content *content, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret, struct problem *ret_problem)
{
	struct reading reading = {.content = content, .prefixes = prefixes, .n_prefixes = n};
	const int r = read_content(&reading, ret_problem);
	return r ? r : set_measured(&reading, ret);
}

int content_measure_more(const struct content *content, const struct sha256_state *state,
	struct content_prefix *prefix, struct content_measured *ret)
{
	struct reading reading = {.content = content,
		.prefixes = prefix,
		.n_prefixes = 1,
		.at = state->bytes,
		.bytes = state->bytes};
	prefix->is_there = false;
	sha256_resume(&reading.whole, state);
	sha256_begin(&reading.rest);
	compare_prefixes(&reading); /* the prefix may end exactly where the state does */
	reading.in = malloc(CHUNK_BYTES);
	if (!reading.in)
		return -ENOMEM;
	long n;
	while ((n = read_chunk(&reading)) > 0)
		measure_bytes(&reading, reading.in, (size_t)n);
	free(reading.in);
	return n < 0 ? (int)n : set_measured(&reading, ret);
}

int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct reading reading = {.content = content};
	const int r = read_content(&reading, ret_problem);
	if (r == 0)
		sha256_hex(&reading.whole, ret_id);
	return r;
}

int content_copy(const struct content *content, const struct content_range *range,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem)
{
	struct reading reading = {.content = content, .range = range};
	const int r = read_content(&reading, ret_problem);
	if (r == 0)
		sha256_hex(&reading.whole, ret_id);
	return r == 0 && reading.bytes != range->to ? -ESTALE : r;
}
