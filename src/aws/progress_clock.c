/* The clock of a run: the time without progress, and the reason. call.c notes the requests and
 * their failures, src/upload notes progress, and run.c ends the run once the clock is over. */
#include "aws/progress_clock.h"
#include "base/clock.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>

#define COUNT_NS      (20 * NS_PER_MS) /* the shortest time between two counts */
#define PASSED_MAX_NS NS_PER_S         /* the most that counts between two calls */
/* A request that fails is retried within the time of two requests and this pause. After that, its
 * caller must have given it up. */
#define RETRY_PAUSE_NS (60 * NS_PER_S)

void progress_init(struct progress_clock *clock)
{
	*clock = (struct progress_clock){.limit_ns = UINT64_MAX / 2};
	uv_mutex_init(&clock->locked.mutex);
}

void progress_clear(struct progress_clock *clock)
{
	uv_mutex_destroy(&clock->locked.mutex);
}

void progress_set_limit(
	struct progress_clock *clock, uint64_t give_up_after_ms, uint64_t request_timeout_ms)
{
	clock->request_ns = request_timeout_ms * NS_PER_MS;
	clock->limit_ns = give_up_after_ms * NS_PER_MS;
	const uint64_t min_ns =
		clock->request_ns < PROGRESS_SAY_NS ? clock->request_ns : PROGRESS_SAY_NS;
	if (clock->limit_ns < min_ns)
		clock->limit_ns = min_ns;
}

void progress_made(struct progress_clock *clock)
{
	atomic_fetch_add(&clock->steps, 1);
}

void progress_note_local_work(struct progress_clock *clock)
{
	atomic_store(&clock->local_ns, clock_boot_ns());
}

void progress_begin_wait(struct progress_clock *clock, const char *what)
{
	if (!clock)
		return;
	uv_mutex_lock(&clock->locked.mutex);
	snprintf(clock->locked.what, sizeof clock->locked.what, "%s", what);
	uv_mutex_unlock(&clock->locked.mutex);
	atomic_fetch_add(&clock->waiting, 1);
}

void progress_end_wait(struct progress_clock *clock)
{
	if (clock)
		atomic_fetch_sub(&clock->waiting, 1);
}

/* Removes this kind from those that fail, and any kind that was not retried for a while. */
static void forget_failures_locked(struct progress_clock *clock, const char *what)
{
	const uint64_t now_ns = clock_boot_ns();
	const uint64_t retried_within_ns = 2 * clock->request_ns + RETRY_PAUSE_NS;
	unsigned kept = 0;
	for (unsigned i = 0; i < clock->locked.n_failing; i++) {
		const struct progress_failure *failure = &clock->locked.failing[i];
		const bool is_old = now_ns - failure->at_ns >= retried_within_ns;
		if (strcmp(failure->what, what) != 0 && !is_old)
			clock->locked.failing[kept++] = *failure;
	}
	clock->locked.n_failing = kept;
}

void progress_failed(struct progress_clock *clock, const char *what, const struct problem *problem)
{
	if (!clock)
		return;
	uv_mutex_lock(&clock->locked.mutex);
	forget_failures_locked(clock, what);
	if (clock->locked.n_failing ==
		PROGRESS_KINDS) /* the last place is that of all further kinds */
		clock->locked.n_failing--;
	struct progress_failure *last = &clock->locked.failing[clock->locked.n_failing++];
	*last = (struct progress_failure){.at_ns = clock_boot_ns(), .why = *problem};
	snprintf(last->what, sizeof last->what, "%s", what);
	atomic_store(&clock->has_failed, true);
	uv_mutex_unlock(&clock->locked.mutex);
}

void progress_answered(struct progress_clock *clock, const char *what)
{
	if (!clock)
		return;
	if (!atomic_load(&clock->has_failed)) {
		progress_made(clock);
		return;
	}
	uv_mutex_lock(&clock->locked.mutex);
	forget_failures_locked(clock, what);
	atomic_store(&clock->has_failed, clock->locked.n_failing > 0);
	uv_mutex_unlock(&clock->locked.mutex);
}

void progress_give_up(struct progress_clock *clock)
{
	atomic_store(&clock->is_over, true);
}

/* Returns the description of the present wait, or of its failure. */
static struct problem describe_wait_locked(const struct progress_clock *clock)
{
	if (clock->locked.n_failing)
		return clock->locked.failing[clock->locked.n_failing - 1].why;
	return problem_of("there is no answer to %s yet", clock->locked.what);
}

