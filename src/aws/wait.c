#include "aws/wait.h"
#include "base/clock.h"
#include "base/wait_until.h"

static enum outcome abandoned_because(const char *why, struct problem *ret_problem)
{
	problem_set(ret_problem, "%s before the next attempt", why);
	return OUTCOME_ABANDONED;
}

enum outcome wait_within(const struct call_limits *limits, uint64_t ms, struct problem *ret_problem)
{
	static const struct call_limits none;
	const struct call_limits *by = limits ? limits : &none;
	const uint64_t end_ns = clock_boot_ns() + ms * NS_PER_MS;
	if (by->deadline_ns && end_ns > by->deadline_ns)
		return abandoned_because("the deadline passed", ret_problem);
	if (wait_until(false, .deadline_ns = end_ns, .abandon = by->abandon,
		    .arg = by->abandon_arg) == WAIT_ABANDONED)
		return abandoned_because("stopped", ret_problem);
	return OUTCOME_OK;
}

bool limits_are_over(const struct call_limits *limits)
{
	return (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns) ||
	       (limits->abandon && limits->abandon(limits->abandon_arg));
}
