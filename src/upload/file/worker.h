/* A worker takes tasks from the queue and brings each file from its claim to its mark, blocking, on
 * connections of its own. The steps of docs/protocol.md ("One file") are one function each, and
 * worker.c calls the one that the state of the file asks for. */
#pragma once
#include "upload/file/file.h"
#include "upload/run.h"

/* What the steps may touch: connections and a buffer of the worker's own, and of the run what
 * stands here. The run itself is only handed to the functions of run.h and bucket_check.h, which
 * end it, ask whether it is over, or give limits. */
struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader; /* its buffer has a small file's whole body, too; owned */
	bool is_warm;         /* it has had a task, so that its connections are there */
	bool has_begun;       /* it has seen that the run has begun: run_begin() */
	uint64_t read_ns;     /* for how long the task has opened and read its file, so far */
	/* The run's, borrowed. */
	const struct s3once_options *options;
	bool is_dry;
	struct call_limits limits;         /* of any request: run_limits() */
	struct call_limits visible_limits; /* run_visible_limits() */
	struct report *report;
	struct queue *queue;
	struct refusals *refusals;
	struct stored_seen *first_looks;
	struct s3 *server;
	struct session *session;
	const struct mark_space *space;
	const struct run_files *files; /* it opens files by these */
	struct run_bodies *bodies;     /* and makes bodies of them by these */
};

/* Makes a worker with connections of its own. Returns 0 or -errno. */
int worker_new(struct run *run, struct worker **ret);
/* The body of a worker's thread. It returns when the queue has no more tasks for this worker. */
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);

/* Steps 2 and 3, of UNCLAIMED: judges the mark, and claims it or takes it over. Returns NEXT if it
 * is claimed. */
enum step claim_file(struct worker *worker, struct file *file);

/* Step 4, of CLAIMED, for a file that is known by its content: asks whether that is stored under
 * the same key with another suffix of compression. Such an object is adopted. NEXT if there is
 * none. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* Step 4, of UNSEEN: asks what S3 holds under the key. Returns NEXT if the file can be sent, since
 * S3 holds nothing, or exactly the version to be replaced. Content that is the file's own is
 * adopted. Returns AGAIN if what was sent is damaged, or was an earlier version. */
enum step look_at_object(struct worker *worker, struct file *file);
/* The same without reading the file. Returns AGAIN if S3 holds anything else than what is to be
 * replaced, so that look_at_object() comes first. */
enum step look_once_more(struct worker *worker, struct file *file);
/* As look_at_object(), before much is sent and only to save that. Returns NEXT also if we may not
 * look, but the server is known to refuse what we must not replace. */
enum step look_ahead(struct worker *worker, struct file *file);
/* As look_at_object(), after this condition was refused. If S3 holds nothing in the way now, it
 * returns AGAIN and not NEXT. */
enum step look_after_refusal(
	struct worker *worker, struct file *file, const struct s3_condition *condition);
/* Step 6 if the reply did not prove the upload: a HEAD shows the object, which proves it, or is
 * judged as in step 4. Returns SETTLED, or why not. */
enum step prove_by_head(struct worker *worker, struct file *file);

/* Step 5, of CLEAR: sends the file by its plan. A small one is one PutObject, from the check of the
 * file to the done mark. A large one goes the way of multipart.h: PARTS once its parts are in the
 * queue. */
enum step send_file(struct worker *worker, struct file *file);

/* With options.removes: removes or moves a file that is in S3, as they say, if it is due, proven
 * once more and kept by no rule. Reports what became of it. */
void remove_file(struct worker *worker, struct file *file);