/* Whether the last failure was an answer, so that its problem has a status. */
static bool was_answered_locked(const struct progress_clock *clock)
{
	const unsigned n = clock->locked.n_failing;
	return n > 0 && clock->locked.failing[n - 1].why.status;
}

/* Returns the time after the first failure, without progress, after which the clock is over. */
static uint64_t limit_locked(const struct progress_clock *clock)
{
	return clock->limit_ns + (was_answered_locked(clock) ? clock->request_ns : 0);
}

/* Begins to count anew, after progress. */
static void restart_locked(struct progress_clock *clock, uint64_t steps)
{
	clock->locked.steps = steps;
	clock->locked.still_ns = clock->locked.failing_ns = 0;
	clock->locked.has_warned = false;
	clock->locked.n_failing = 0;
	atomic_store(&clock->has_failed, false);
}

/* Counts the time since the last call, unless there was progress, no request is waiting, or
 * this host was at work itself. */
static void count_locked(struct progress_clock *clock, uint64_t passed_ns, bool is_at_work)
{
	const uint64_t steps = atomic_load(&clock->steps);
	if (steps != clock->locked.steps) {
		restart_locked(clock, steps);
		return;
	}
	const bool fails = clock->locked.n_failing > 0;
	const bool waits = fails || atomic_load(&clock->waiting);
	if (!waits || is_at_work)
		return;
	clock->locked.still_ns += passed_ns;
	clock->locked.failing_ns += fails ? passed_ns : 0;
	if (fails && clock->locked.failing_ns >= limit_locked(clock))
		atomic_store(&clock->is_over, true);
}

/* Returns whether the wait is to be logged now, for the first time since the last progress, and
 * sets *ret_why to its description. */
static bool begin_warning_locked(struct progress_clock *clock, struct problem *ret_why)
{
	if (clock->locked.has_warned || clock->locked.still_ns < PROGRESS_SAY_NS ||
		atomic_load(&clock->is_over))
		return false;
	clock->locked.has_warned = true;
	*ret_why = describe_wait_locked(clock);
	return true;
}

bool progress_poll_is_over(struct progress_clock *clock)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t last_ns = atomic_load(&clock->counted_ns);
	struct problem why;
	/* now_ns is less than last_ns if another thread has counted since it was taken. */
	const bool is_due = now_ns >= last_ns && now_ns - last_ns >= COUNT_NS;
	if (atomic_load(&clock->is_over) || !is_due)
		return atomic_load(&clock->is_over);
	/* Of several threads that come here at once, one counts the time. */
	if (!atomic_compare_exchange_strong(&clock->counted_ns, &last_ns, now_ns))
		return atomic_load(&clock->is_over);
	const uint64_t passed_ns =
		now_ns - last_ns < PASSED_MAX_NS ? now_ns - last_ns : PASSED_MAX_NS;
	const bool is_at_work = atomic_load(&clock->local_ns) >= last_ns;
	uv_mutex_lock(&clock->locked.mutex);
	const bool had_warned = clock->locked.has_warned;
	const uint64_t was_still_ns = clock->locked.still_ns;
	count_locked(clock, passed_ns, is_at_work);
	const bool has_resumed = had_warned && !clock->locked.has_warned;
	const bool warns = begin_warning_locked(clock, &why);
	const unsigned long long limit_s = limit_locked(clock) / NS_PER_S;
	const bool fails = clock->locked.n_failing > 0;
	const bool was_answered = was_answered_locked(clock);
	uv_mutex_unlock(&clock->locked.mutex);
	if (warns && fails)
		log_urgent("%s; nothing has moved for %llu s, waiting for up to %llu s "
			   "(--give-up-after%s)",
			why.text, PROGRESS_SAY_NS / NS_PER_S, limit_s,
			was_answered ? " and one --request-timeout" : "");
	if (warns && !fails)
		log_urgent("%s; nothing has moved for %llu s; if it fails, it is retried for up to "
			   "%llu s (--give-up-after)",
			why.text, PROGRESS_SAY_NS / NS_PER_S, limit_s);
	if (has_resumed)
		log_urgent("the run goes on, after %llu s in which nothing has moved",
			(unsigned long long)(was_still_ns / NS_PER_S));
	return atomic_load(&clock->is_over);
}

uint64_t progress_still_ns(struct progress_clock *clock, struct problem *ret)
{
	uv_mutex_lock(&clock->locked.mutex);
	const uint64_t still_ns = clock->locked.still_ns;
	if (ret)
		*ret = describe_wait_locked(clock);
	uv_mutex_unlock(&clock->locked.mutex);
	return still_ns;
}
