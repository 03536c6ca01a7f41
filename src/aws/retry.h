/* The outcome of a reply, the time to wait before the next attempt, and the wait itself. */
#pragma once
#include "aws/call.h"
#include "aws/outcome.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The rules by which a result is retried. */
enum retry_class {
	RETRY_NONE,        /* do not retry: return the outcome */
	RETRY_TRANSIENT,   /* 500, 502, 503, 504, RequestTimeout, no reply */
	RETRY_THROTTLE,    /* SlowDown, 429, ThrottlingException,
			      ProvisionedThroughputExceededException, RequestLimitExceeded, … */
	RETRY_DIGEST,      /* BadDigest: the bytes were damaged on the way, or the file has changed.
			      Wait as for RETRY_TRANSIENT, and send them again, once */
	RETRY_CLOCK,       /* RequestTimeTooSkewed, or a signature that is refused while the clocks
			      disagree: correct ours by the reply's Date, once */
	RETRY_CREDENTIALS, /* ExpiredToken, InvalidAccessKeyId, …: load credentials again, once */
	RETRY_REGION,      /* 301/307/400 that names another region: sign for that one, once */
};

/* An attempt as classify() sees it. */
struct attempt {
	int error; /* 0 if there is a reply, otherwise http_perform()'s -errno */
	int status;
	const char *code;        /* the error code in the reply, "" if none */
	bool is_s3;              /* otherwise it is DynamoDB */
	bool is_write;           /* may change something */
	bool body_is_unreadable; /* a 2xx whose body should be XML or JSON and is not, or any reply
				    whose crc32 is wrong */
	/* the reply names another region than the request was signed for */
	bool names_other_region;
	bool signature_is_good; /* the service has accepted a request with these credentials */
	bool clock_is_off; /* the server's clock is off, by its Date: call_request_clock_is_off() */
};

#define SIGNATURE_REFUSED "SignatureDoesNotMatch" /* S3's error code */

struct verdict {
	enum retry_class retry;
	enum outcome outcome; /* the outcome of the call if it is not retried */
};
/* Returns the verdict on an attempt. Only this function decides about replies. Unit tests check it
 * as a table. */
struct verdict classify(const struct attempt *attempt);
/* Returns a sentence with cause and remedy, or NULL if the error code alone is not enough for
 * that. */
const char *code_sentence(const char *code);
/* Likewise for the status of a reply. */
const char *status_sentence(int status);

/* Returns the wait in ms, with full jitter: a uniform value in [0, min(cap, base * 2^attempt)],
 * where `attempt` counts from 0. The base is 50 ms for S3, 25 ms for DynamoDB, and 1 s for both
 * after throttling. The cap is 20 s. */
#define RETRY_CAP_MS 20000
enum retry_service { RETRY_OF_S3, RETRY_OF_DYNAMODB };
uint64_t retry_backoff_ms(enum retry_class retry, enum retry_service service, unsigned attempt);

/* The quota of retries of a service, shared by all threads. It has RETRY_TOKENS tokens, of which a
 * transient (or digest) retry takes RETRY_COST. A success gives 1 back, and a successful retry also
 * gives back its own tokens. Lock-free.
 *
 * An empty quota does not fail a request: each retry without tokens waits 10 to 20 s longer
 * (next_wait_ms() in call.c). A throttled retry takes no token, since pace.c answers throttling. */
#define RETRY_TOKENS 500
#define RETRY_COST   14
/* Takes the tokens of one retry. Returns false, and takes none, if there are too few. */
bool retry_quota_take(atomic_int *quota);
/* Gives these tokens back, up to RETRY_TOKENS in all. */
void retry_quota_refill(atomic_int *quota, unsigned tokens);

/* Waits ms milliseconds between attempts. Returns OUTCOME_OK, or OUTCOME_ABANDONED with a sentence
 * if the limits end the wait. A wait that would outlive the deadline is not begun. limits may be
 * NULL. */
enum outcome wait_within(
	const struct call_limits *limits, uint64_t ms, struct problem *ret_problem);
/* Whether the deadline has passed or the caller wants to stop. */
bool limits_are_over(const struct call_limits *limits);
