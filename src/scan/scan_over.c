#include "scan/scan_over.h"
#include <errno.h>

bool scan_is_cancelled(const struct scan_options *options)
{
	return options->is_over && options->is_over(options->is_over_arg);
}

int scan_may_be_over(const struct scan_options *options, struct problem *ret_problem)
{
	return scan_is_cancelled(options) ? scan_stopped(ret_problem) : 0;
}

int scan_stopped(struct problem *ret_problem)
{
	problem_set(ret_problem, "stopped while the files were listed");
	return -ECANCELED;
}
