/* Strict readers of option values. Pure. Each returns 0, or -EINVAL with a sentence that quotes
 * what was given. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdint.h>

/* Decimal digits and nothing else. */
int value_number(const char *s, uint64_t *ret, struct problem *ret_problem);
/* A whole number with one of ms, s, m, h, d, or 0; in milliseconds. */
int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem);
/* A whole number of bytes, or of KiB, MiB, GiB, TiB (also K, M, G, T: powers of 1,024 always). */
int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem);

/* The same the other way, in the largest unit that leaves a whole number: "30s", "64MiB". */
void value_show_duration(struct text *t, uint64_t ms);
void value_show_size(struct text *t, uint64_t bytes);
