/* The file that is under way: its life, and what its steps share about it. file.c has
 * what is derived from it and how its turn ends, refusals.c which error leads where, and
 * file_open.c reads it. All functions may block, in the thread of the worker. */
#pragma once
#include "marks/judge.h"
#include "upload/body/multipart_plan.h"
#include "upload/run.h"

#define FILE_RESTARTS_MAX 8 /* of one file in one run */
/* How often it is sent again because S3 holds other bytes than it was sent. */
#define FILE_DAMAGES_MAX 3

/* Where a file is in its turn. Only this says so, and each state has one step (worker.c):
 *
 *                claim_file()          look_elsewhere()
 *   UNCLAIMED ---------------> CLAIMED ----------------> CLEAR --- send_file() ---> PROVEN
 *      |  ^                       |  \                    |  ^
 *      |  | an earlier version    |   \ taken over  doubt |  | nothing is in the way
 *      |  | is marked done        |    \                  v  |
 *      |  +-----------------------|-----+---------------> UNSEEN --- look_at_object()
 *      |                          |                              adopts ---> PROVEN
 *      |                          +--- an object of its content is adopted ---> IN_S3
 *      +--- the mark says done ---> IN_S3, or PROVEN if only its time had changed
 *      +--- it is not to be sent as it is now ---> LEFT_OUT
 *      +--- it is another version than its key is of ---> STRANDED (from any state)
 *
 * A file that fails stays in its state. "Doubt" is whatever leaves open whether S3 holds something:
 * an upload that is gone, a reply that is lost, bytes that are not the ones sent. */
enum file_life {
	FILE_UNCLAIMED, /* its mark is to be judged and claimed */
	FILE_CLAIMED,   /* the mark is ours, and its content may be stored under another suffix */
	FILE_UNSEEN,    /* S3 may hold an object, so a HEAD precedes whatever is sent */
	FILE_CLEAR,     /* nothing is known to be there but what is to be replaced */
	/* The turn has ended. */
	FILE_LEFT_OUT, /* it is not to be in S3 as it is now */
	FILE_STRANDED, /* it failed as another version than its key or the id of its content is of
			*/
	FILE_IN_S3,    /* its mark says so */
	FILE_PROVEN,   /* likewise, and this turn has read all of its content as of `state` */
};

/* Only the thread that holds the pointer uses it. */
struct file {
	struct candidate *candidate; /* owned */
	enum file_life life;
	struct s3_target target; /* its key, and how it is to be stored */
	int fd;                  /* -1: not open */
	struct file_state state; /* of the version being sent */
	/* The clock_wall_ns() when it was opened and `state` was taken, and its ctime then, also
	 * where that does not count in `state`. */
	int64_t opened_ns;
	int64_t opened_ctime_ns;
	/* How it is sent. file_open() makes both, by the size alone; multipart_plan_or_resume()
	 * makes those of a large file before anything is sent, and nothing changes them until that
	 * has ended.
	 */
	const struct encoding *encoding; /* the run's or `own_encoding`; NULL: as it is */
	struct encoding own_encoding;
	struct plan plan; /* of the file, not of what is made of it */
	/* Ranges that were larger did not fit parts of one length. 0: none was tried. */
	uint64_t range_most;
	struct sums sums; /* of the whole content of that version; no kinds: not read yet */
	/* Of its object, if that is encoded; otherwise its `bytes` are 0. */
	struct sums stored;
	/* The size of the parts in which S3 got what it holds. 0: it was sent whole, or is not
	 * known. And the checksum of those parts' checksums, as marks have it. */
	uint64_t sent_part_bytes;
	char parts_sum[PARTS_SUM_MAX + 1];
	struct mark seen;   /* the mark as it was last seen while it was not ours */
	struct claim claim; /* of the mark, from CLAIMED to CLEAR */
	/* The etag of what is to be replaced, which is the done version or a damaged upload; "" if
	 * there is nothing to replace. */
	char replaces[S3_ETAG_MAX + 1];
	/* The server misreads the condition, so a HEAD goes right before the write instead. */
	bool is_unconditional;
	unsigned restarts, damages;
	uint64_t begun_ns; /* the clock_boot_ns() when this turn began */
	struct share share;
};

