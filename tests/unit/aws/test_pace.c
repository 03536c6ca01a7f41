/* How many requests go at once: lowered once for those that were throttled together, raised by
 * success. */
#include "../check.h"
#include "aws/service.h"
#include "base/clock.h"

static const struct call_limits nobody;

static bool at_once(void *arg)
{
	return true;
}

/* How many get in before one would have to wait. */
static unsigned room(struct pace *pace)
{
	const struct call_limits hasty = {.abandon = at_once};
	unsigned n = 0, ticket;
	while (n < 100 && pace_enter(pace, &hasty, &ticket))
		n++;
	for (unsigned i = 0; i < n; i++)
		pace_leave(pace, ticket, PACE_OTHER);
	return n;
}

int main(void)
{
	struct pace pace = {.locked.limit = PACE_FREE};
	unsigned tickets[10];
	uv_cond_init(&pace.room);
	uv_mutex_init(&pace.mutex);
	CHECK_INT(room(&pace), 100);
	for (int i = 0; i < 10; i++)
		CHECK(pace_enter(&pace, &nobody, &tickets[i]));
	for (int i = 0; i < 9; i++)
		pace_leave(&pace, tickets[i], PACE_THROTTLED);
	CHECK_INT(atomic_load(&pace.success_ns), 0);
	CHECK_INT(room(&pace), 6); /* 7, and one is still under way */
	pace_leave(&pace, tickets[9], PACE_OTHER);
	CHECK_INT(room(&pace), 7);
	for (int i = 0; i < 40; i++) { /* never below one */
		CHECK(pace_enter(&pace, &nobody, &tickets[0]));
		pace_leave(&pace, tickets[0], PACE_THROTTLED);
	}
	CHECK_INT(room(&pace), 1);
	CHECK(pace_enter(&pace, &nobody, &tickets[0]));
	const struct call_limits heartbeat = {.deadline_ns = clock_boot_ns() + NS_PER_S};
	CHECK(pace_enter(&pace, &heartbeat, &tickets[1])); /* does not wait */
	pace_leave(&pace, tickets[1], PACE_OTHER);
	const uint64_t before = clock_boot_ns();
	pace_leave(&pace, tickets[0], PACE_ACCEPTED);
	CHECK(atomic_load(&pace.success_ns) >= before);
	CHECK_INT(room(&pace), 2);
	for (int i = 0; i < 100; i++) {
		CHECK(pace_enter(&pace, &nobody, &tickets[0]));
		pace_leave(&pace, tickets[0], PACE_ACCEPTED);
	}
	CHECK(room(&pace) >= 12 && room(&pace) <= 16); /* the root of what succeeded */
	uv_cond_destroy(&pace.room);
	uv_mutex_destroy(&pace.mutex);
	return check_result();
}
