/* One run of the uploader: what its threads share. */
#pragma once
#include "marks/bucket_row.h"
#include "marks/session.h"
#include "marks/setup.h"
#include "scan/scan.h"
#include "store/state_folder.h"
#include "upload/body/encoder.h"
#include "upload/body/object_rules.h"
#include "upload/progress/report.h"
#include "upload/queue/queue.h"

#define CONCURRENCY_MAX 1024

/* Copies the options with every default filled in. 0, or -EINVAL with a sentence about a limit or a
 * contradiction. Pure. */
int run_options_complete(const struct s3once_options *given, struct s3once_options *ret,
	struct problem *ret_problem);
/* Whether logs are known by how they were cut before. */
bool run_options_cut_logs(const struct s3once_options *o);

struct run;

/* What a run looks at on this host: the scan of its sources and all that this needs, and the folder
 * that files are moved to. The main thread makes it before all others, and frees it after
 * them; the thread of the scan alone uses `scan`, but to open files. */
struct run_files {
	struct scan *scan;
	struct filter *filter;
	struct family_rules *families;     /* of key_template, and of rotated files */
	struct log_rows *log_rows;         /* of logs that grow; NULL: none do */
	struct identity_cache *identities; /* of contents; NULL: all are read */
	struct key_template *key_template; /* NULL: keys are relative paths */
	char **sources_of_marks;           /* "host:directory" of each source; NULL behind them */
	struct own_files own_files;
	int move_to_fd; /* of options.move_to; -1: there is none */
};

/* Opens the scan. run->files has the filter, and nothing else yet; with an error it is to be
 * closed, too. 0, -EINVAL with a sentence for options that contradict each other, or another -errno
 * with one. */
int run_files_open(struct run *run, struct problem *ret_problem);
/* Opens the folder of options.move_to, if there is one. False with a sentence. */
bool run_files_open_move_to(
	struct run_files *files, const struct s3once_options *o, struct problem *ret_problem);
void run_files_close(struct run_files *files);

/* Files that S3 refused before it had taken anything in this run: whether each is refused for what
 * it is, or all for how the run is set up, shows only by what becomes of the others. They are kept
 * here until something was stored (then each fails by itself), or until several different files
 * were refused and nothing is left that could still be stored (then the run ends). Thread-safe. */
struct worker;
struct refused; /* a file and what S3 said; owned by the list */

struct refusals {
	struct {
		uv_mutex_t mutex;
		struct refused *refused; /* since the last settling */
	} locked;
	atomic_uint n_refused;  /* of these, for a look without the mutex */
	atomic_bool has_stored; /* S3 took an object or a part, or let an upload begin */
};
/* Frees the files that are left. After the last worker. */
void refusals_clear(struct refusals *refusals);
/* After each task of a worker, which counts in liveness.tasks no more: fails the files that are
 * kept, once something was stored. A worker that has put one of several aside waits until the other
 * tasks have ended, or one of them has stored something; if none has, the run ends. `at_end`: the
 * worker has no more tasks, and the last such one decides. */
void refusals_settle(struct worker *worker, bool at_end);

/* Whether the workers of a run make progress. A heartbeat shows only that its own thread runs. If
 * all workers hang, because of a file system that does not answer or a callback that does not
 * return, the files should go to another uploader. Lock-free. */
struct liveness {
	atomic_uint tasks;        /* begun and not ended */
	_Atomic uint64_t seen_ns; /* clock_boot_ns() of the last sign of life */
};
/* A worker is at work: between two reads, at each progress of a request, and where it begins a task
 * (`tasks` is 1) or has ended it (-1). */
void liveness_sign(struct liveness *liveness, int tasks);

/* How files become bodies. Made likewise; each has a lock of its own where it needs one. */
struct run_bodies {
	struct object_rules *rules;
	struct encoding encoding; /* of what is not compressed yet; its name "": none */
	struct encoders encoders; /* for it */
	struct buffers buffers;
	struct bandwidth *bandwidth; /* NULL: there is no limit */
};
/* Whether, and why, the run is to end. Set by run.c; others ask run_is_over() and the like, and the
 * exit status is made of it. */