/* What a step leads to. */
enum step {
	STEP_NEXT,    /* go on with the next step */
	STEP_AGAIN,   /* go on from the state in which the file is now */
	STEP_SETTLED, /* the file was reported and counted, and nothing is left to do */
	STEP_LATER,   /* it was put back into the queue */
	STEP_PARTS,   /* its parts are in the queue, and whoever ends the last one goes on */
	STEP_ASIDE,   /* it was refused, and was handed over to the run's refusals */
	STEP_OVER,    /* the run is over, and the mark stays as it is for the next run */
};

/* Takes the candidate. If there is no memory, it returns NULL and takes nothing. */
struct file *file_new(struct run *run, struct candidate *candidate);
void file_free(struct file *file);
struct mark_ref file_mark_ref(struct worker *worker, const struct file *file);
struct report_file file_about(const struct file *file);
/* Reports an event about the file. problem may be NULL. */
void file_report(struct worker *worker, const struct file *file, enum s3once_event_type event,
	const struct problem *problem);
/* What its mark is asked about, as it was opened. Borrows. */
struct asked file_asks(const struct file *file);
/* The metadata that our objects carry. */
struct s3_meta file_meta(const struct worker *worker, const struct file *file);
/* The condition for making the object visible. `ability` is the one that If-None-Match needs here.
 */
struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability);
/* Whether the server may ignore that condition, so that a HEAD has to go right before. */
bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability);

/* The file's turn ends. */

/* Nothing is left to do: reports the event, and ends in the state that it means. SKIPPED is where
 * file->seen says that this very version is done; if this run has written that mark in an earlier
 * turn and the reply was lost, the event of that turn is reported. SETTLED. */
enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event);
/* Whether this run has written that mark. */
bool file_was_done_here(const struct worker *worker, const struct file *file);
/* Step 7: the file cannot be uploaded. Its mark, if it is ours, says why. SETTLED. */
enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem);
/* Puts the file's candidate back into the queue until then. LATER. */
enum step file_later(struct worker *worker, struct file *file, uint64_t not_before_ns);

/* What an outcome other than OK leads to when no step knows better: the file fails, the run ends,
 * the file is tried later, or it is put aside until it shows whether S3 refuses all files. */
enum step file_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* The same for a request to the marks. If they deny it to one file, they deny it to all. */
enum step file_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* For an error that may pass. Reports it, and begins the file once more after a pause.
 * Fails the file if this has gone on for too long. LATER or SETTLED. */
enum step file_again(struct worker *worker, struct file *file, const struct problem *problem);

/* The file is read. */

/* Opens what is under the name now, and chooses what it is compressed with. NEXT; AGAIN if it was
 * opened at the second attempt, since it changed; or why not. */
enum step file_open(struct worker *worker, struct file *file);
/* The object's key is the one that --compress gives it. NEXT, or why it has no room for that. */
enum step file_add_suffix(struct worker *worker, struct file *file);
/* The range of part `index` of this plan, or of the whole file if `plan` is NULL. `encoding` is
 * what it is sent with, or NULL. */
struct range file_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index);
/* Computes `kinds` of what is sent of a range of the file as it was opened. 0, -ESTALE if it has
 * changed, or another error of body_digest(). */
int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret);
/* Computes file->sums of the whole content, or file->stored of what it is encoded to, with at least
 * these kinds. NEXT; AGAIN if it changed meanwhile. */
enum step file_sum(
	struct worker *worker, struct file *file, const struct encoding *encoding, unsigned kinds);
/* What an error of reading the file leads to, given as -errno: it changed (-ESTALE), it is gone or
 * cannot be read, or we ended the reading (-ECANCELED). */
enum step file_read_error(struct worker *worker, struct file *file, int error);
/* Reads the file for what is told of the object, and says whether it has the file's content. NEXT
 * sets *ret. AGAIN if the file changed meanwhile. */
enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* The same for the content itself, whatever encoding it is sent with. */
enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);

