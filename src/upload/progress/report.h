/* Events and counters of a run. Everything that a run reports or counts goes through here.
 * Thread-safe. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include "s3once/push.h"
#include "upload/progress/bandwidth.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct report {
	s3once_callback *callback; /* may be NULL */
	void *callback_arg;
	bool skipped_too; /* SKIPPED, LINK, YOUNG and SPECIAL events are wanted */
	uint64_t start_ns;
	/* As the counts of these names, which others change by more or less. */
	_Atomic uint64_t sent, moved; /* bytes */
	_Atomic uint64_t claims_refused;
	_Atomic uint64_t under_way, kept; /* bytes of files under way that S3 has, and that it keeps
					     of unfinished ones */
	_Atomic uint64_t large_moved;     /* bytes of large bodies, sent or needing no sending */
	atomic_uint large_cuts;           /* large bodies that were cut */
	_Atomic int64_t oldest_unshipped_ns;
	atomic_uint in_flight;
	atomic_bool is_stuck; /* the workers stand still */
	atomic_bool scan_complete;
	struct {
		uv_mutex_t mutex; /* also serialises the callback */
		struct s3once_counts counts;
		struct problem error; /* see report_why() */
		bool error_is_fatal;
		struct text failures; /* the same */
		uint64_t n_left_out;  /* of them */
	} locked;
};

void report_init(struct report *report, const struct s3once_options *options);
void report_clear(struct report *report);

/* What a file event is about. Strings NULL for none; borrowed for the call. */
struct report_file {
	const char *path, *key;
	uint64_t bytes;
	const char *version_id, *etag, *checksum; /* of its object */
	bool is_waited_for; /* another uploader holds it: the event is not counted yet */
	const struct s3once_counts *counts; /* report_counts() tells these, of no file */
};
/* Counts and reports what became of a file, or what is known of it so far. problem may be NULL. */
void report_file(struct report *report, enum s3once_event_type type, const struct report_file *file,
	const struct problem *problem);
/* Something about the run: START, NOTE, WARNING, FATAL. */
void report_run(struct report *report, enum s3once_event_type type, const struct problem *problem);
/* PROGRESS or SUMMARY. */
void report_counts(struct report *report, enum s3once_event_type type);

/* Adds to a counter that no event carries. */
void report_found(struct report *report, uint64_t files, uint64_t bytes);
/* Notes the modification time (ns since 1970) of a file that is not in S3 when the run has finished
 * with it. Lock-free. */
void report_unshipped(struct report *report, int64_t mtime_ns);
/* The most requests that were allowed at once, and why it was not more. */
void report_level(struct report *report, unsigned concurrency, enum s3once_limited_by why);

/* *ret_error is the error that ended the run, or else the last error of a file. Only its text is
 * set, which includes the path; "" if there was none. *ret_failures, which has room for so many
 * bytes, gets a line for each failure, escaped, with the path, as many as there is room for, and a
 * last one that counts the others. */
#define REPORT_FAILURES_MAX 16000
void report_why(struct report *report, struct problem *ret_error, struct text *ret_failures);

struct s3once_counts report_get(struct report *report);

/* How much of a file that is under way has moved, or needed no sending. Thread-safe. */
struct share {
	struct report *report;
	struct bandwidth *bandwidth; /* NULL: there is no limit */
	struct bandwidth_user user;
	_Atomic uint64_t bytes;
};
/* Bytes that S3 has already. */
void share_has(struct share *share, uint64_t bytes);

/* One body being sent. `bytes`: moved in this attempt. share NULL: nobody counts. One thread. */
struct transfer {
	struct share *share;
	uint64_t whole_bytes, bytes;
	uint64_t content_bytes; /* of the file in it; other than whole_bytes if it is encoded */
	uint64_t share_bytes;   /* of those, what counts as moved */
	bool is_large;          /* a large body, by the queue's rule */
};
/* More has left. Is http_body.moved of a transfer. */
void transfer_moved(void *transfer, uint64_t bytes);
/* It is sent once more, or was in vain: what had moved does not count as progress any more. A body
 * of which only some had moved was cut. */
void transfer_undo(struct transfer *transfer);
