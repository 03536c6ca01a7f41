/* One run of the uploader: what its threads share. */
#pragma once
#include "lease/process.h"
#include "marks/bucket_row.h"
#include "marks/session.h"
#include "s3/s3.h"
#include "scan/scan.h"
#include "store/state_folder.h"
#include "upload/batches_learner.h"
#include "upload/body/buffers.h"
#include "upload/body/encoders.h"
#include "upload/body/object_rules.h"
#include "upload/file/refusals.h"
#include "upload/progress/bandwidth.h"
#include "upload/progress/liveness.h"
#include "upload/progress/report.h"
#include "upload/queue/queue.h"
#include <stdatomic.h>
#include <uv.h>

struct run {
	struct s3once_options
		options; /* defaults filled in; what it points to is borrowed from the caller */
	struct filter *filter;
	struct family_rules *families;     /* of key_template, and of rotated files */
	struct log_rows *log_rows;         /* of logs that grow; NULL: none do */
	struct identity_cache *identities; /* of contents; NULL: all are read */
	struct key_template *key_template; /* NULL: keys are relative paths */
	struct object_rules *rules;
	struct encoding encoding; /* of what is not compressed yet; its name "": none */
	struct encoders encoders; /* for it */
	struct aws_settings *aws;
	struct http_shared *http;
	struct s3 *s3;
	struct store *store;
	struct batches_learner batches_learner; /* until the first claim */
	struct mark_space space;
	/* See bucket_check.h: marks that say done may be believed, and may be written. */
	atomic_bool done_is_believed, has_witness;
	struct own_files own_files;
	struct run_manifest *manifest; /* NULL: there is none */
	struct session *session;
	struct scan *scan;
	struct queue *queue;
	int move_to_fd; /* of options.move_to; -1: there is none */
	struct report report;
	char **sources_of_marks; /* "host:directory" of each source */
	atomic_int stop;         /* 0; 1: begin nothing new; 2: end what is under way */
	atomic_bool said_blind;  /* that objects may not be looked at, for look_elsewhere() */
	atomic_bool fenced, failed_setup, dry;
	atomic_bool was_asked_to_stop, has_reached_limit;
	_Atomic uint64_t begun_bytes; /* of bodies, once each: see run_may_send() */
	struct bandwidth *bandwidth;  /* NULL: there is no limit */
	struct stored_seen {
		/* Of keys under which objects were found, and the settings of objects sent whole
		 * and in parts that were looked at. */
		_Atomic uint64_t characters[2];
		atomic_uint settings[2];
		atomic_uint lacks; /* settings that were reported */
	} stored; /* what a server other than AWS has done in this run: see stored_look.h */
	struct buffers buffers;
	struct refusals refusals;
	struct liveness liveness;
	struct liveness scanning; /* its one task is the scan's look for the next file */
	struct {
		uv_mutex_t mutex;
		bool begun;                        /* bucket looked at, session row written */
		struct bucket_row bucket;          /* as it was read or written last */
		bool is_shown;                     /* by an object: the row may be written */
		char last_key[BUCKET_KEY_MAX + 1]; /* see bucket_saw_object() */
		char last_etag[S3_ETAG_MAX + 1];
	} locked;
};

/* For call_limits.abandon; arg is the run. Whether everything is to end at once. The question
 * counts as a sign of life of the worker. */
bool run_is_over(void *run);
/* Likewise; true also while what is under way may still end. */
bool run_is_stopping(void *run);
/* For session_options.is_stuck: for give_up_after_ms, or a lease if that is longer, no worker has
 * moved. */
bool run_is_stuck(void *run);
/* The same of the scan: it has looked for the next file, and entered no folder, for so long. */
bool run_scan_is_stuck(const struct run *run);
/* The limits of any request of the run. It ends when run_is_over(). */
struct call_limits run_limits(struct run *run);
/* The limits of requests that make something visible. They also end when our lease has run out. The
 * lease is asked for at every progress, so that a heartbeat in between gives a long transfer more
 * time. */
struct call_limits run_visible_limits(struct run *run);

/* For session_options.files: how many are under way. */
unsigned run_files(void *run);

/* Whether the caller does not want files of this size. Sets *ret_event to OVERSIZED or UNDERSIZED.
 */
bool run_leaves_out(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event);

/* Whether a file that has been done since then (store time) is to be removed by now. */
bool run_removes_by_now(const struct run *run, int64_t done_at_s);
/* Whether nothing is to be done about a file with this mark. */
bool run_skips(const struct run *run, const struct known_mark *mark, const struct asked *asked);

/* Ends the whole run because of this problem, with exit status 3. It is reported once. */
void run_fail(struct run *run, const struct problem *problem);
/* A limit of the whole run is reached, which is reported once. Nothing new is begun, and uploads
 * that are under way may finish within the grace. The exit status is 6. */
void run_reach_limit(struct run *run, const struct problem *said);
/* Whether one more body may be sent by max_transfer_bytes. False: the limit is reached. */
bool run_may_send(struct run *run, uint64_t bytes);
/* Ends the run because it lost the lease, with exit status 5. It is reported once. */
void run_fence(struct run *run, const char *why);

/* Waits until enough of the lease is left to begin something new. False: the run is over, as it is
 * when a lease that ran out is not renewed for give_up_after_ms. */
bool run_may_begin(struct run *run);

/* As s3_look_for_bucket(). After ABSENT or SETUP, which come with a sentence, the run cannot go on.
 * Any other outcome than OK shows nothing. */
enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn, struct problem *problem);
/* Once a run, before its first claim: the bucket is there, the session's row is written.
 * Thread-safe. False: the run ends. */
bool run_begin(struct run *run, struct store_conn *marks);
