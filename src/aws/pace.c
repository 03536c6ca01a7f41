/* Limits how many requests a service gets at once. call.c calls pace_enter() before each attempt,
 * and pace_leave() with the result after it. */
#include "aws/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/wait_until.h"

#define CUT 0.7 /* the part of the limit that throttling leaves, as in botocore */
/* the time after the last cut from which each success adds 1 to the limit */
#define CALM_NS (2 * NS_PER_S)

bool pace_enter(struct pace *pace, const struct call_limits *limits, unsigned *ret_cuts)
{
	const bool is_urgent = limits->deadline_ns != 0; /* such as a heartbeat: it never waits */
	uv_mutex_lock(&pace->mutex);
	const bool may_send =
		wait_until(is_urgent || pace->locked.in_flight + 1 <= pace->locked.limit,
			.cond = &pace->room, .mutex = &pace->mutex, .abandon = limits->abandon,
			.arg = limits->abandon_arg) == WAIT_MET;
	pace->locked.in_flight += may_send ? 1 : 0;
	*ret_cuts = atomic_load(&pace->cuts);
	uv_mutex_unlock(&pace->mutex);
	return may_send;
}

void pace_leave(struct pace *pace, unsigned cuts, enum pace_result result)
{
	const uint64_t now_ns = clock_boot_ns();
	uv_mutex_lock(&pace->mutex);
	double *limit = &pace->locked.limit;
	pace->locked.in_flight--;
	if (result == PACE_ACCEPTED) {
		const bool is_calm = now_ns - pace->locked.cut_ns >= CALM_NS;
		atomic_store(&pace->success_ns, now_ns);
		if (*limit < PACE_FREE) {
			/* Soon after a cut, adding 1 takes as many successes as the limit. */
			*limit += is_calm ? 1 : 1 / *limit;
			uv_cond_signal(&pace->room); /* the higher limit has room for one more */
		}
	} else if (result == PACE_THROTTLED && cuts == atomic_load(&pace->cuts)) {
		/* The limit was not lowered since this request began. So this is the first
		 * throttled reply among the requests that are under way together, and it alone
		 * lowers the limit for all of them. A limit above their number slows nothing, so
		 * the cut starts from the smaller of the two. */
		const double under_way = pace->locked.in_flight + 1;
		*limit = (*limit < under_way ? *limit : under_way) * CUT;
		*limit = *limit > 1 ? *limit : 1;
		atomic_fetch_add(&pace->cuts, 1);
		pace->locked.cut_ns = now_ns;
		log_info("throttled: %.0f requests at once", *limit);
	}
	uv_cond_signal(&pace->room); /* this request makes room for another */
	uv_mutex_unlock(&pace->mutex);
}
