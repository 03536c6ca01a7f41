/* Unpredictable values by uv_random(). Each comes straight from the kernel, since a cloned machine
 * must not repeat the values of another one. No call blocks once the kernel has booted. If the
 * kernel cannot give any values, the process ends. Thread-safe. */
#pragma once
#include <stdint.h>

#define ID_CHARS 32 /* 128 bits as lower-case hex */

/* Writes a new unique id. */
void random_id(char ret_id[static ID_CHARS + 1]);
/* A uniform value from 0 to bound - 1; 0 if `bound` is 0. */
uint64_t random_below(uint64_t bound);
