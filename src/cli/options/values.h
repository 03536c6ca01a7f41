/* Strict readers of option values, without I/O. Each returns 0, or -EINVAL with a sentence that
 * quotes what was given. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdint.h>

/* Decimal digits and nothing else. */
int value_number(const char *s, uint64_t *ret, struct problem *ret_problem);
/* A duration such as "30s", "5min" or "1h30m", in milliseconds. It has whole numbers with the units
 * d, h, m (or min), s (or sec) and ms, each once and the largest first. "0" needs no unit. */
int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem);
/* A whole number of bytes, or one with K, M, G or T, in either case. "24M", "24MB", "24Mi" and
 * "24MiB" are the same. Units are always powers of 1,024, as in the AWS CLI and rclone. */
int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem);

/* These write a value in the largest unit that leaves a whole number, such as "30s" and "64MiB". */
void value_show_duration(struct text *t, uint64_t ms);
void value_show_size(struct text *t, uint64_t bytes);