struct run_end {
	/* By clock_monotonic_ns(). 0: go on; before it nothing new is begun, and from then on what
	 * is under way ends. */
	_Atomic uint64_t grace_ends_ns;
	atomic_bool was_asked_to_stop, has_reached_limit, fenced, failed_setup;
	_Atomic uint64_t begun_bytes; /* of bodies, once each: see run_count_body() */
};

struct run {
	/* Set before the first other thread begins, and left alone until the last one has ended. */
	struct s3once_options options; /* defaults filled in; what it points to is the caller's */
	bool dry;
	struct run_files files;
	struct run_bodies bodies;
	struct aws_settings *aws;
	struct http_shared *http;
	struct s3 *s3;
	struct store *store;
	struct mark_space space;
	struct session *session;
	struct run_manifest *manifest; /* NULL: there is none */
	int piped_fd; /* what came through the pipe, whole; -1 before. Of the worker that has it */
	/* Shared by all threads, each with a lock of its own, or without one. */
	struct queue *queue;
	struct report report;
	struct run_end end;
	struct refusals refusals;
	struct liveness liveness;
	struct liveness scanning; /* its one task is the scan's look for the next file */
	/* See bucket_check.h: marks that say done may be believed, and may be written. */
	atomic_bool has_witness;
	atomic_bool said_blind; /* that objects may not be looked at, for look_elsewhere() */
	struct stored_seen {
		/* Of keys under which objects were found, and the settings of objects sent whole
		 * and in parts that were looked at. */
		_Atomic uint64_t characters[2];
		atomic_uint settings[2];
		atomic_uint lacks; /* settings that were reported */
	} stored; /* what a server other than AWS has done in this run: see file_done.c */
	struct {
		uv_mutex_t mutex;
		bool begun;                       /* bucket looked at, session row written */
		struct bucket_row bucket;         /* as it was read or written last */
		bool is_shown;                    /* by an object: the row may be written */
		char last_key[KEY_BYTES_MAX + 1]; /* see bucket_saw_object() */
		char last_etag[S3_ETAG_MAX + 1];
	} locked;
};

/* Whether everything is to end at once. Asks and does nothing; arg is the run. */
bool run_is_over(void *run);
/* Likewise; true also while what is under way may still end. */
bool run_is_stopping(void *run);
/* Whether no more files are to be found. With options.final what is left is told by name, so that
 * the scan goes on where a limit is reached, as long as what is under way. The question counts as a
 * sign of life of the scan. */
bool run_ends_scan(void *run);
/* The run was asked to stop, or reached a limit, and its grace is over. It is the only end that
 * counts for what is stored when the session has ended. */
bool run_grace_is_over(void *run);
/* The same for whatever makes a worker wait, such as call_limits.abandon: the question counts as a
 * sign of life of the worker. */
bool run_ask_is_over(void *run);
bool run_ask_is_stopping(void *run);
/* Tasks are under way, and none of them has moved for as long as anything is tried again, or for a
 * lease if that is longer. */
bool run_is_lost(const struct run *run, const struct liveness *liveness);
/* For session_options.is_stuck: so it is of the workers. */
bool run_is_stuck(void *run);
/* The limits of any request of the run. It ends when run_is_over(). */
struct call_limits run_limits(struct run *run);
/* The limits of requests that make something visible. They also end when our lease has run out. The
 * lease is asked for at every progress, so that a heartbeat in between gives a long transfer more
 * time. */
struct call_limits run_visible_limits(struct run *run);

/* Whether the caller does not want files of this size. Sets *ret_event to OVERSIZED or UNDERSIZED.
 */
bool run_leaves_out(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event);

