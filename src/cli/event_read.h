/* An event of `push`, `run` or `watch` as json.c wrote it, read back. Pure. */
#pragma once
#include "base/text.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>

/* Zero it to start; one can be read after the other. */
struct event_read {
	struct s3once_event
		event; /* borrows from here; `counts` is set with PROGRESS and SUMMARY */
	struct s3once_counts counts;
	char time[21]; /* "2026-11-21T07:56:28Z" */
	bool dry_run;  /* of START and SUMMARY */
	int exit_code; /* of SUMMARY */
	/* As in the events, "" where they are not there. Those that are to be printed as they are
	 * have been escaped: bucket and marks, and text, code and request_id of the event. */
	struct text job, bucket, prefix, marks, manifest;
	struct text path, key, text, code, request_id;
};

/* Reads a line of n bytes. NULL, or why it is none of these events, a clause. */
const char *event_read(struct event_read *ret, const char *line, size_t n);
void event_read_clear(struct event_read *read);
