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

/* Whether threads of a run make progress. A heartbeat does not show that, since a thread of its own
 * sends it. If all workers hang, because of a file system that does not answer or a callback that
 * does not return, the files should go to another uploader. Lock-free. */
struct liveness {
	atomic_uint tasks;        /* tasks that have begun and not ended */
	_Atomic uint64_t seen_ns; /* clock_boot_ns() of the last sign of life */
};
/* Notes a sign of life, and adds `tasks` to the tasks under way. A thread calls it with 1 when it
 * begins a task, and with -1 when it has ended the task. In between it calls it with 0, after each
 * read and at each progress of a request. */
void liveness_sign(struct liveness *liveness, int tasks);

/* How files become bodies of requests. The main thread makes and frees this like struct run_files.
 * Members that several threads change have locks of their own. */
struct run_bodies {
	struct object_rules *rules;
	/* encoding for files that are not compressed yet; name "": none */
	struct encoding encoding;
	struct encoders encoders; /* the encoders of `encoding` */
	struct buffers buffers;
	struct bandwidth *bandwidth; /* NULL: there is no limit */
};
/* Whether, and why, the run has to end. Only run.c and push_set_up() set it. Others call
 * run_is_over() and its variants. The exit status follows from it. */
struct run_end {
	/* The clock_monotonic_ns() at which all that is under way has to end. 0: the run goes on.
	 * Once it is set, nothing new is begun. */
	_Atomic uint64_t grace_ends_ns;
	atomic_bool was_asked_to_stop, fenced, failed_setup;
	_Atomic(const char *) limit;  /* the sentence of the limit that was reached; NULL: none */
	_Atomic uint64_t begun_bytes; /* bytes of bodies begun: run_may_send_body() */
};

struct run {
	/* Set before the first other thread begins, and left alone until the last one has ended. */
	struct s3once_options options; /* defaults filled in; what it points to is the caller's */
	bool dry;
	/* machine_id(), for the row of the job. It is read first, since a run that lacks
	 * descriptors would seem to be that of another machine. */
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
	int piped_fd; /* the whole output of the pipe; -1 before. Only its worker uses it */
	/* Shared by all threads, each with a lock of its own, or without one. */
	struct queue *queue;
	struct report report;
	struct run_end end;
	struct refusals refusals;
	struct progress_clock progress; /* see run_is_over() */
	struct liveness liveness;
	struct liveness scanning; /* its only task is filling a chunk of files (feed.c) */
	/* The bucket was shown by a witness, so that marks that say done may be believed and
	 * written: see bucket_check.h. */
	atomic_bool has_witness;
	/* S3 has answered for the bucket: it exists, and S3 takes our credentials. No run succeeds
	 * before that. */
	atomic_bool bucket_answers;
	atomic_bool reported_sources; /* claim.c has reported that two sources replace each other */
	atomic_bool reported_never;   /* remove.c has reported that a file is never removed */
	atomic_bool reported_foreign; /* look.c has reported that objects of others are replaced */
	atomic_bool reported_hidden;  /* look.c has reported that S3 does not show objects */
	struct stored_seen {
		/* A bit for each ASCII character of keys under which objects were found. */
		_Atomic uint64_t characters[2];
		/* A bit for each setting that was looked at: [0] of objects sent whole, [1] of
		 * objects sent in parts. */
		atomic_uint settings[2];
		atomic_uint lacks; /* a bit for each setting that was reported as ignored */
	} stored; /* observations of a server other than AWS in this run: see file_done.c */
	struct {
		uv_mutex_t mutex;
		bool begun;               /* run_ensure_begun() has succeeded */
		bool has_warned_of_clock; /* at most one such warning is in a run */
		bool has_looked;          /* HeadBucket has answered for the bucket */
		struct problem no_answer; /* the reason why S3 did not answer */
		struct bucket_row bucket; /* its content at the last read or write */
		bool is_shown; /* an object has proved the bucket, so the row may be written */
		char last_key[KEY_BYTES_MAX + 1]; /* see bucket_note_object() */
		char last_etag[S3_ETAG_MAX + 1];
	} locked;
};

/* Whether everything has to end at once, also because there was no progress for give_up_after_ms:
 * each wait for a service calls this, and so counts that time. Progress is the end of a file's
 * turn, more parts or bytes of a file in S3 than ever before, and, before there are files, the
 * reply to a request. `run` is the struct run. */
bool run_is_over(void *run);
/* Whether nothing new may be begun. True also while uploads that are under way may still end. */
bool run_is_stopping(void *run);
/* Whether the scan has to end. With options.final, a limit of the run ends it only once the grace
 * is over, since only the scan finds the files that are left, which are reported by name. Each call
 * counts as a sign of life of the scan. */
