/* One run of the uploader, shared by its threads. */
#pragma once
#include "marks/bucket_row.h"
#include "marks/session.h"
#include "upload/body/encoder.h"
#include "upload/body/object_rules.h"
#include "upload/file/refusals.h"
#include "upload/progress/report.h"
#include "upload/queue/queue.h"
#include "upload/run_files.h"

#define CONCURRENCY_MAX 1024

struct run;

/* Shows whether the threads of a run are alive. A heartbeat does not, since a separate thread sends
 * it. If all workers hang, because of a file system that does not answer or a callback that does
 * not return, another uploader should get the files. Lock-free. */
struct liveness {
	atomic_uint tasks;        /* tasks that have begun and not ended */
	_Atomic uint64_t seen_ns; /* clock_boot_ns() of the last sign of life */
};
/* A thread calls these when it begins and ends a task, and liveness_sign() during the task, after
 * each read and each progress of a request. */
void liveness_begin_task(struct liveness *liveness);
void liveness_sign(struct liveness *liveness);
void liveness_end_task(struct liveness *liveness);

/* The means of turning files into bodies of requests. Only the main thread makes and frees them, as
 * with struct run_files. Members that several threads change have their own locks. */
struct run_bodies {
	struct object_rules *rules;
	/* encoding for files that are not compressed yet; name "": none */
	struct encoding encoding;
	struct encoders encoders; /* the encoders of `encoding` */
	struct buffers buffers;
	struct bandwidth *bandwidth; /* NULL: there is no limit */
};
/* The reason for which the run has to end, if there is one, and its time. Only run.c and
 * push_set_up() set it; others call run_is_over() and its variants. The exit status follows from
 * it. */
struct run_end {
	/* The clock_monotonic_ns() at which everything under way has to end. Once it is set,
	 * nothing new is begun. 0: the run is not ending. */
	_Atomic uint64_t grace_ends_ns;
	atomic_bool was_asked_to_stop, fenced, failed_setup;
	_Atomic(const char *) limit;  /* sentence about the limit that was reached; NULL: none */
	_Atomic uint64_t begun_bytes; /* bytes of bodies begun: run_may_send_body() */
};

struct run {
	/* Set before the first other thread begins, and not changed until the last one has
	 * ended. */
	struct s3once_options options; /* with the defaults filled in; its pointers are borrowed
					  from the caller */
	bool dry;
	/* machine_id(), for the row of the job. It is read first, since without free descriptors it
	 * would look like another machine. */
	char machine[MACHINE_CHARS + 1];
	struct run_files files;
	struct run_bodies bodies;
	struct aws_settings *aws;
	struct http_shared *http;
	struct s3 *s3;
	struct store *store;
	struct mark_space space;
	struct session *session;
	struct run_manifest *manifest; /* NULL: there is none */
	int piped_fd; /* the whole output of the pipe, for its worker only; -1: not there yet */
	/* Shared by all threads, each with a lock of its own, or without one. */
	struct queue *queue;
	struct report report;
	struct run_end end;
	struct refusals refusals;
	struct progress_clock progress; /* see run_is_over() */
	struct liveness liveness;
	struct liveness scanning; /* its only task is filling a chunk of files (feed.c) */
	/* S3 has shown a witness, so done marks may be trusted and written: see bucket_check.h. */
	atomic_bool has_witness;
	/* S3 has answered for the bucket: it exists, and our credentials are valid. A run cannot
	 * succeed without this. */
	atomic_bool bucket_answers;
	atomic_bool reported_sources; /* claim.c has reported that two sources replace each other */
	atomic_bool reported_never;   /* remove.c has reported that a file is never removed */
	atomic_bool reported_foreign; /* look.c has reported that objects of others are replaced */
	atomic_bool reported_hidden;  /* look.c has reported that S3 does not show objects */
	struct stored_seen {
		/* A bit for each ASCII character that occurs in the key of an object that was
		 * found. */
		_Atomic uint64_t characters[2];
		/* A bit for each setting that was checked: [0] on objects sent whole, [1] on
		 * objects sent in parts. */
		atomic_uint settings[2];
		atomic_uint lacks; /* a bit for each setting that was reported as ignored */
	} stored; /* observations of a server other than AWS in this run: see file_done.c */
	struct {
		uv_mutex_t mutex;
		bool begun;               /* run_ensure_begun() has succeeded */
		bool has_warned_of_clock; /* the warning is printed once in a run */
		bool head_bucket_answered;
		struct problem no_answer; /* the reason why S3 did not answer */
		struct bucket_row bucket; /* its content at the last read or write */
		bool is_proven; /* it is the bucket of the row, so the row may be written */
		/* The object that was proven last: by this run, or as the witness of the row. */
		char proven_key[KEY_BYTES_MAX + 1];
		char proven_etag[S3_ETAG_MAX + 1];
	} locked;
};

/* Whether everything has to end at once. One reason is a lack of progress for give_up_after_ms;
 * each wait for a service calls this function, which measures that time. Progress is the end of a
 * file's turn, more parts or bytes of a file in S3 than ever before, or, as long as there are no
 * files, the reply to a request. `run` is the struct run. */
