/* The line that shows how a run goes on. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"

/* What was seen before, for rates. Zero it to start. */
struct progress {
	double seconds; /* of the last counts */
	uint64_t files; /* settled */
	uint64_t bytes; /* of settled files, and of those under way what has moved */
	uint64_t sent;  /* bytes that left this host */
	bool waits;     /* set by the caller: another uploader holds a file */
	double files_rate, bytes_rate, sent_rate; /* per second, smoothed */
};

/* Takes new counts in. */
void progress_take_in(struct progress *progress, const struct s3once_counts *counts);
/* How much of the bytes that were found is done, 0 to 100; negative while more are being found. */
double progress_percent(const struct progress *progress, const struct s3once_counts *counts);
/* Whichever takes longer, the files or their bytes; negative if nobody knows. */
double progress_seconds_left(const struct progress *progress, const struct s3once_counts *counts);
/* Writes the line for the counts that were taken in last, of at most `columns`
 * characters: figures that do not fit are left out, the last ones first. */
void progress_line(const struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, struct text *ret_line);
