/* What a file contains, whatever it is compressed with, so that it can be compared. */
#pragma once
#include "world_s3.h"

struct content content_of(const void *bytes, size_t n);
/* Of an object that has just come, decompressed if its metadata say that s3once has compressed it.
 */
struct content content_of_object(const struct s3_stored *object);
bool content_is_same(const struct content *a, const struct content *b);
/* Decompresses zstd or gzip, which the first bytes tell; else a copy. NULL: it is damaged. The
 * caller frees it. */
unsigned char *content_decompress(const unsigned char *bytes, size_t n, size_t *ret_n);