/* The file is done. */

/* What an object of ours is a version of, as it says itself. */
struct version file_version_of(const struct worker *worker, const struct s3_object *object);
/* Step 6, once proven: marks this version done and reports the event. SETTLED, or why not. */
enum step file_done(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event);
/* The same for an object under the mark's key and this suffix that holds the content of a log,
 * compressed otherwise than the file is. An upload that the mark records is aborted before. */
enum step file_done_otherwise(struct worker *worker, struct file *file,
	const struct s3_object *object, const char *suffix);
/* Writes a done mark of any version. NEXT if it stands. */
enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version);
/* The file was uploaded, and nothing is under its key. It fails. SETTLED. */
enum step file_is_nowhere(struct worker *worker, struct file *file);

/* A worker takes tasks from the queue and brings each file from its claim to its mark, blocking, on
 * connections of its own. The steps of docs/protocol.md ("One file") are one function each, and
 * worker.c calls the one that the state of the file asks for.
 *
 * What the steps may touch: connections and a buffer of the worker's own, and of the run what its
 * threads share. */
struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader;      /* its buffer has a small file's whole body, too; owned */
	bool is_warm;              /* it has had a task, so that its connections are there */
	bool has_begun;            /* it has seen that the run has begun: run_begin() */
	bool has_put_aside;        /* the task has given the run's refusals a file */
	uint64_t read_ns;          /* for how long the task has opened and read its file, so far */
	struct call_limits limits; /* of any request: run_limits() */
	struct call_limits visible_limits; /* run_visible_limits() */
	/* What nearly every step asks the run for, borrowed. */
	const struct s3once_options *options;
	struct report *report;
	struct s3 *server;
};

/* Makes a worker with connections of its own. NULL: out of memory or descriptors. */
struct worker *worker_new(struct run *run);
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
/* Why S3 is asked for the object of a file. */
enum look {
	/* Content that is the file's own is adopted. Returns AGAIN if what was sent is damaged, or
	 * was an earlier version. */
	LOOK_AND_JUDGE,
	/* The same before much is sent, and only to save that. Returns NEXT also if we may not
	 * look, but the server is known to refuse what we must not replace. */
	LOOK_AHEAD,
	/* Without reading the file. Returns AGAIN if S3 holds anything else than what is to be
	 * replaced, so that it is judged first. */
	LOOK_ONCE_MORE,
};
/* Step 4, of UNSEEN: asks what S3 holds under the key. Returns NEXT if the file can be sent, since
 * S3 holds nothing, or exactly the version to be replaced. */
enum step look_at_object(struct worker *worker, struct file *file, enum look how);
/* What an outcome other than OK of the request leads to that was to make the object visible under
 * this condition, if no step knows better. If the condition was refused, as look_at_object(), which
 * returns AGAIN and not NEXT if S3 holds nothing in the way now. Else as file_outcome(). */
enum step look_after_write(struct worker *worker, struct file *file,
	const struct s3_condition *condition, enum outcome outcome, const struct problem *problem);
/* Step 6 if the reply did not prove the upload: a HEAD shows the object, which proves it, or is
 * judged as in step 4. Returns SETTLED, or why not. */
enum step prove_by_head(struct worker *worker, struct file *file);

/* Step 5, of CLEAR: sends the file by its plan. A small one is one PutObject, from the check of the
 * file to the done mark. A large one goes the way of multipart.c: PARTS once its parts are in the
 * queue. */
enum step send_file(struct worker *worker, struct file *file);

/* With options.removes: removes or moves a file that is in S3, as they say, if it is due, proven
 * once more and kept by no rule. Reports what became of it. */
void remove_file(struct worker *worker, struct file *file);

/* Step 5 for a large file: a multipart upload, recorded in the mark before its first part, so that
 * any run can go on with it. multipart.c begins it, sends its parts by any workers, and the worker
 * that ends the last part makes them an object. multipart_resume.c finds out whether the upload
 * that a mark records can be resumed, plans one if not, and ends the recorded one. */

