#include "aws/wait.h"
#include "base/clock.h"
#include <time.h>

#define SLICE_NS (100 * NS_PER_MS) /* how late an abandon may be noticed */

static enum outcome abandoned_because(const char *why, struct problem *ret_problem)
{
	problem_set(ret_problem, "%s before the next attempt", why);
	return OUTCOME_ABANDONED;
}

enum outcome wait_within(const struct call_limits *limits, uint64_t ms, struct problem *ret_problem)
{
	uint64_t now = clock_boot_ns(), end = now + ms * NS_PER_MS;
	if (limits && limits->deadline_ns && end > limits->deadline_ns)
		return abandoned_because("the deadline passed", ret_problem);
	while (now < end) {
		if (limits && limits->abandon && limits->abandon(limits->abandon_arg))
			return abandoned_because("stopped", ret_problem);
		uint64_t ns = end - now < SLICE_NS ? end - now : SLICE_NS;
		nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
		now = clock_boot_ns();
	}
	return OUTCOME_OK;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