bool run_ends_scan(void *run);
/* Whether the run was asked to stop or has reached a limit, and its grace is over. Unlike the
 * functions above, this does not ask the session, which has ended when the manifest is stored. */
bool run_grace_is_over(void *run);
/* As run_is_over() and run_is_stopping(), for waits of a worker that poll them, such as
 * call_limits.abandon. Each call counts as a sign of life of the worker. */
bool run_poll_is_over(void *run);
bool run_poll_is_stopping(void *run);
/* As run_poll_is_over(), to be polled while a file is read. Each call also notes that this host is
 * at work, so that the time of reading does not count as time without progress. */
bool run_poll_while_reading(void *run);
/* Whether tasks are under way and none has given a sign of life for give_up_after_ms, or for a
 * lease if that is longer. */
bool run_is_hung(const struct run *run, const struct liveness *liveness);
/* Whether run_is_hung() is true for the workers. For session_options.is_stuck. */
bool run_is_stuck(void *run);
/* The limits of any request of the run: it ends once run_is_over() is true. */
struct call_limits run_limits(struct run *run);
/* The limits of requests that make something visible. These also end when our lease has run out. As
 * long as such a request lasts, the end of the lease is checked again and again, so heartbeats give
 * a long transfer more time. */
struct call_limits run_visible_limits(struct run *run);

/* Whether the caller does not want files of this size. Sets *ret_event to OVERSIZED or UNDERSIZED.
 */
bool run_excludes_size(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event);

/* Whether a file that was marked done at this time (store time) is to be removed by now, by
 * options.removes and options.remove_after_s. */
bool run_removal_is_due(const struct run *run, int64_t done_at_s);
/* Notes the state and the session of its mark in the candidate. */
void candidate_note_mark(struct candidate *candidate, const struct mark *mark);
/* Whether the mark leaves nothing to do for the file. */
bool run_skips_by_mark(
	const struct run *run, const struct candidate *candidate, const struct mark *mark);

/* With options.final, reports a file that was found and is not finished when the run ends. */
void run_report_unfinished(struct run *run, const struct candidate *candidate);

/* Ends the whole run because of this problem, with exit status 3. It is reported once. */
void run_fail(struct run *run, const struct problem *problem);
/* Ends the run because a limit of the whole run is reached. `limit` is a sentence about
 * it that lives as long as the run, and is reported once. Nothing new is begun, and uploads that
 * are under way may finish within the grace. The exit status is 6. */
void run_reach_limit(struct run *run, const char *limit);
/* Whether a body may be sent, which is counted here as begun. False if max_transfer_bytes was
 * reached before this body; the run then ends by run_reach_limit(). To be called only if that
 * option is set. */
bool run_may_send_body(struct run *run, uint64_t bytes);
/* Ends the run because it lost the lease, with exit status 5. It is reported once. */
void run_fence(struct run *run, const char *why);
/* Calls run_fence() if the session is fenced. To be called often, by the main thread. run_is_over()
 * needs no such call. */
void run_check_lease(struct run *run);
/* Ends the run, by run_fail(), if there was no progress for too long. To be called as often as the
 * above. */
void run_check_progress(struct run *run);
/* Warns of the wait of a run that was asked to stop after a long time without progress. */
void run_warn_of_wait(struct run *run);
/* Does what s3once_push_stop() promises. After the first call nothing new is begun. What is under
 * way ends after the second call, or after the first one if run_reach_limit() was called before.
 * Async-signal-safe. */
void run_ask_to_stop(struct run *run);

/* Waits until enough of the lease is left to begin something new. Returns false if the run ends
 * before that. While it waits, nothing moves. */
bool run_wait_for_lease(struct run *run);
/* Whether run_wait_for_lease() would return true at once. */
bool run_has_lease(struct run *run);

/* Calls s3_look_for_bucket(). After ABSENT or SETUP, which come with a sentence, the run cannot go
 * on. Outcomes other than these and OK say nothing about the bucket. */
enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn,
	const struct call_limits *limits, struct problem *problem);
/* Looks for the bucket, unless S3 has answered for it in this run, and ends the run if there is
 * none. Called also at the end of the scan, since a run with nothing to send has sent no request
 * yet. Thread-safe. */
void run_ensure_bucket_exists(struct run *run);
/* Call it before a claim. The first call looks for the bucket and, except in a dry run, writes the
 * row of the session. Later calls do nothing. Returns false if the run ends. Thread-safe. */
bool run_ensure_begun(struct run *run, struct store_conn *marks);

/* Records in the row of the run's job (marks/job_row.h) how the run ended. `session` is the id of
 * the session that was begun, or NULL. Takes a few seconds at most.
 *
 * If the row cannot be written, that is only a warning, since no file depends on it. A run of some
 * folders only (options.folders) writes no row, since its end is not that of the job. */
void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit);
