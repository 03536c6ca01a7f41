/* The thread of the scan. It puts files into the queue in key order, together with their marks.
 * With --final, each chunk of them goes in the order of candidate_rank() (queue.h). */
#pragma once
#include "upload/run.h"

/* Runs to the end of the scan, or until the queue is closed, and then calls queue_complete. Returns
 * whether the whole scan was read. */
bool feed_run(struct run *run);

/* What the queue has of a file that the scan found. NULL: out of memory; free() it. */
struct scan_entry;
struct candidate *feed_candidate(const struct scan_entry *entry);
/* Frees one that the run has not begun, and notes that it is not in S3. */
void feed_leave(struct run *run, struct candidate *file);
