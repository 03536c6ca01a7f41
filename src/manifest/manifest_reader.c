#define ZLIB_CONST /* its input is const */
#include "manifest/manifest_reader.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER_BYTES (64U << 10)
#define GZIP_WINDOW  (15 + 16)

struct manifest_reader {
	int fd;
	uint64_t offset; /* in the file */
	z_stream inflate;
	bool has_ended; /* the trailer was read, and is right */
	unsigned char in[BUFFER_BYTES];
	char out[BUFFER_BYTES];
	size_t at, n; /* of out: from..to */
	struct text line;
	uint64_t line_number;
	json_t *owner; /* of the last entry */
};

int manifest_reader_new(int fd, struct manifest_reader **ret, struct problem *ret_problem)
{
	struct manifest_reader *reader = calloc(1, sizeof *reader);
	if (!reader || inflateInit2(&reader->inflate, GZIP_WINDOW) != Z_OK) {
		free(reader);
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	reader->fd = fd;
	reader->line = TEXT(MANIFEST_LINE_MAX);
	*ret = reader;
	return 0;
}

void manifest_reader_free(struct manifest_reader *reader)
{
	if (!reader)
		return;
	inflateEnd(&reader->inflate);
	text_clear(&reader->line);
	json_decref(reader->owner);
	free(reader);
}

static int damaged_at(
	const struct manifest_reader *reader, const char *how, struct problem *ret_problem)
{
	problem_set(
		ret_problem, "it is damaged after line %" PRIu64 ": %s", reader->line_number, how);
	return -EBADMSG;
}

/* Some more compressed bytes: how many, or -errno. */
static ssize_t read_compressed(struct manifest_reader *reader, struct problem *ret_problem)
{
	ssize_t n;
	do
		n = pread(reader->fd, reader->in, BUFFER_BYTES, (off_t)reader->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		n = -errno;
		problem_set(ret_problem, "it cannot be read: %s", strerror(errno));
		return n;
	}
	reader->offset += (uint64_t)n;
	reader->inflate.next_in = reader->in;
	reader->inflate.avail_in = (uInt)n;
	return n;
}

/* Fills the buffer: 1; 0 at the end; -errno with a sentence. */
static int inflate_some(struct manifest_reader *reader, struct problem *ret_problem)
{
	z_stream *z = &reader->inflate;
	z->next_out = (unsigned char *)reader->out;
	z->avail_out = BUFFER_BYTES;
	reader->at = reader->n = 0;
	while (z->avail_out == BUFFER_BYTES) {
		if (!z->avail_in) {
			const ssize_t n = read_compressed(reader, ret_problem);
			if (n < 0)
				return (int)n;
			if (n == 0 && reader->has_ended)
				return 0;
			if (n == 0)
				return damaged_at(reader, "its end is missing", ret_problem);
		}
		if (reader->has_ended)
			return damaged_at(reader, "other bytes follow its end", ret_problem);
		const int rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return damaged_at(
				reader, "its bytes are not what gzip has written", ret_problem);
		reader->has_ended = rc == Z_STREAM_END;
	}
	reader->n = BUFFER_BYTES - z->avail_out;
	return 1;
}

/* 1 with a line, 0 at the end, -errno with a sentence. */
static int read_line(struct manifest_reader *reader, struct problem *ret_problem)
{
	text_reset(&reader->line);
	for (;;) {
		const char *from = reader->out + reader->at;
		const char *newline =
			reader->at < reader->n ? memchr(from, '\n', reader->n - reader->at) : NULL;
		const size_t n = newline ? (size_t)(newline - from) : reader->n - reader->at;
		text_add_bytes(&reader->line, from, n);
		reader->at += n + (newline != NULL);
		if (reader->line.error)
			return damaged_at(reader, "the next line is too long", ret_problem);
		if (newline)
			return 1;
		const int r = inflate_some(reader, ret_problem);
		if (r == 0 && reader->line.len)
			return damaged_at(reader, "the last line has no end", ret_problem);
		if (r <= 0)
			return r;
	}
}

int manifest_reader_next(
	struct manifest_reader *reader, struct manifest_entry *ret, struct problem *ret_problem)
{
	const int r = read_line(reader, ret_problem);
	json_decref(reader->owner);
	reader->owner = NULL;
	if (r <= 0)
		return r;
	reader->line_number++;
	if (manifest_entry_read(
		    text_string(&reader->line), reader->line.len, ret, &reader->owner, ret_problem))
		return 1;
	problem_prefix(ret_problem, "line %" PRIu64, reader->line_number);
	return -EBADMSG;
}

const char *manifest_reader_line(const struct manifest_reader *reader)
{
	return text_string(&reader->line);
}
