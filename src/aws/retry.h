/* What an answer means, how long to wait before the next try, and that wait. */
#pragma once
#include "aws/call.h"
#include "aws/outcome.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What to do with an attempt's result. */
enum retry_class {
	RETRY_NONE,      /* decided: return the outcome */
	RETRY_TRANSIENT, /* 500, 502, 503, 504, RequestTimeout, no reply */
	RETRY_THROTTLE,  /* SlowDown, 429, ThrottlingException,
			    ProvisionedThroughputExceededException, RequestLimitExceeded, … */
	RETRY_DIGEST,    /* BadDigest. A bit may have been damaged on the way, or the file changed.
		    It is repeated once, as if it was transient */
	RETRY_CLOCK,     /* RequestTimeTooSkewed, or a signature that is refused while the clocks
			    disagree. Ours is corrected by the reply's Date, once */
	RETRY_CREDENTIALS, /* ExpiredToken, InvalidAccessKeyId, …: load the credentials again, once
			    */
	RETRY_REGION,      /* 301/307/400 that names another region: sign for that one, once */
};

/* An attempt as classify() sees it. */
struct attempt {
	int error; /* 0 if there is a reply, else http_perform's -errno */
	int status;
	const char *code;        /* the error code in the reply, "" if none */
	bool is_s3;              /* else DynamoDB */
	bool is_write;           /* may change something */
	bool body_is_unreadable; /* a 2xx whose body should be XML or JSON and is not, or any whose
				    crc32 is wrong */
	bool names_other_region; /* the reply names a region, and not the one it was signed for */
	bool clock_is_off; /* the reply's Date and the time it was signed at are minutes apart */
};

struct verdict {
	enum retry_class retry;
	enum outcome outcome; /* what to return if it is not tried again */
};
/* The one place that decides. Tested as a table. */
struct verdict classify(const struct attempt *attempt);
/* What happened and what to do, where the error code alone says it, or NULL. */
const char *code_sentence(const char *code);

/* How long to wait in ms, with full jitter: a uniform value in [0, min(cap, base * 2^attempt)],
 * where `attempt` counts from 0. The base is 50 ms, for DynamoDB 25 ms, and 1 s after throttling.
 * The cap is 20 s. If retry_after_ms is not 0, it is the least, up to 60 s. */
#define RETRY_CAP_MS 20000
uint64_t retry_backoff_ms(
	enum retry_class retry, bool is_s3, unsigned attempt, uint64_t retry_after_ms);

/* The quota shared by all threads of a process: 500 tokens, a transient (or digest) retry costs 14,
 * a success gives 1 back (a successful retry what it cost). Lock-free. An empty quota does not fail
 * a request: its retries wait at the cap. A throttled retry is answered by the pace (pace.c) and
 * takes none. */
#define RETRY_TOKENS 500
#define RETRY_COST   14
/* Takes what a retry costs; false, and nothing taken, if there is less. */
bool retry_quota_take(atomic_int *quota);
void retry_quota_refill(atomic_int *quota, unsigned tokens);

/* Waiting between attempts.
 *
 * Waits ms milliseconds; ends early with OUTCOME_ABANDONED and a sentence when the limits say so (a
 * wait that would outlive the deadline is not begun). limits may be NULL. */
enum outcome wait_within(
	const struct call_limits *limits, uint64_t ms, struct problem *ret_problem);
/* Whether the deadline has passed or the caller wants to stop. */
bool limits_are_over(const struct call_limits *limits);
