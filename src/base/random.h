/* Unpredictable values straight from getrandom(2), since a cloned machine must not repeat them.
 * Thread-safe. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define ID_CHARS 32 /* 128 bits as lower-case hex */

/* Fills n bytes. It ends the process if the kernel cannot give any. It never blocks after boot. */
void random_bytes(void *ret, size_t n);
/* Writes a new unique id. */
void random_id(char ret_id[static ID_CHARS + 1]);
/* A uniform value from 0 to bound - 1; 0 if `bound` is 0. */
uint64_t random_below(uint64_t bound);
