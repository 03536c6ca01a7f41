#include "scan/min_age.h"
#include "base/clock.h"

bool min_age_is_from_future(const struct file_state *state, const struct scan_options *options)
{
	return options->min_age_ms && state->mtime_ns > options->now_wall_ns &&
	       state->mtime_ns > clock_wall_ns(); /* it may be written while we look */
}

static bool is_younger(int64_t time_ns, const struct scan_options *options)
{
	int64_t age_ns, oldest_ns;
	return __builtin_mul_overflow(options->min_age_ms, UINT64_C(1000000), &age_ns) ||
	       __builtin_sub_overflow(options->now_wall_ns, age_ns, &oldest_ns) ||
	       time_ns > oldest_ns;
}

/* Another host's clock may be ahead by a little; one that was years ahead must not hide a file. */
static bool is_far_ahead(int64_t time_ns, const struct scan_options *options)
{
	int64_t age_ns, ahead_ns;
	return !__builtin_mul_overflow(options->min_age_ms, UINT64_C(1000000), &age_ns) &&
	       (__builtin_sub_overflow(time_ns, options->now_wall_ns, &ahead_ns) ||
		       ahead_ns > age_ns);
}

bool min_age_holds(const struct file_state *state, const struct scan_options *options)
{
	if (options->min_age_ms == 0)
		return false;
	if (!min_age_is_from_future(state, options))
		return is_younger(state->mtime_ns, options);
	return is_younger(state->ctime_ns, options) && !is_far_ahead(state->ctime_ns, options);
}