/* Makes file->encoding and file->plan of a large file: of the upload that the mark records if that
 * can go on, and then *ret_resumes is set, or else by the size and by a sample of how well the file
 * can be compressed: it may come to a plan without parts. NEXT, or why not. */
enum step multipart_plan_or_resume(struct worker *worker, struct file *file, bool *ret_resumes);
/* The metadata are sent before the content is read. Where they name it, it is read for that first,
 * if `is_needed`. NEXT, or why not. */
enum step multipart_learn_content(struct worker *worker, struct file *file, bool is_needed);

/* Lists the parts that S3 has of the upload to be resumed, into ret_done[file->plan.n_parts]. They
 * are compared with the file, one by one, as they come up. NEXT, or why not. */
enum step multipart_resume(struct worker *worker, struct file *file, struct s3_part *ret_done);
/* Aborts the upload that the mark records, if it is open, and awaits the answer. NEXT, or why not:
 * of a file that is STRANDED, whose key no later run will use, an error is only logged. */
enum step multipart_abort(struct worker *worker, struct file *file);
/* The upload id is not valid any more. The upload was completed by a late request, was aborted, or
 * has expired; HEAD will show which. AGAIN, or why the file is given up. */
enum step multipart_is_gone(struct worker *worker, struct file *file);
/* Reports that so many bytes of the file are in parts that S3 keeps for a later run or turn. */
void multipart_keeps(struct file *file, uint64_t bytes);

/* Begins an upload, or resumes the one that is recorded. PARTS once its parts are in the queue, or
 * why not. NEXT: the file is small enough to be sent whole once it is compressed. */
enum step multipart_begin(struct worker *worker, struct file *file);
/* Sends one part. *ret_file is NULL while other parts are under way or to come. Whoever ends the
 * last one gets the file, completed or not, and the step is where it goes on: NEXT, too, is from
 * the state in which it is now. */
enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* Frees an upload that nobody works on any more. The mark still records it for the next run.
 * Returns its file, which is the caller's. */
struct file *multipart_give_up(struct parts *parts);

/* What comes through a pipe becomes a file before it is sent: s3once_options.read is asked for all
 * of it once its key is claimed, and what it gives is in a file without a name. That file is sent
 * like any other. So nothing reaches S3 before the producer has ended well, the size is known when
 * the parts are planned, and whatever is sent again is read again. With options.spool the file gets
 * a name in that folder as soon as it is whole, and any later run for the same key sends it. */

/* Of CLEAR, before there is a file: asks S3 whether something is under the key, and then reads all
 * that the pipe gives, or finds what an earlier run has kept. NEXT once that was opened as the
 * file, or why not. */
enum step piped_take(struct worker *worker, struct file *file);
/* All is done: removes what was kept. Main thread. */
void piped_forget(const struct run *run);

/* Whether a file is done at this very moment. This requires more than skipping a file in a run
 * does. It decides which files may be removed, and what `s3once proven` answers. */

enum done {
	DONE_YES,     /* all of the below */
	DONE_NO,      /* something says otherwise, with a sentence */
	DONE_UNKNOWN, /* something could not be read, with a sentence */
};

/* What S3 holds of a file. */
struct done_object {
	struct s3_object object;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* the mark's, and the suffix that it has */
};

/* Reports an event about the file, with what S3 told of its object, or with the problem if that is
 * NULL. */
void done_report(struct run *run, const struct file *file, enum s3once_event_type event,
	const struct done_object *object, const struct problem *problem);

/* Whether the content that file->fd holds is that of the version: by the checksum of the whole
 * content, and its MD5 where the version has that too, or by the id of the content. */
enum done done_content(struct worker *worker, const struct file *file, const struct version *done,
	struct problem *ret_problem);
/* Reads the content that file->fd holds, unless is_read says that this turn has proven it; reads
 * the mark consistently, which says that a version of this size, modification time and checksum is
 * done; and asks for the object by HEAD, which shows that version. OK sets *ret to the object. The
 * file's state is not looked at again after its content was read: that is the caller's. */
enum done done_now(struct worker *worker, struct file *file, bool is_read, struct done_object *ret,
	struct problem *ret_problem);
