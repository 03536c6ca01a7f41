/* The limit of bandwidth of a run: bodies take their bytes from it before they leave, one after
 * the other. All runs of a user on a host that have a limit share one line, a file of the state
 * folder. Whatever becomes of it, each run keeps its own limit. Thread-safe. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bandwidth;
/* The limit of this run alone: options->rates, in order of their times, of which there are some,
 * and time_zone. Borrows the rates. 0, -ENOMEM, or -EINVAL with a sentence about the time zone.
 * Free it. */
int bandwidth_new(
	const struct s3once_options *options, struct bandwidth **ret, struct problem *ret_problem);
void bandwidth_free(struct bandwidth *bandwidth);
/* From now on the limit is shared with other runs. As long as the file cannot be used, the limit is
 * that of this run alone, which is reported once. Call it before the first bandwidth_take(). */
void bandwidth_share(struct bandwidth *bandwidth);

/* Who waits for the limit. abandon() is asked every 100 ms; true ends the waiting. */
struct bandwidth_user {
	bool (*abandon)(void *arg);
	void *arg;
};
/* Waits until some of n (> 0) bytes may leave. Returns how many, at least 1, or 0 if the waiting
 * was ended. With NULL, all n may leave at once. */
size_t bandwidth_take(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user);
/* Takes all of n bytes, which then leave together. False if the waiting was ended. */
bool bandwidth_take_all(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user);
/* A body that is larger than this takes its bytes as they leave; a smaller one before its request
 * begins, so that no connection stands still in the middle of it. */
#define BANDWIDTH_WHOLE_BYTES (64U << 10)

/* Lifts the limit or brings it back. Async-signal-safe. NULL, here and in the next two: there is
 * none. */
void bandwidth_toggle(struct bandwidth *bandwidth);
bool bandwidth_is_lifted(const struct bandwidth *bandwidth);
/* The time in which any thread of this run has waited for the limit, so far. */
uint64_t bandwidth_waited_ns(struct bandwidth *bandwidth);
/* The limit at wall_s (seconds since 1970) in bytes a second; 0: none. Pure. */
uint64_t bandwidth_rate_at(const struct bandwidth *bandwidth, int64_t wall_s);

/* The arithmetic of it, in one number that several processes may share: the time at which the line
 * will be free again. Whoever sends moves it on by as long as the bytes take at its own rate, so
 * that users with different limits share the line's time, and nobody has anything to give back. A
 * process that is killed leaves nothing behind. Pure. */

/* What was not used in the last moments may be caught up with: threads wake up late. */
#define TOKEN_BUCKET_BURST_NS 200000000ULL
/* No user moves the number further ahead than this. One that is further ahead is of before the host
 * was started anew, or was written by something else, and does not count. So `bytes` must not take
 * as long at `rate`: token_bucket_chunk() at S3ONCE_RATE_LEAST takes a quarter of a second. */
#define TOKEN_BUCKET_AHEAD_NS 1000000000ULL

/* Takes `bytes` at `rate` bytes a second (> 0) if the line is free at now_ns. Returns 0, or how
 * long it is not free yet: then nothing was taken. */
uint64_t token_bucket_take(uint64_t *free_ns, uint64_t now_ns, uint64_t bytes, uint64_t rate);
/* The most to take at once at this rate: a fiftieth of a second, but neither tiny nor huge. */
uint64_t token_bucket_chunk(uint64_t rate);
