/* The arithmetic of a limit of bandwidth, in one number that several processes may share. The
 * number is the time at which the line will be free again. Whoever sends moves it on by as long as
 * the bytes take at its own rate, so that users with different limits share the line's time, and
 * nobody has anything to give back. A process that is killed leaves nothing behind. Pure. */
#pragma once
#include <stdint.h>

/* What was not used in the last moments may be caught up with: threads wake up late. */
#define TOKEN_BUCKET_BURST_NS 200000000ULL
/* No user moves the number further ahead than this. One that is further ahead is of before the host
 * was started anew, or was written by something else, and does not count. So `bytes` must not take
 * as long at `rate`: token_bucket_piece() at S3ONCE_RATE_LEAST takes a quarter of a second. */
#define TOKEN_BUCKET_AHEAD_NS 1000000000ULL

/* Takes `bytes` at `rate` bytes a second (> 0) if the line is free at now_ns. Returns 0, or how
 * long it is not free yet: then nothing was taken. */
uint64_t token_bucket_take(uint64_t *free_ns, uint64_t now_ns, uint64_t bytes, uint64_t rate);
/* The most to take at once at this rate: a fiftieth of a second, but neither tiny nor huge. */
uint64_t token_bucket_piece(uint64_t rate);