/* Whether a file that has been done since then (store time) is to be removed by now. */
bool run_removes_by_now(const struct run *run, int64_t done_at_s);
/* Keeps in the candidate what its mark is by now, and says whether nothing is to be done about it.
 */
bool run_skips(const struct run *run, struct candidate *candidate, const struct mark *mark);

/* With options.final, tells of a file that was found and is not finished when the run ends. */
void run_tell_left(struct run *run, const struct candidate *candidate);

/* Ends the whole run because of this problem, with exit status 3. It is reported once. */
void run_fail(struct run *run, const struct problem *problem);
/* A limit of the whole run is reached, which is reported once. Nothing new is begun, and uploads
 * that are under way may finish within the grace. The exit status is 6. */
void run_reach_limit(struct run *run, const struct problem *said);
/* Counts a body that is about to be sent, where there are max_transfer_bytes. False: they were
 * reached before it, it is not to be sent, and the run ends as of run_reach_limit(). */
bool run_count_body(struct run *run, uint64_t bytes);
/* Ends the run because it lost the lease, with exit status 5. It is reported once. */
void run_fence(struct run *run, const char *why);
/* The same if the session says so. To be called often; run_is_over() knows it at once. Main thread.
 */
void run_look_at_lease(struct run *run);
/* s3once_push_stop(): nothing new is begun; from the second time on, what is under way ends. Async-
 * signal-safe. */
void run_ask_to_stop(struct run *run);

/* Waits until enough of the lease is left to begin something new. False: the run is over, as it is
 * when a lease that ran out is not renewed for give_up_after_ms. */
bool run_may_begin(struct run *run);

/* As s3_look_for_bucket(). After ABSENT or SETUP, which come with a sentence, the run cannot go on.
 * Any other outcome than OK shows nothing. */
enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn, struct problem *problem);
/* Once a run, before its first claim: the bucket is there, the session's row is written.
 * Thread-safe. False: the run ends. */
bool run_begin(struct run *run, struct store_conn *marks);

/* What a run says of itself in the row of its job (marks/job_row.h). A row that cannot be written
 * is a warning: no file depends on it. A run that looks only at some folders says nothing, since
 * how it ends is not how the job is. It takes a few seconds at most. This one records how the run
 * ended, after its session has ended; session is the one that was begun, or NULL. */
void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit);

/* The thread of the scan. It puts files into the queue in key order, together with their marks.
 * With --final, each chunk of them goes in the order of candidate_rank() (queue.h). */

/* Runs to the end of the scan, which report.scan_complete says then, or until the queue is closed.
 * After that the queue is complete. */
void feed_run(struct run *run);

/* What the queue has of a file that the scan found. NULL: out of memory; free() it. */
struct candidate *feed_candidate(const struct scan_entry *entry);
/* Frees one that the run has not begun, and notes that it is not in S3. */
void feed_leave(struct run *run, struct candidate *file);

/* The manifest of a run (--manifest): a line for each file that is in S3, and at the end of the run
 * one object of them. */

/* To be called once the services and the session are open. Returns true also without --manifest and
 * in a dry run, or false with a sentence. */
bool run_manifest_open(struct run *run, struct problem *ret_problem);
void run_manifest_free(struct run *run); /* frees run->manifest */

/* A file that is in S3. Borrowed. */
struct in_s3 {
	const struct candidate *file;
	const struct version *version; /* what its mark says, or will say; NULL: it was not kept */
	const struct sums *sums;       /* more of what its object holds; NULL: nothing is known */
	enum s3once_event_type event;  /* UPLOADED, ADOPTED, REFRESHED or SKIPPED */
};
/* Reports a file of so many bytes under the key that its object has, which may have another suffix
 * than this run would give it, and adds its line if there is a manifest. Thread-safe. */
void run_tell_in_s3(struct run *run, const struct in_s3 *file, uint64_t bytes);

/* To be called after the last worker has ended. Stores the object and reports it. Returns false if
 * that failed, which was reported. A dry run reports where the object would be. */
bool run_manifest_put(struct run *run);
