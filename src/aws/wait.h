/* Waiting between attempts. */
#pragma once
#include "aws/call.h"

/* Waits ms milliseconds; ends early with OUTCOME_ABANDONED and a sentence when the limits say so (a
 * wait that would outlive the deadline is not begun). limits may be NULL. */
enum outcome wait_within(
	const struct call_limits *limits, uint64_t ms, struct problem *ret_problem);
/* Whether the deadline has passed or the caller wants to stop. */
bool limits_are_over(const struct call_limits *limits);
