/* The line that shows how a run goes on. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"

/* What was seen before, for rates. Zero it to start. */
struct progress {
	double seconds; /* of the last counts */
	uint64_t files; /* settled, without links and special files */
	uint64_t found; /* found so far, likewise */
	uint64_t bytes; /* of settled files, and what has moved of files under way */
	bool waits;     /* set by the caller: another uploader holds a file */
	struct {
		uint64_t sent, moved, sent_files; /* the counts before */
		double line;    /* bytes a second that left this host, of the last seconds */
		double content; /* bytes a second of content that was sent, of a longer time */
		double files, most_files; /* files a second that were sent, and the most so far */
	} rates;
};

/* Updates the figures and the rates by new counts. */
void progress_take_in(struct progress *progress, const struct s3once_counts *counts);
/* Returns how much of the bytes that were found is done, from 0 to 100. Negative while more are
 * being found, or if there are none. */
double progress_percent(const struct progress *progress, const struct s3once_counts *counts);
/* Estimates the seconds that are left: the longer of two times. The content that is left takes its
 * time at the rate at which content was sent of late. The files that have not begun yet take theirs
 * at the best rate so far. What S3 had before, and files that were skipped, count in neither rate.
 * Negative if it is not known. */
double progress_seconds_left(const struct progress *progress, const struct s3once_counts *counts);
/* Writes the line for the counts that were taken in last, of at most `columns` characters. Figures
 * that do not fit are left out; the percentage and the time that is left stay longest. */
void progress_line(const struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, struct text *ret_line);
