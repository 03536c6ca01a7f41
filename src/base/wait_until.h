/* The one way to wait: until a condition is met, a deadline has passed, or the wait is abandoned.
 *
 *	uv_mutex_lock(&queue->mutex);
 *	enum waited waited = wait_until(queue->first || queue->closed, .told = &queue->work,
 *		.mutex = &queue->mutex, .deadline_ns = end_ns, .abandon = is_over, .arg = run);
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum waited { WAIT_MET, WAIT_LATE, WAIT_ABANDONED };

struct waiting {
	/* Signalled when the condition may be met, and the mutex that guards it. The caller holds
	 * the mutex, as it does when the wait is over. Both NULL: nobody tells, so that the
	 * condition is looked at every 100 ms. */
	uv_cond_t *told;
	uv_mutex_t *mutex;
	/* The clock_boot_ns() at which the wait ends, which counts the time that the host sleeps.
	 * 0: none. With any other, the condition is looked at every 200 ms, so that it may also be
	 * about the time. */
	uint64_t deadline_ns;
	/* Asked without the mutex, before the first sleep and then every 100 ms, with the condition
	 * as well. True ends the wait, unless the condition is met by then. NULL: never. */
	bool (*abandon)(void *arg);
	void *arg;
	/* The rest is wait_until()'s. */
	uint64_t ask_ns;
	enum waited ended;
};

/* Waits until the condition is true, which is an expression that is computed with the mutex held,
 * once for each look. The other arguments are fields of struct waiting by their names. */
#define wait_until(condition, ...)                                                                 \
	({                                                                                         \
		struct waiting waiting_ = {__VA_ARGS__};                                           \
		bool is_met_;                                                                      \
		while (!(is_met_ = (condition)) && wait_goes_on(&waiting_))                        \
			;                                                                          \
		is_met_ ? WAIT_MET : waiting_.ended;                                               \
	})

/* Sleeps, or asks whether to go on. False: the wait is over. For wait_until() alone. */
bool wait_goes_on(struct waiting *waiting);

/* What one thread rings once, and another one waits for. That one may destroy it right away. */
struct bell {
	uv_mutex_t mutex;
	uv_cond_t rung;
	bool has_rung;
};
int bell_init(struct bell *bell); /* 0 or -errno */
void bell_clear(struct bell *bell);
void bell_ring(struct bell *bell);
/* Waits until it has rung, and makes it silent again. False: the deadline has passed, or the wait
 * is abandoned, as above. */
bool bell_await(struct bell *bell, uint64_t deadline_ns, bool (*abandon)(void *arg), void *arg);
