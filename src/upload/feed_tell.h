/* What the scan's thread reports about what it found, beside the files that it hands on. */
#pragma once
#include "upload/run.h"

/* Reports what is not a file to be uploaded: a problem, a link, a young file, or a special one. */
void feed_tell_entry(struct run *run, const struct scan_entry *entry);
/* Reports a file that is left out because of its size, as the event says. */
void feed_tell_left_out(
	struct run *run, const struct scan_entry *entry, enum s3once_event_type event);
/* Reports a file from the future. Once a run, since a wrong clock affects many files. */
void feed_tell_future(struct run *run, const struct scan_entry *entry);
/* At the end of the scan, reports patterns that match nothing. */
void feed_tell_unmatched(struct run *run);
/* At the end of the scan, reports directories without files. has_found has an element for each
 * source. */
void feed_tell_empty(struct run *run, const bool *has_found);
