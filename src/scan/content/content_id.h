/* What a file contains, whatever it is compressed with: the identity of a rotated log. */
#pragma once
#include "scan/content/content_read.h"

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
