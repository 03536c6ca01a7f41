/* Waits in short sleeps, for two reasons: the clock of a sleep stops while the host is suspended,
 * and no signal comes when the answer of abandon() changes. */
#include "base/wait_until.h"
#include "base/clock.h"

#define ASK_NS (100 * NS_PER_MS) /* the time between two calls of abandon() */
/* The longest sleep on a condition that is signalled, if the wait may also end otherwise. The
 * deadline has to be checked this often, since the clock of the sleep stops during a suspend. */
#define LOOK_NS (200 * NS_PER_MS)

/* Asks abandon() without the mutex, since it may take long, and may lock other mutexes. */
static void ask_abandon(struct waiting *waiting)
{
	if (waiting->mutex)
		uv_mutex_unlock(waiting->mutex);
	if (waiting->abandon(waiting->arg))
		waiting->ended = WAIT_ABANDONED;
	if (waiting->mutex)
		uv_mutex_lock(waiting->mutex);
}

/* Sleeps until the signal, the deadline or the next call of abandon(), whichever comes first, but
 * not for long. */
static void sleep_a_while(const struct waiting *waiting, uint64_t now_ns)
{
	uint64_t max_ns = waiting->cond ? LOOK_NS : ASK_NS;
	if (waiting->abandon && waiting->ask_ns - now_ns < max_ns)
		max_ns = waiting->ask_ns - now_ns;
	if (waiting->deadline_ns && waiting->deadline_ns - now_ns < max_ns)
		max_ns = waiting->deadline_ns - now_ns;
	if (waiting->cond)
		uv_cond_timedwait(waiting->cond, waiting->mutex, max_ns);
	else
		uv_sleep((unsigned)((max_ns + NS_PER_MS - 1) / NS_PER_MS));
}

bool wait_once(struct waiting *waiting)
{
	const bool only_signal_ends_it =
		waiting->cond && !waiting->deadline_ns && !waiting->abandon;
	if (only_signal_ends_it) {
		uv_cond_wait(waiting->cond, waiting->mutex);
		return true;
	}
	const uint64_t now_ns = clock_boot_ns();
	const bool is_late = waiting->deadline_ns && now_ns >= waiting->deadline_ns;
	if (waiting->ended == WAIT_MET && is_late)
		waiting->ended = WAIT_LATE;
	if (waiting->ended != WAIT_MET)
		return false;
	/* After either, the caller tests the condition, which may have been met meanwhile. */
	if (waiting->abandon && now_ns >= waiting->ask_ns) {
		waiting->ask_ns = now_ns + ASK_NS;
		ask_abandon(waiting);
	} else {
		sleep_a_while(waiting, now_ns);
	}
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
	const bool was_sent =
		wait_until(wakeup->is_sent, .cond = &wakeup->sent, .mutex = &wakeup->mutex,
			.deadline_ns = deadline_ns, .abandon = abandon, .arg = arg) == WAIT_MET;
	wakeup->is_sent = false;
	uv_mutex_unlock(&wakeup->mutex);
	return was_sent;
}
