/* Reading what a file contains, decompressed. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first size bytes of an open file. */
struct content {
	int fd; /* its position is not used */
	uint64_t size;
	bool (*is_over)(void *arg); /* asked between reads: whether to give up; may be NULL */
	void *arg;
};

/* Who is given the content. */
struct content_sink {
	/* The content begins, or begins anew: what was taken before was not the content. 0 or
	 * -errno. */
	int (*begin)(void *arg);
	/* Takes the next n bytes. 0, 1 if no more are wanted, or -errno. */
	int (*take)(void *arg, const unsigned char *bytes, size_t n);
	void *arg;
};

/* Gives the whole content to the sink: decompressed, if the bytes are gzip, bzip2, xz, zstd or lz4
 * from the first to the last; else the bytes themselves. A sink that wants no more ends the reading
 * of a file that is not compressed. Memory is flat. Returns 0; -EFBIG with a sentence if
 * decompressing needs more memory than is allowed, -ESTALE if the file is shorter by now,
 * -ECANCELED if is_over said so, -ENOMEM, what the sink returned, or the error of reading.
 * Thread-safe. */
int content_read(const struct content *content, const struct content_sink *sink,
	struct problem *ret_problem);
/* Whether the first bytes of an open file are those of a compressed one. 1, 0, or -errno. */
int content_seems_compressed(int fd);
