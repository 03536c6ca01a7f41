/* Events and counters of a run. Everything that a run reports or counts goes through here.
 * Thread-safe. */
#pragma once
#include "aws/progress_clock.h"
#include "base/problem.h"
#include "base/text.h"
#include "s3once/push.h"
#include "upload/progress/bandwidth.h"
#include "upload/progress/estimate.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct file_progress;

struct report {
	/* gets progress when more bytes have moved than ever before */
	struct progress_clock *progress;
	s3once_callback *callback; /* may be NULL */
	void *callback_arg;
	bool reports_skipped; /* also report files that need no upload: see kinds[] in report.c */
	bool is_piped;        /* the one file comes through a pipe */
	uint64_t start_ns;
	/* Many threads change the members from here to `locked` without the mutex. In struct
	 * s3once_counts they have the same names, or bytes_ before these. Only max_moved,
	 * large_moved and large_cuts are not there: the level of large bodies follows the last two.
	 */
	_Atomic uint64_t sent, moved; /* bytes */
	_Atomic uint64_t max_moved;   /* the most that `moved` ever was */
	_Atomic uint64_t claims_refused;
	_Atomic uint64_t under_way, kept, resumed; /* bytes */
	_Atomic uint64_t large_moved;   /* bytes of large bodies, sent or needing no sending */
	atomic_uint large_cuts;         /* large bodies that were cut */
	_Atomic uint64_t large_content; /* counts.large.bytes_moved */
	_Atomic int64_t oldest_unshipped_ns;
	atomic_uint in_flight;
	atomic_bool is_stuck; /* the workers or the scan hang */
	atomic_bool scan_complete;
	_Atomic int64_t repeats_s;
	_Atomic uint64_t repeats_age_s;
	struct {
		uv_mutex_t mutex; /* also serialises the callback */
		struct s3once_counts counts;
		struct estimate estimate;
		struct file_progress *large; /* the large files under way */
		struct s3once_waiting waiting[S3ONCE_WAITS];
		char *waiting_paths[S3ONCE_WAITS]; /* owned; NULL for "" */
		struct problem error;              /* see report_get_errors() */
		bool error_is_fatal;
		bool has_waited;      /* for a file that another uploader holds */
		struct text failures; /* one line for each failure: see report_get_errors() */
		uint64_t n_left_out;  /* failures that have no line */
	} locked;
};

void report_init(struct report *report, const struct s3once_options *options);
void report_clear(struct report *report);

/* The subject of a file event. Strings may be NULL, and are borrowed for the call. */
struct report_file {
	const char *path, *key;
	uint64_t bytes;
	const char *version_id, *etag, *checksum; /* those of its object */
	bool is_waited_for; /* another uploader holds it: the event is not counted yet */
	/* Only report_counts() sets these. */
	const struct s3once_counts *counts;
	uint64_t bytes_done;
	enum s3once_wait wait; /* for WAITING, with the modification time in ns since 1970 */
	int64_t mtime_ns;
};
/* Counts and reports an event of a file. problem may be NULL. */
void report_file(struct report *report, enum s3once_event_type type, const struct report_file *file,
	const struct problem *problem);
/* Notes the time at which an earlier run has uploaded the input of this run's pipe, by the clock
 * that now_s is of. */
void report_note_repeat(struct report *report, int64_t uploaded_s, int64_t now_s);
/* Reports an event about the run: START, NOTE, WARNING or FATAL. */
void report_run(struct report *report, enum s3once_event_type type, const struct problem *problem);
/* Reports PROGRESS or SUMMARY, with all counts. PROGRESS names the largest file under way. */
void report_counts(struct report *report, enum s3once_event_type type);

/* Counts files that were found, and their bytes. No event does that. */
void report_count_found(struct report *report, uint64_t files, uint64_t bytes);
/* Counts a file that was due for removal and could not be proven to be in S3. Its NOT_REMOVED is
 * reported by report_file(). */
void report_count_unproven(struct report *report);
/* Notes the modification time (ns since 1970) of a file that is not in S3 when the run has finished
 * with it. Lock-free. */
void report_note_unshipped(struct report *report, int64_t mtime_ns);
/* Notes the most requests allowed at once, and the limit of that number. */
void report_set_level(struct report *report, unsigned concurrency, enum s3once_limited_by why);

/* Returns the reasons for an exit status other than 0.
 *
 * *ret_error is the error that ended the run, or else the last error of a file. Only its text is
 * set, which includes the path; "" if there was no error. *ret_failures, which has room for
 * REPORT_FAILURES_MAX bytes, gets a line for each failure, escaped, with the path. If there is no
 * room for all, a last line counts the others. */
#define REPORT_FAILURES_MAX 16000
void report_get_errors(struct report *report, struct problem *ret_error, struct text *ret_failures);

/* Returns the counts so far, with the rate and the estimate computed from them. */
struct s3once_counts report_get_counts(struct report *report);
/* The files that wait for this reason. Valid until report_clear(). Call it once the run has ended.
 */
const struct s3once_waiting *report_waiting(const struct report *report, enum s3once_wait why);

/* The part of a file under way that was sent, or needed no sending. Thread-safe. */
struct file_progress {
	struct report *report;
	/* The path of a file above S3ONCE_SMALL_BYTES_MAX; NULL for any other file. */
	char *large_path;
	uint64_t size;                      /* size of the file, as it was found */
	struct file_progress *next, **back; /* in report.locked.large, whose mutex guards both */
	struct bandwidth *bandwidth;        /* NULL: there is no limit */
	struct bandwidth_user user;
	_Atomic uint64_t bytes;
};
/* The path is copied. Without memory for that, a large file counts as a small one. */
void file_progress_init(
	struct file_progress *progress, struct report *report, const char *path, uint64_t size);
void file_progress_clear(struct file_progress *progress);
/* Adds bytes that S3 has already, which need no sending. */
void file_progress_add_stored(struct file_progress *progress, uint64_t bytes);

/* One body that is being sent, by one thread. All members except body_bytes and content_bytes are
 * about the present attempt. If `progress` is NULL, nothing is counted. */
struct transfer {
	struct file_progress *progress;
	uint64_t body_bytes;    /* the body's length */
	uint64_t sent_bytes;    /* bytes of the body that were sent */
	uint64_t content_bytes; /* bytes of the file in the body; differs from body_bytes if it is
				   compressed */
	uint64_t counted_bytes; /* the part of content_bytes that counts as moved */
	bool is_large;          /* a large body: above S3ONCE_SMALL_BYTES_MAX */
};
/* Counts bytes that have left. This is http_body.moved of a transfer. */
void transfer_moved(void *transfer, uint64_t bytes);
/* Takes back the progress of a body that has to be sent again, or whose sending was in vain. A
 * large body of which only some bytes had left counts as cut. */
void transfer_undo(struct transfer *transfer);
