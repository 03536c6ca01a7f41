/* Lines of a file or a pipe, one at a time, with bounded memory. For one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_READER_MAX (1U << 20) /* a longer line is read as an empty one that is cut */

/* Set fd, and zero the rest. */
struct line_reader {
	int fd;          /* the caller's */
	uint64_t number; /* of the line that was read last, from 1 */
	char *buffer;
	size_t at, end; /* what was read and is not part of a line yet */
};

struct line {
	char *bytes; /* without newline, NUL-terminated; valid until the next call */
	size_t n;
	bool is_cut;
};

/* 1 with a line, which the end of the file may end as well; 0 at the end; -errno. */
int line_reader_next(struct line_reader *reader, struct line *ret);
void line_reader_clear(struct line_reader *reader);
