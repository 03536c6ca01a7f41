/* The five compressors of logrotate. */
#pragma once
#include <stddef.h>

#define COMPRESSORS 5
/* The suffix of the files of the i-th compressor, such as ".gz". */
extern const char *const compressor_suffixes[COMPRESSORS];
/* Compresses n bytes with the i-th compressor. The caller frees the result. */
unsigned char *compressor_run(unsigned i, const unsigned char *bytes, size_t n, size_t *ret_n);
/* Decompresses bzip2, xz or lz4, recognised by the first bytes. The caller frees *ret, which is
 * NULL if the bytes are damaged. Returns 0 for other bytes, and leaves *ret untouched. */
int compressor_undo(const unsigned char *bytes, size_t n, unsigned char **ret, size_t *ret_n);
