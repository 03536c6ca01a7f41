/* Whether a scan is to end before it has listed all files. */
#pragma once
#include "scan/scan.h"

/* Whether is_over of the options says so. */
bool scan_is_cancelled(const struct scan_options *options);
/* 0, or -ECANCELED with a sentence if it says so. */
int scan_may_be_over(const struct scan_options *options, struct problem *ret_problem);
/* -ECANCELED, with the sentence. */
int scan_stopped(struct problem *ret_problem);
