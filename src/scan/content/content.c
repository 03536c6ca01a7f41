/* What a file contains, whatever it is compressed with: reading it, the ids of all of it, of its
 * first bytes and of a range, and a copy of a range. The scan and the removal of a file call it
 * with a file that they have opened; nothing here opens files or knows their names. The memory it
 * takes does not grow with the file. */
#include "scan/content/content.h"
#include "base/checksum.h"
#include "base/files.h"
#include "base/text.h"
#include "scan/content/decompress.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (64U << 10)

/* Who is given the content. */
struct content_sink {
	/* The content begins, or begins anew: what was taken before was not the content. 0 or
	 * -errno. */
	int (*begin)(void *arg);
	/* Takes the next n bytes. 0, 1 if no more are wanted, or -errno. */
	int (*take)(void *arg, const unsigned char *bytes, size_t n);
	void *arg;
};

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
	const int r =
		reading->has_enough || !n ? 0 : reading->sink->take(reading->sink->arg, bytes, n);
	reading->has_enough = reading->has_enough || r > 0;
	return r < 0 ? r : 0;
}

/* Adds what comes of the n bytes that were read; n is 0 at the end. */
static int add_decompressed(struct reading *reading, size_t n, struct problem *ret_problem)
{
	struct decompress_io io = {.in = reading->in, .in_bytes = (unsigned)n};
	int r;
	do {
		io.out = reading->out;
		io.out_bytes = CHUNK_BYTES;
		r = decompress_run(reading->decompress, &io, n == 0, ret_problem);
		const struct content *content = reading->content;
		const int taken =
			r < 0 ? 0 : give_content(reading, reading->out, CHUNK_BYTES - io.out_bytes);
		if (taken < 0)
			return taken;
		if (r > 0 && content->is_over && content->is_over(content->arg))
			return -ECANCELED;
	} while (r > 0);
	return r;
}

/* Reads from the first byte, decompressed where may_decompress says so and the bytes are
 * compressed. 0, -EBADMSG if they are not so throughout, or another -errno. */
static int read_through(struct reading *reading, bool may_decompress, struct problem *ret_problem)
{
	int r = reading->sink->begin(reading->sink->arg);
	reading->at = 0;
	reading->has_enough = false;
	long n = 1;
	while (r == 0 && n && (!reading->has_enough || reading->decompress)) {
		n = read_next(reading);
		if (n < 0)
			return (int)n;
		if (may_decompress && n > 0 && reading->at == (uint64_t)n)
			r = decompress_new(reading->in, (size_t)n, &reading->decompress);
		if (r == 0 || r == -ENOENT)
			r = reading->decompress ? add_decompressed(reading, (size_t)n, ret_problem)
						: give_content(reading, reading->in, (size_t)n);
	}
	const bool is_whole = !reading->decompress || decompress_is_whole(reading->decompress);
	return r == 0 && !is_whole ? -EBADMSG : r;
}

/* Gives the whole content to the sink. One that wants no more ends the reading of a file that is
 * not compressed. As content_id(), or what the sink returned. */
static int read_content(
	const struct content *content, const struct content_sink *sink, struct problem *ret_problem)
{
	struct reading *reading = malloc(sizeof *reading);
	if (!reading)
		return -ENOMEM;
	reading->content = content;
	reading->sink = sink;
	reading->decompress = NULL;
	int r = read_through(reading, true, ret_problem);
	decompress_free(reading->decompress);
	reading->decompress = NULL;
	if (r == -EBADMSG)
		r = read_through(reading, false, ret_problem);
	free(reading);
	return r;
}