bool run_is_over(void *run);
/* Whether nothing new may be begun. Also true while uploads under way may still finish. */
bool run_is_stopping(void *run);
/* Whether the scan has to end. With options.final, it continues after a limit until the grace is
 * over, to report the remaining files by name. Each call counts as a sign of life of the scan. */
bool run_ends_scan(void *run);
/* Whether the run was asked to stop or has reached a limit, and its grace is over. Unlike the
 * functions above, this does not check the session, which has already ended when the manifest is
 * stored. */
bool run_grace_is_over(void *run);
/* As run_is_over() and run_is_stopping(), for polling by a worker that waits, such as
 * call_limits.abandon. Each call counts as a sign of life of the worker. */
bool run_poll_is_over(void *run);
bool run_poll_is_stopping(void *run);
/* As run_poll_is_over(), for polling while a file is read. Each call also notes that this host is
 * working, so that the time for reading does not count as a lack of progress. */
bool run_poll_while_reading(void *run);
/* Whether there are tasks under way, but no sign of life for give_up_after_ms, or for a lease if
 * that is longer. */
bool run_is_hung(const struct run *run, const struct liveness *liveness);
/* Whether run_is_hung() is true for the workers. For session_options.is_stuck. */
bool run_is_stuck(void *run);
/* The limits of any request of the run: it ends once run_is_over() is true. */
struct call_limits run_limits(struct run *run);
/* The limits of requests that make something visible. These also end when our lease has expired.
 * The end of the lease is checked repeatedly during a request, so heartbeats give a long transfer
 * more time. */
struct call_limits run_visible_limits(struct run *run);

/* Whether min_bytes or max_bytes excludes files of this size. Sets *ret_event to OVERSIZED or
 * UNDERSIZED.
 */
bool run_excludes_size(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event);

/* Whether a file that was marked done at this time (store time) is due for removal, by
 * options.removes and options.remove_after_s. */
bool run_removal_is_due(const struct run *run, int64_t done_at_s);
/* Copies the state and the session of the mark into the candidate. */
void candidate_note_mark(struct candidate *candidate, const struct mark *mark);
/* Whether a file with this mark needs no work. */
bool run_skips_by_mark(
	const struct run *run, const struct candidate *candidate, const struct mark *mark);

/* With options.final, reports a found file that is unfinished when the run ends. */
void run_report_unfinished(struct run *run, const struct candidate *candidate);

/* Ends the run because of this problem, with exit status 3. Only the first problem is reported. */
void run_fail(struct run *run, const struct problem *problem);
/* Ends the run because a limit of the whole run is reached. `limit` is a sentence about
 * it that lives as long as the run, and is reported once. Nothing new is begun, and uploads that
 * are under way may finish within the grace. The exit status is 6. */
void run_reach_limit(struct run *run, const char *limit);
/* Whether a body may be sent. If so, counts it as begun. Otherwise max_transfer_bytes was reached
 * before, and the run ends by run_reach_limit(). Call it only if that option is set. */
bool run_may_send_body(struct run *run, uint64_t bytes);
/* Ends the run because it lost the lease, with exit status 5. It is reported once. */
void run_fence(struct run *run, const char *why);
/* Calls run_fence() if the session is fenced. The main thread calls it often. run_is_over() does
 * not depend on it. */
void run_check_lease(struct run *run);
/* Ends the run by run_fail() if there was no progress for too long. Call it as often. */
void run_check_progress(struct run *run);
/* If a run without progress was asked to stop, prints a warning about its wait. */
void run_warn_of_wait(struct run *run);
/* Implements s3once_push_stop(). After the first call, nothing new is begun. The second call also
 * ends everything under way, and so does the first one after run_reach_limit().
 * Async-signal-safe. */
void run_ask_to_stop(struct run *run);

/* Waits until enough of the lease is left to begin something new. Returns false if the run ends
 * before that. */
bool run_wait_for_lease(struct run *run);
/* Whether run_wait_for_lease() would return true at once. */
bool run_has_lease(struct run *run);

/* Calls s3_look_for_bucket(). After ABSENT or SETUP, which have a sentence, the run cannot
 * continue. OK means that the bucket exists. Any other outcome proves nothing. */
enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn,
	const struct call_limits *limits, struct problem *problem);
/* Checks that the bucket exists, unless S3 has answered for it in this run. If it does not, ends
 * the run. It is also called at the end of the scan, since a run without new files has not sent a
 * request yet. Thread-safe. */
void run_ensure_bucket_exists(struct run *run);
/* Call it before a claim. The first call looks for the bucket and, except in a dry run, writes the
 * row of the session. Later calls do nothing. Returns false if the run ends. Thread-safe. */
bool run_ensure_begun(struct run *run, struct store_conn *marks);

/* Records the result of the run in the row of its job (marks/job_row.h). `session` is the id of its
 * session, or NULL. Takes a few seconds at most.
 *
 * A failure is only a warning, since no file depends on the row. A run over some folders
 * (options.folders) writes no row, since its result is not that of the job. */
void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit);
