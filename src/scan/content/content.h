/* The content of a file, decompressed: reading it, its id, the ids of parts of it, and a copy of a
 * part. */
#pragma once
#include "base/problem.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first size bytes of an open file. */
struct content {
	int fd; /* its position is not used */
	uint64_t size;
	bool (*abandon)(void *arg); /* called between reads; true: give up. May be NULL */
	void *arg;
};

/* Whether the first bytes of an open file are those of a compressed one. Returns 1, 0 or -errno. */
int content_seems_compressed(int fd);

#define CONTENT_ID_CHARS SHA256_HEX_CHARS

/* Computes the id of a content: its SHA-256, in lower-case hex digits. If the bytes are gzip,
 * bzip2, xz, zstd or lz4 from the first to the last, the content is decompressed. The first bytes
 * decide which format it is, not the name. Members, streams and frames that follow each other are
 * one content.
 *
 * A file that only begins like that (truncated, damaged, followed by something else) counts as not
 * compressed: its bytes are the content. So the id of a file depends on its bytes alone.
 *
 * Memory does not grow with the file. Returns 0; -EFBIG with a sentence if decompressing needs more
 * memory than is allowed, -ESTALE if the file is shorter by now, -ECANCELED if abandon() returned
 * true, -ENOMEM, or the error of reading. Thread-safe. */
int content_id(const struct content *content, char ret_id[static CONTENT_ID_CHARS + 1],
	struct problem *ret_problem);

/* The first bytes of a content, by their number and their id. */
struct content_prefix {
	uint64_t bytes;
	const char *id; /* id of these bytes; borrowed */
	bool is_there;  /* result: whether the content begins with them */
};
struct content_measured {
	uint64_t bytes;             /* length of the content */
	struct sha256_state sha256; /* state after its last whole block */
	/* content_edges() of all of it; "" if it was decompressed */
	char edges[CONTENT_ID_CHARS + 1];
	/* content_first() of it; "" if these bytes were not read (content_measure_more()) */
	char first[CONTENT_ID_CHARS + 1];
	/* the id of the whole content */
	char id[CONTENT_ID_CHARS + 1];
	/* the id of the bytes after the longest matching prefix; of the whole content if none
	 * matches */
	char rest[CONTENT_ID_CHARS + 1];
};
/* Measures a content, and finds out in the same reading which of n prefixes it begins with. The
 * prefixes come in rising order of bytes. Returns as content_id(). */
int content_measure(const struct content *content, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret, struct problem *ret_problem);
/* As content_measure(), with one prefix, for a caller who knows that the content begins with it.
 * `state` is the SHA-256 state after the last whole block of the prefix, so that the bytes before
 * that are not read. The file is taken as it is, compressed or not. */
int content_measure_more(const struct content *content, const struct sha256_state *state,
	struct content_prefix *prefix, struct content_measured *ret);

/* Computes one id of both edges of the file up to the offset `end`: of its first CONTENT_EDGE_BYTES
 * and of the last ones before `end`, or of all bytes, twice, if they are fewer. A compressed file
 * is taken as it is. Returns 0, -ESTALE if the file is shorter than `end`, or another -errno. */
#define CONTENT_EDGE_BYTES ((uint64_t)64 << 10)
int content_edges(
	const struct content *content, uint64_t end, char ret_id[static CONTENT_ID_CHARS + 1]);

/* Computes the id of the first edge alone. Returns 0 or -errno. */
int content_first(
	const struct content *content, uint64_t end, char ret_id[static CONTENT_ID_CHARS + 1]);

/* Copies the bytes from `from` to `to` of the content into an open file, over its present content,
 * and computes their id. Returns as content_id(), or -ESTALE if the content ends before `to`, or
 * the error of writing. */
struct content_range {
	uint64_t from, to;
	int copy_fd;
};
int content_copy(const struct content *content, const struct content_range *range,
	char ret_id[static CONTENT_ID_CHARS + 1], struct problem *ret_problem);
