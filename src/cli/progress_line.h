/* The line that shows how a run goes on. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"

/* What was seen before, for rates. Zero it to start. */
struct progress {
	double seconds; /* of the last counts */
	uint64_t files, bytes,
		sent; /* settled files and their bytes; bytes handed to the network */
	double files_rate, bytes_rate, sent_rate; /* per second, smoothed */
};

/* Files of a run that need nothing more. */
uint64_t progress_settled(const struct s3once_counts *counts);
/* Takes new counts in and writes the line, of at most `columns` characters. */
void progress_line(struct progress *progress, const struct s3once_counts *counts, unsigned columns,
	struct text *ret_line);
