/* Unpredictable values straight from getrandom(2): a cloned VM must not repeat them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define ID_CHARS 32 /* 128 bits as lower-case hex */

/* Fills n bytes; aborts the process if the kernel cannot give any (it never blocks after boot). */
void random_bytes(void *ret, size_t n);
/* A new unique id. */
void random_id(char ret_id[static ID_CHARS + 1]);
/* Uniform in [0, bound); 0 for bound 0. */
uint64_t random_below(uint64_t bound);
