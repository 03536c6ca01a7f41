/* For how long a run has made no progress, and what it waits for. All requests of a run share one
 * clock, and it alone decides when waiting is of no use any more: whether a server is silent,
 * refuses connections, throttles or answers with errors makes no difference. Thread-safe.
 *
 * While requests of one kind fail, the replies to others are not progress, since a server may
 * answer each look at an object and never take the object. Then the owner of the clock says what
 * progress is. */
#pragma once
#include "base/problem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define PROGRESS_SAY_NS (10 * NS_PER_S) /* after this time one line says what is waited for */
#define PROGRESS_KINDS  16              /* kinds of requests that fail at once; more count as one */

struct progress_clock {
	/* The time without progress after which the clock is over, and the time that one request
	 * may take. While the last word is an answer, or none has failed yet, the latter is added
	 * to the former: a request that is under way is not cut off, and a single file that the
	 * server cannot store fails by itself before. */
	uint64_t limit_ns, request_ns;
	_Atomic uint64_t steps;     /* how often progress was made */
	atomic_uint waiting;        /* waits for a service under way: requests with their retries */
	_Atomic uint64_t local_ns;  /* when this host itself was last seen at work */
	_Atomic uint64_t looked_ns; /* when the time was counted last */
	atomic_bool has_failed;     /* locked.n_failing is not 0 */
	atomic_bool is_over;        /* it stays so */
	struct {
		uv_mutex_t mutex;
		uint64_t steps, still_ns; /* those of the present time without progress */
		bool has_said;
		char what[64]; /* the wait that began last */
		/* The kinds of requests that fail, the last failure at the end. */
		struct progress_failure {
			char what[64];
			uint64_t at_ns;
			struct problem why;
		} failing[PROGRESS_KINDS];
		unsigned n_failing;
	} locked;
};

void progress_init(struct progress_clock *clock);
void progress_clear(struct progress_clock *clock);
/* Sets the limit, before any wait begins: give_up_after_ms, but no less than a request takes that
 * is slow, though not more than PROGRESS_SAY_NS of it. */
void progress_limit(
	struct progress_clock *clock, uint64_t give_up_after_ms, uint64_t request_timeout_ms);

/* Notes progress: from here on, the time counts anew. */
void progress_made(struct progress_clock *clock);
/* Notes that this host itself is at work, as it reads a file. Such time does not count. */
void progress_local(struct progress_clock *clock);
/* Notes that a wait for a service begins, such as "PutObject", and that it ends. */
void progress_wait(struct progress_clock *clock, const char *what);
void progress_end_wait(struct progress_clock *clock);
/* Notes how a request of this kind has failed, or that one has been answered well. While nothing
 * fails, a good answer is progress: so a run may wait for files that other uploaders hold, as long
 * as it is told so. After a failure it only shows that this kind does not fail any more. A kind
 * also counts as failing no longer if it was not tried again for a while. */
void progress_failed(struct progress_clock *clock, const char *what, const struct problem *problem);
void progress_answered(struct progress_clock *clock, const char *what);
/* Counts the time that has passed since the last call, and returns whether the clock is over. While
 * anything is waited for, this is called ten times a second: time that passes without a call, as
 * when the host is suspended or the process is stopped, counts as a second at most. After
 * PROGRESS_SAY_NS without progress it logs a warning that --quiet does not hide, and another one
 * once there is progress. */
bool progress_is_over(struct progress_clock *clock);
/* Returns for how long there was no progress, in ns. If `ret` is not NULL, sets it to what is
 * waited for, or how that has failed. */
uint64_t progress_still_ns(struct progress_clock *clock, struct problem *ret);
