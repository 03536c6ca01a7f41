/* What a file contains, decompressed: reading it, its id, the ids of parts of it, and a copy of a
 * part. */
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

#define CONTENT_ID_CHARS 64

/* The SHA-256, in lower-case hex digits, of the content: decompressed, if the bytes are gzip,
 * bzip2, xz, zstd or lz4 from the first to the last. The first bytes decide which, not the name;
 * members, streams and frames that follow each other are one content. What only begins like that
 * (truncated, damaged, followed by something else) is compressed with nothing: the bytes
 * themselves are the content. So the id of a file depends on its bytes alone.
 *
 * Returns as content_read(). Thread-safe. */
int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem);

/* The id of the first `at` bytes. */
struct content_point {
	uint64_t at;
	bool is_there; /* else the content is shorter */
	char id[CONTENT_ID_CHARS + 1];
};
/* Fills the points, which come in rising order of `at`, and sets *ret_size to how many bytes the
 * content has. Returns as content_read(). */
int content_points(const struct content *content, struct content_point *points, size_t n,
	uint64_t *ret_size, struct problem *ret_problem);

struct content_range {
	uint64_t from, to;
	int copy_fd; /* the bytes of the range are written to it; -1: they are not copied */
};
struct content_range_ids {
	char before[CONTENT_ID_CHARS + 1]; /* of the bytes before the range */
	char range[CONTENT_ID_CHARS + 1];
	char until[CONTENT_ID_CHARS + 1]; /* of all bytes up to the end of the range */
};
/* Computes the three ids, and copies the range, in one reading. Returns as content_read(), or
 * -ESTALE if the content ends within the range, or the error of writing. */
int content_range(const struct content *content, const struct content_range *range,
	struct content_range_ids *ret, struct problem *ret_problem);
