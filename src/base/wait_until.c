/* Waits in short sleeps, for two reasons: the clock of a sleep stops while the host is suspended,
 * and no signal comes when the answer of abandon() changes. */
#include "base/wait_until.h"
#include "base/clock.h"

#define ASK_NS  (100 * NS_PER_MS) /* the time between two calls of abandon() */
#define LOOK_NS (200 * NS_PER_MS) /* the time between two tests of a condition that is signalled   \
				   */

bool wait_goes_on(struct waiting *waiting)
{
	if (waiting->told && !waiting->deadline_ns && !waiting->abandon) {
		uv_cond_wait(waiting->told, waiting->mutex);
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
	uint64_t most_ns = waiting->told ? LOOK_NS : ASK_NS;
	if (waiting->abandon && waiting->ask_ns - now_ns < most_ns)
		most_ns = waiting->ask_ns - now_ns;
	if (waiting->deadline_ns && waiting->deadline_ns - now_ns < most_ns)
		most_ns = waiting->deadline_ns - now_ns;
	/* The caller tests the condition after each sleep. */
	if (waiting->told)
		uv_cond_timedwait(waiting->told, waiting->mutex, most_ns);
	else
		uv_sleep((unsigned)((most_ns + NS_PER_MS - 1) / NS_PER_MS));
	return true;
}

void bell_init(struct bell *bell)
{
	bell->has_rung = false;
	uv_mutex_init(&bell->mutex);
	uv_cond_init(&bell->rung);
}

void bell_clear(struct bell *bell)
{
	uv_cond_destroy(&bell->rung);
	uv_mutex_destroy(&bell->mutex);
}

void bell_ring(struct bell *bell)
{
	uv_mutex_lock(&bell->mutex);
	bell->has_rung = true;
	uv_cond_signal(&bell->rung); /* before the unlock: after it, the wakeup may be gone */
	uv_mutex_unlock(&bell->mutex);
}

bool bell_await(struct bell *bell, uint64_t deadline_ns, bool (*abandon)(void *arg), void *arg)
{
	uv_mutex_lock(&bell->mutex);
	const bool has_rung =
		wait_until(bell->has_rung, .told = &bell->rung, .mutex = &bell->mutex,
			.deadline_ns = deadline_ns, .abandon = abandon, .arg = arg) == WAIT_MET;
	bell->has_rung = false;
	uv_mutex_unlock(&bell->mutex);
	return has_rung;
}
