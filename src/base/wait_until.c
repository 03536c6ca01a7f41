/* Waits in short sleeps, for two reasons: the clock of a sleep stops while the host is suspended,
 * and no signal comes when the answer of abandon() changes. */
#include "base/wait_until.h"
#include "base/clock.h"

#define ASK_NS (100 * NS_PER_MS) /* the time between two calls of abandon() */
/* The longest sleep on a condition that is signalled, if the wait may also end otherwise. The
 * deadline has to be checked this often, since the clock of the sleep stops during a suspend. */
#define LOOK_NS (200 * NS_PER_MS)

bool wait_goes_on(struct waiting *waiting)
{
	if (waiting->cond && !waiting->deadline_ns && !waiting->abandon) {
		uv_cond_wait(waiting->cond, waiting->mutex);
		return true;
	}
	/* WAIT_MET: nothing has ended the wait so far. After WAIT_ABANDONED the caller tests the
	 * condition once more, and the next call returns false. */
	const uint64_t now_ns = clock_boot_ns();
	if (waiting->ended == WAIT_MET && waiting->deadline_ns && now_ns >= waiting->deadline_ns)
		waiting->ended = WAIT_LATE;
	if (waiting->ended != WAIT_MET)
		return false;
	if (waiting->abandon && now_ns >= waiting->ask_ns) {
		waiting->ask_ns = now_ns + ASK_NS;
		if (waiting->mutex) /* abandon() may take long, and may lock other mutexes */
			uv_mutex_unlock(waiting->mutex);
		if (waiting->abandon(waiting->arg))
			waiting->ended = WAIT_ABANDONED;
		if (waiting->mutex)
			uv_mutex_lock(waiting->mutex);
		return true; /* the condition may have been met meanwhile */
	}
	uint64_t max_ns = waiting->cond ? LOOK_NS : ASK_NS;
	if (waiting->abandon && waiting->ask_ns - now_ns < max_ns)
		max_ns = waiting->ask_ns - now_ns;
	if (waiting->deadline_ns && waiting->deadline_ns - now_ns < max_ns)
		max_ns = waiting->deadline_ns - now_ns;
	/* The caller tests the condition after each sleep. */
	if (waiting->cond)
		uv_cond_timedwait(waiting->cond, waiting->mutex, max_ns);
	else
		uv_sleep((unsigned)((max_ns + NS_PER_MS - 1) / NS_PER_MS));
	return true;
}

void wakeup_init(struct wakeup *wakeup)
{
	wakeup->is_sent = false;
	uv_mutex_init(&wakeup->mutex);
	uv_cond_init(&wakeup->sent);
}

void wakeup_clear(struct wakeup *wakeup)
{
	uv_cond_destroy(&wakeup->sent);
	uv_mutex_destroy(&wakeup->mutex);
}

void wakeup_send(struct wakeup *wakeup)
{
	uv_mutex_lock(&wakeup->mutex);
	wakeup->is_sent = true;
	uv_cond_signal(&wakeup->sent); /* before the unlock: after it, the wakeup may be gone */
	uv_mutex_unlock(&wakeup->mutex);
}

bool wakeup_await(
	struct wakeup *wakeup, uint64_t deadline_ns, bool (*abandon)(void *arg), void *arg)
{
	uv_mutex_lock(&wakeup->mutex);
	const bool has_rung =
		wait_until(wakeup->is_sent, .cond = &wakeup->sent, .mutex = &wakeup->mutex,
			.deadline_ns = deadline_ns, .abandon = abandon, .arg = arg) == WAIT_MET;
	wakeup->is_sent = false;
	uv_mutex_unlock(&wakeup->mutex);
	return has_rung;
}
