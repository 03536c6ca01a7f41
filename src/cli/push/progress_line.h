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
		uint64_t sent, large_moved, small_sent; /* the counts before */
		double line;  /* bytes a second that left this host, of the last seconds */
		double large; /* bytes a second of large files' content, while any was under way */
		double large_s;           /* for so many seconds any was under way */
		double small, most_small; /* small files a second, and the most so far */
	} rates;
};

/* Updates the figures and the rates by new counts. */
void progress_take_in(struct progress *progress, const struct s3once_counts *counts);
/* Returns how much of the bytes that were found is done, from 0 to 100. Negative while more are
 * being found, or if there are none. */
double progress_percent(const struct progress *progress, const struct s3once_counts *counts);
/* Estimates the seconds that are left. Small files take their time at the best rate so far, since
 * each costs its requests, and the content of large files takes it at the rate at which such
 * content was sent of late. While both are under way, the longer time counts, and otherwise the
 * sum. What S3 had before, and files that were skipped, count in neither rate. Negative if it is
 * not known, for example before the first large file has begun. */
double progress_seconds_left(const struct progress *progress, const struct s3once_counts *counts);
/* Writes the line for the counts that were taken in last, of at most `columns` characters. Figures
 * that do not fit are left out; the percentage and the time that is left stay longest. */
void progress_line(const struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, struct text *ret_line);
/* Adds a second line, "\n" and the largest file under way with its progress, of at most `columns`
 * characters; the beginning of a long path is left out. `path` is raw bytes. */
void progress_add_largest(
	struct text *line, const char *path, uint64_t done, uint64_t size, unsigned columns);
