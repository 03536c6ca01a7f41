/* The thread of the scan. It puts files into the queue in key order, after it has read their marks.
 * With options.final, it first sorts each chunk of files by candidate_rank() (queue.h). */
#pragma once
#include "scan/scan.h"

struct candidate;
struct run;

/* Runs until the scan has ended or the queue is closed. Then it sets report.scan_complete if the
 * whole scan was read, and the phase of the queue to complete. */
void feed_run(struct run *run);

/* Makes the candidate of a file that the scan found. The caller frees it by free(). Returns NULL if
 * there is no memory. */
struct candidate *feed_new_candidate(const struct scan_entry *entry);
/* Frees a candidate that was not begun, and notes that its file is not in S3. */
void feed_drop_candidate(struct run *run, struct candidate *file);
