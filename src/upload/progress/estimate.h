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
	double small, max_small; /* small files a second, and the most so far */
	bool had_small;          /* small files were under way at the last counts */
};

/* Updates the rates by new counts. */
void estimate_take_in(struct estimate *estimate, const struct s3once_counts *counts);
/* Estimates the remaining seconds. The time of small files is their number at the best rate so far,
 * since each costs its requests. The time of large files is their content at the recent rate of
 * such content. While both kinds are under way, the two times overlap, and the large files get the
 * whole line once the small ones have ended. Otherwise the two times are added. Neither rate counts
 * skipped files, or content that S3 had before. Negative if unknown, for example before large files
 * have been under way for three seconds. */
double estimate_seconds_left(const struct estimate *estimate, const struct s3once_counts *counts);
