#include "cli/line_reader.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads more bytes after those that are there. Returns how many, 0 at the end, or -errno. */
static ssize_t fill_buffer(struct line_reader *reader)
{
	ssize_t n;
	memmove(reader->buffer, reader->buffer + reader->at, reader->end - reader->at);
	reader->end -= reader->at;
	reader->at = 0;
	do
		n = read(reader->fd, reader->buffer + reader->end, LINE_READER_MAX - reader->end);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		reader->end += (size_t)n;
	return n < 0 ? -errno : n;
}

/* Forgets bytes up to the next newline. 0 or -errno. */
static int skip_rest(struct line_reader *reader)
{
	for (;;) {
		const char *from = reader->buffer + reader->at;
		const char *newline = memchr(from, '\n', reader->end - reader->at);
		reader->at = newline ? (size_t)(newline - reader->buffer) + 1 : reader->end;
		const ssize_t n = newline ? 0 : fill_buffer(reader);
		if (n <= 0)
			return (int)n;
	}
}

/* One byte more than is read has room for the NUL. */
static int end_line(struct line_reader *reader, size_t n, struct line *ret)
{
	char *bytes = reader->buffer + reader->at;
	bytes[n] = '\0';
	*ret = (struct line){.bytes = bytes, .n = n};
	reader->number++;
	reader->at += n;
	if (reader->at < reader->end)
		reader->at++; /* the newline, which is a NUL now */
	return 1;
}

int line_reader_next(struct line_reader *reader, struct line *ret)
{
	if (!reader->buffer && !(reader->buffer = malloc(LINE_READER_MAX + 1)))
		return -ENOMEM;
	for (size_t looked_at = 0;;) {
		const char *from = reader->buffer + reader->at;
		const size_t there = reader->end - reader->at;
		const char *newline = memchr(from + looked_at, '\n', there - looked_at);
		if (newline)
			return end_line(reader, (size_t)(newline - from), ret);
		looked_at = there;
		if (there == LINE_READER_MAX) {
			const int error = skip_rest(reader);
			*ret = (struct line){.bytes = reader->buffer, .is_cut = true};
			reader->number++;
			return error ? error : 1;
		}
		const ssize_t n = fill_buffer(reader);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return there ? end_line(reader, there, ret) : 0;
	}
}

void line_reader_clear(struct line_reader *reader)
{
	free(reader->buffer);
	*reader = (struct line_reader){0};
}
