/* The one way to wait: until a condition is met, a deadline has passed, or the wait is abandoned.
 *
 *	uv_mutex_lock(&queue->mutex);
 *	enum waited waited = wait_until(queue->first || queue->closed, .cond = &queue->work,
 *		.mutex = &queue->mutex, .deadline_ns = end_ns, .abandon = is_over, .arg = run);
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum waited { WAIT_MET, WAIT_LATE, WAIT_ABANDONED };

struct waiting {
	/* `cond` is signalled when the condition may have become true, and `mutex` guards the
	 * condition. The caller holds the mutex before and after the wait. If both are NULL, there
	 * is no signal, and the condition is tested every 100 ms. */
	uv_cond_t *cond;
	uv_mutex_t *mutex;
	/* The clock_boot_ns() at which the wait ends; it counts suspend. 0: no deadline. With a
	 * deadline, the condition is tested at least every 200 ms, so that it may also depend on
	 * the time. */
	uint64_t deadline_ns;
	/* Called without the mutex, before the first sleep and then every 100 ms; the condition is
	 * tested after each call. If it returns true, the wait ends, unless the condition is true
	 * by then. NULL: the wait is never abandoned. */
	bool (*abandon)(void *arg);
	void *arg;
	/* Only wait_until() uses the rest. */
	uint64_t ask_ns;   /* the time of the next call of abandon() */
	enum waited ended; /* WAIT_MET until the deadline or abandon() has ended the wait */
};

/* Waits until the condition is true, and returns how the wait ended. The condition is an
 * expression, which is evaluated with the mutex held each time it is tested. The other arguments
 * are fields of struct waiting by their names. */
#define wait_until(condition, ...)                                                                 \
	({                                                                                         \
		struct waiting waiting_ = {__VA_ARGS__};                                           \
		bool is_met_;                                                                      \
		while (!(is_met_ = (condition)) && wait_once(&waiting_))                           \
			;                                                                          \
		is_met_ ? WAIT_MET : waiting_.ended;                                               \
	})

/* One turn of a wait: asks abandon() if that is due, otherwise sleeps. Returns false without doing
 * either once the wait has ended: the time is up, or abandon() has returned true in an earlier
 * turn. Only wait_until() calls it. */
bool wait_once(struct waiting *waiting);

/* A signal from one thread to another that waits for it. The thread that has waited may destroy it
 * right away, or wait for the next one. */
struct wakeup {
	uv_mutex_t mutex;
	uv_cond_t sent;
	bool is_sent;
};
void wakeup_init(struct wakeup *wakeup);
void wakeup_clear(struct wakeup *wakeup);
void wakeup_send(struct wakeup *wakeup);
/* Waits until the wakeup was sent, and resets it for the next time. Returns false if the deadline
 * has passed, or the wait was abandoned, as in struct waiting. */
bool wakeup_await(
	struct wakeup *wakeup, uint64_t deadline_ns, bool (*abandon)(void *arg), void *arg);
