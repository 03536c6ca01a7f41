/* Writing to a file what may take several calls. */
#pragma once
#include <stddef.h>

/* Writes n bytes to the descriptor, also if signals interrupt it. Returns 0 or -errno; after an
 * error some of the bytes may be written. Thread-safe. */
int write_all(int fd, const void *bytes, size_t n);