int content_seems_compressed(int fd)
{
	unsigned char first[DECOMPRESS_MAGIC_BYTES];
	ssize_t n;
	do
		n = pread(fd, first, sizeof first, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : decompress_knows(first, (size_t)n);
}

/* The id of what the digest has so far. */
static int peek(const struct digest *digest, char ret_id[static CONTENT_ID_CHARS + 1])
{
	struct sums sums;
	const int error = digest_peek(digest, &sums);
	if (!error)
		hex_encode(sums.sha256, sizeof sums.sha256, ret_id);
	return error;
}

struct measuring {
	struct digest whole, rest; /* rest: of what follows the last prefix that is there */
	struct content_prefix *prefixes;
	size_t n, next;
	bool has_prefix;
};

/* Compares the prefixes that end where the digest is. */
static int compare_prefixes(struct measuring *m)
{
	char id[CONTENT_ID_CHARS + 1];
	int error = 0;
	for (; !error && m->next < m->n && m->prefixes[m->next].bytes == m->whole.sums.bytes;
		m->next++) {
		error = peek(&m->whole, id);
		if (error || strcmp(id, m->prefixes[m->next].id) != 0)
			continue;
		m->prefixes[m->next].is_there = m->has_prefix = true;
		error = digest_restart(&m->rest, DIGEST_SHA256);
	}
	return error;
}

static int begin_measuring(void *arg)
{
	struct measuring *m = arg;
	m->next = 0;
	m->has_prefix = false;
	for (size_t i = 0; i < m->n; i++)
		m->prefixes[i].is_there = false;
	const int error = digest_restart(&m->whole, DIGEST_SHA256);
	return error ? error : compare_prefixes(m);
}

static int take_measured(void *arg, const unsigned char *bytes, size_t n)
{
	struct measuring *m = arg;
	int error = 0;
	while (!error && n) {
		const uint64_t left =
			m->next < m->n ? m->prefixes[m->next].bytes - m->whole.sums.bytes : n;
		const size_t now = left < n ? (size_t)left : n;
		digest_update(&m->whole, bytes, now);
		if (m->has_prefix)
			digest_update(&m->rest, bytes, now);
		bytes += now;
		n -= now;
		error = compare_prefixes(m);
	}
	return error;
}

int content_measure(const struct content *content, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret, struct problem *ret_problem)
{
	struct measuring m = {.prefixes = prefixes, .n = n};
	const struct content_sink sink = {begin_measuring, take_measured, &m};
	int r = read_content(content, &sink, ret_problem);
	ret->bytes = m.whole.sums.bytes;
	if (r == 0)
		r = peek(&m.whole, ret->id);
	if (r == 0)
		r = peek(m.has_prefix ? &m.rest : &m.whole, ret->rest);
	digest_clear(&m.whole);
	digest_clear(&m.rest);
	return r;
}

int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem)
{
	struct content_measured found;
	const int r = content_measure(content, NULL, 0, &found, ret_problem);
	if (r == 0)
		memcpy(ret_id, found.id, sizeof found.id);
	return r;
}

struct copying {
	struct digest digest; /* of the range */
	const struct content_range *range;
	uint64_t at;
};

static int begin_copy(void *arg)
{
	struct copying *c = arg;
	c->at = 0;
	if (ftruncate(c->range->copy_fd, 0) < 0 || lseek(c->range->copy_fd, 0, SEEK_SET) < 0)
		return -errno;
	return digest_restart(&c->digest, DIGEST_SHA256);
}

static int take_copied(void *arg, const unsigned char *bytes, size_t n)
{
	struct copying *c = arg;
	const uint64_t from = c->range->from, to = c->range->to, at = c->at;
	const size_t wanted = to - at < n ? (size_t)(to - at) : n;
	const uint64_t before = from > at ? from - at : 0;
	const size_t skipped = before < wanted ? (size_t)before : wanted;
	digest_update(&c->digest, bytes + skipped, wanted - skipped);
	c->at += wanted;
	const int error = write_all(c->range->copy_fd, bytes + skipped, wanted - skipped);
	return error ? error : c->at == to;
}

int content_copy(const struct content *content, const struct content_range *range,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem)
{
	struct copying c = {.range = range};
	const struct content_sink sink = {begin_copy, take_copied, &c};
	int r = read_content(content, &sink, ret_problem);
	if (r == 0 && c.at != range->to)
		r = -ESTALE;
	if (r == 0)
		r = peek(&c.digest, ret_id);
	digest_clear(&c.digest);
	return r;
}
