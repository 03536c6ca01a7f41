/* The rate of a run, and its remaining time. Pure: the time comes with the counts. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>

/* Earlier counts, for rates. Zero it to start. */
struct estimate {
	double seconds;                         /* time of the last counts */
	uint64_t sent, large_moved, small_sent; /* the earlier counts */
	double line;    /* bytes a second that left this host, of the last seconds */
	double large;   /* bytes a second of large files' content, while any was under way */
	double large_s; /* number of seconds in which any was under way */
	double small, most_small; /* small files a second, and the most so far */
	bool had_small;           /* small files were under way at the last counts */
};

/* Updates the rates by new counts. */
void estimate_take_in(struct estimate *estimate, const struct s3once_counts *counts);
/* Estimates the remaining seconds. Small files take their time at the best rate so far, since each
 * costs its requests, and the content of large files takes it at the recent rate of such content.
 * While both are under way, they take their time side by side, and what is left of the large ones
 * then has the whole line; otherwise the sum counts. Content that S3 had before, and skipped files,
 * count in neither rate. Negative if unknown, for example before large files have been under way
 * for three seconds. */
double estimate_seconds_left(const struct estimate *estimate, const struct s3once_counts *counts);
