/* The five tools that logrotate compresses with. */
#pragma once
#include <stddef.h>

#define COMPRESSORS 5
/* Of the files that the i-th one makes: ".gz" and so on. */
extern const char *const compressor_suffixes[COMPRESSORS];
/* What the i-th one makes of n bytes. The caller frees it. */
unsigned char *compressor_run(unsigned i, const unsigned char *bytes, size_t n, size_t *ret_n);
/* Undoes what bzip2, xz or lz4 have made, as the first bytes tell; *ret is NULL if it is damaged,
 * and else the caller frees it. Returns 0 if it is of none of them: *ret is untouched. */
int compressor_undo(const unsigned char *bytes, size_t n, unsigned char **ret, size_t *ret_n);
