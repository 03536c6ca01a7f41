/* The bandwidth limit of a run. A thread takes the bytes of a body from the limit before it sends
 * them, and threads do so one after the other. All runs of a user on a host with a limit share it
 * through a file in the state folder. Even if that file is lost or damaged, each run keeps its own
 * limit. Thread-safe. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bandwidth;
/* Makes a limit that only this run observes (until bandwidth_share()), from options->rates (at
 * least one, ordered by time, borrowed) and options->time_zone. Returns 0, -ENOMEM, or -EINVAL with
 * a sentence about the time zone. */
int bandwidth_new(
	const struct s3once_options *options, struct bandwidth **ret, struct problem *ret_problem);
void bandwidth_free(struct bandwidth *bandwidth);
/* Shares the limit from now on with the other runs of this user on this host, by a file in the
 * state folder. While that file cannot be used, the limit is that of this run alone, and a warning
 * reports that once. Call it before the first bandwidth_take(). */
void bandwidth_share(struct bandwidth *bandwidth);

/* The end of a thread's waiting: abandon() is called every 100 ms. If it returns true, the waiting
 * ends. */
struct bandwidth_user {
	bool (*abandon)(void *arg);
	void *arg;
};
/* Waits until some of n (> 0) bytes may leave. Returns their number, at least 1, or 0 if the
 * waiting was ended. If `bandwidth` is NULL, all n may leave at once. */
size_t bandwidth_take(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user);
/* Waits until all n bytes may leave together. Returns false if the waiting was ended. */
bool bandwidth_take_all(struct bandwidth *bandwidth, size_t n, const struct bandwidth_user *user);
/* A body that is larger than this takes its bytes while it is sent. A smaller body takes them
 * before its request begins, so that no connection pauses in the middle of it. */
#define BANDWIDTH_WHOLE_BYTES (64U << 10)

/* Lifts the limit or restores it. Async-signal-safe. Here and in the next two functions, NULL means
 * no limit. */
void bandwidth_toggle(struct bandwidth *bandwidth);
bool bandwidth_is_lifted(const struct bandwidth *bandwidth);
/* Returns the total time so far in which at least one thread of this run has waited for the
 * limit. */
uint64_t bandwidth_waited_ns(struct bandwidth *bandwidth);
/* Returns the limit at wall_s (seconds since 1970) in bytes a second; 0: there is none. Pure. */
uint64_t bandwidth_rate_at(const struct bandwidth *bandwidth, int64_t wall_s);

/* The arithmetic of the limit. Its state is one number, which several processes may share: the time
 * at which the line will be free again. A sender advances this time by the duration of its bytes at
 * its own rate. So senders with different limits share the time of the line. A process that is
 * killed holds nothing that would have to be returned. Pure. */

/* Time that was not used within this span may be used later, since threads wake up late. */
#define TOKEN_BUCKET_BURST_NS 200000000ULL
/* No sender moves the time further ahead of now than this, so the `bytes` of one call must not take
 * that long at `rate`. (What token_bucket_chunk() returns for S3ONCE_RATE_MIN takes a quarter of
 * a second.) A time that is further ahead does not count: it is from before a restart of the host,
 * or written by something else. */
#define TOKEN_BUCKET_AHEAD_NS 1000000000ULL

/* Takes `bytes` at `rate` bytes a second (> 0) if the line is free at now_ns, and returns 0.
 * Otherwise takes nothing, and returns the time until the line is free. */
uint64_t token_bucket_take(uint64_t *free_ns, uint64_t now_ns, uint64_t bytes, uint64_t rate);
/* Returns the most bytes to take at once at this rate, so that senders take turns often: those of a
 * fiftieth of a second, but from 2 KiB to 256 KiB. */
uint64_t token_bucket_chunk(uint64_t rate);
