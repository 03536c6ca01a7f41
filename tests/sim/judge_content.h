/* The decompressed content of files and objects, in a form that can be compared. */
#pragma once
#include "world_s3.h"

struct content content_of(const void *bytes, size_t n);
/* The content of an object that was just stored, decompressed if its metadata say that s3once has
 * compressed it. */
struct content content_of_object(const struct s3_stored *object);
bool content_is_same(const struct content *a, const struct content *b);
/* Decompresses zstd or gzip, recognised by its first bytes. Returns a copy of any other bytes, or
 * NULL if they are damaged. The caller frees it. */
unsigned char *content_decompress(const unsigned char *bytes, size_t n, size_t *ret_n);
