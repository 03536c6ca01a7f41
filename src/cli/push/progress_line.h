/* The progress line of a run. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"

/* The figures of the line. Zero it to start. */
struct progress {
	uint64_t files; /* settled, without links and special files */
	uint64_t found; /* found so far, likewise */
	uint64_t bytes; /* of settled files, and what has moved of files under way */
	bool waits;     /* set by the caller: another uploader holds a file */
};

/* Updates the figures by new counts. */
void progress_take_in(struct progress *progress, const struct s3once_counts *counts);
/* Returns how much of the bytes that were found is done, from 0 to 100. Negative while more are
 * being found, or if there are none. */
double progress_percent(const struct progress *progress, const struct s3once_counts *counts);
/* Writes the line, of at most `columns` characters. `counts` are those of the latest call of
 * progress_take_in(). Figures that do not fit are dropped, the percentage and the remaining time
 * last. */
void progress_line(const struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, struct text *ret_line);
/* Adds a second line, "\n" and the largest file under way with its progress, of at most `columns`
 * characters; the beginning of a long path is left out. `path` is raw bytes. */
void progress_add_largest(
	struct text *line, const char *path, uint64_t done, uint64_t size, unsigned columns);
