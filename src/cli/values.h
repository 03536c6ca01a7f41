/* Strict readers of option values. Pure. Each returns 0, or -EINVAL with a sentence that quotes
 * what was given. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdint.h>

/* Decimal digits and nothing else. */
int value_number(const char *s, uint64_t *ret, struct problem *ret_problem);
/* Whole numbers with the units d, h, m (or min), s (or sec) and ms, the largest unit first and each
 * once: "30s", "5min", "1h30m". "0" needs no unit. In milliseconds. */
int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem);
/* A whole number of bytes, or one with K, M, G or T, in either case. "24M", "24MB", "24Mi" and
 * "24MiB" are the same: units are powers of 1,024 always, as in the AWS CLI and rclone. */
int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem);

/* The same the other way, in the largest unit that leaves a whole number: "30s", "64MiB". */
void value_show_duration(struct text *t, uint64_t ms);
void value_show_size(struct text *t, uint64_t bytes);
