/* The time that a run has made no progress, and the thing that it waits for. All requests of a run
 * share one clock, and it alone decides when waiting is useless: whether a server is silent,
 * refuses connections, throttles or answers with errors makes no difference. Thread-safe.
 *
 * While requests of one kind fail, the replies to others are not progress, since a server may
 * answer each HEAD of an object and never accept the object. Then only the owner of the clock
 * reports progress. */
#pragma once
#include "base/problem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define PROGRESS_SAY_NS (10 * NS_PER_S) /* the time after which a line reports the wait */
/* The number of kinds of failing requests that are tracked at the same time. Further kinds are
 * counted as one kind. */
#define PROGRESS_KINDS 16

struct progress_clock {
	/* The time without progress, counted from the first failure, after which the clock is over:
	 * a request that has not failed yet ends by its own limits, however long these let it be
	 * silent, and is then retried. The second is the time that one request may take. It is
	 * added to the first while the last failure was an answer, so that a single file that the
	 * server cannot store fails by itself before. */
	uint64_t limit_ns, request_ns;
	_Atomic uint64_t steps;    /* number of steps of progress */
	atomic_uint waiting;       /* waits for a service under way: requests with their retries */
	_Atomic uint64_t local_ns; /* time at which this host itself was last at work */
	_Atomic uint64_t counted_ns; /* time of the last count */
	atomic_bool has_failed;      /* locked.n_failing is not 0 */
	atomic_bool is_over;         /* never reset */
	struct {
		uv_mutex_t mutex;
		/* Steps and duration of the present time without progress, and its part in which
		 * requests have failed. */
		uint64_t steps, still_ns, failing_ns;
		bool has_warned;
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
/* Sets the limit, before any wait begins: give_up_after_ms, but at least the time of a slow
 * request, of which at most PROGRESS_SAY_NS counts. */
void progress_set_limit(
	struct progress_clock *clock, uint64_t give_up_after_ms, uint64_t request_timeout_ms);

/* Notes progress: the time is counted from here again. */
void progress_made(struct progress_clock *clock);
/* Notes that this host itself is at work, as it reads a file. Such time does not count. */
void progress_note_local_work(struct progress_clock *clock);
/* Notes that a wait for a service begins. `what` names the request, such as "PutObject". */
void progress_begin_wait(struct progress_clock *clock, const char *what);
/* Notes that a wait has ended. */
void progress_end_wait(struct progress_clock *clock);
/* Notes the failure of a request of this kind, or a good answer to one. While nothing fails, a good
 * answer is progress: so a run may wait for files that other uploaders hold, as long as the marks
 * answer. After a failure, a good answer only shows that this kind no longer fails. A kind that was
 * not retried for a while no longer counts as failing either. */
void progress_failed(struct progress_clock *clock, const char *what, const struct problem *problem);
void progress_answered(struct progress_clock *clock, const char *what);
/* Ends the time early: the clock is over. Call it once no request can be expected to succeed.
 */
void progress_give_up(struct progress_clock *clock);
/* Counts the time that has passed since the last call, and returns whether the clock is over.
 * During a wait, this is called ten times a second: time that passes without a call, as when the
 * host is suspended or the process is stopped, counts as a second at most. After PROGRESS_SAY_NS
 * without progress it logs a warning that --quiet does not hide, and another one once there is
 * progress. */
bool progress_poll_is_over(struct progress_clock *clock);
/* Returns the time without progress, in ns. If `ret` is not NULL, sets it to a description of the
 * wait, or of its failure. */
uint64_t progress_still_ns(struct progress_clock *clock, struct problem *ret);
