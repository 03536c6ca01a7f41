/* The line that shows how a run goes on. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"

/* What was seen before, for rates. Zero it to start. */
struct progress {
	double seconds; /* of the last counts */
	uint64_t files; /* settled, without what is no file */
	uint64_t found; /* likewise */
	uint64_t bytes; /* of settled files, and of those under way what has moved */
	bool waits;     /* set by the caller: another uploader holds a file */
	struct {
		uint64_t sent, moved, sent_files; /* the counts before */
		double line;    /* bytes a second that left this host, of the last seconds */
		double content; /* bytes a second of content that was sent, for longer */
		double files, most_files; /* files a second that were sent, and the most so far */
	} rates;
};

/* Takes new counts in. */
void progress_take_in(struct progress *progress, const struct s3once_counts *counts);
/* How much of the bytes that were found is done, 0 to 100; negative while more are being found. */
double progress_percent(const struct progress *progress, const struct s3once_counts *counts);
/* Whichever takes longer: the content that is left, at the rate at which content was sent of late,
 * or the files that have not begun yet, at the best rate that was seen. What S3 had before, and
 * files that were skipped, are left out of both rates. Negative if nobody knows. */
double progress_seconds_left(const struct progress *progress, const struct s3once_counts *counts);
/* Writes the line for the counts that were taken in last, of at most `columns`
 * characters. What does not fit is left out: how far the run is and how long it takes stay longest.
 */
void progress_line(const struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, struct text *ret_line);
