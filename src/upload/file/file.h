/* A file that is under way: its states, and what its steps share about it. file.c has what is
 * derived from it and how its turn ends, file_outcome.c decides where an error leads, and
 * file_open.c reads it. All functions may block, in the thread of the worker. */
#pragma once
#include "marks/judge_object.h"
#include "upload/body/multipart_plan.h"
#include "upload/run.h"

#define FILE_RESTARTS_MAX 8 /* of one file in one turn */
/* How often a file is sent again because S3 holds other bytes than were sent. */
#define FILE_DAMAGES_MAX 3

/* Where a file is in its turn. Nothing else in struct file says that. Each state has one step,
 * which worker.c performs. The step returns an answer (enum step), and file_enter() alone sets the
 * state, by the answer:
 *
 *                claim_file()          look_elsewhere()
 *   UNCLAIMED ---------------> CLAIMED ----------------> CLEAR --- send_file() ---> PROVEN
 *      |  ^                       |  \                    |  ^
 *      |  | EARLIER               |   \ taken over  DOUBT |  | nothing is in the way
 *      |  |                       |    \                  v  |
 *      |  +-----------------------|-----+---------------> UNSEEN --- look_at_object()
 *      |                          |                              adopts ---> PROVEN
 *      |                          +--- an object of its content is adopted ---> IN_S3
 *      +--- the mark says done ---> IN_S3, or PROVEN if only its time had changed
 *      +--- it is not to be sent as it is now ---> LEFT_OUT
 *      +--- it is another version than its key is of ---> STRANDED (from any state)
 *
 * A file that fails stays in its state. DOUBT is whatever leaves open whether S3 holds something:
 * an upload that is gone, a reply that is lost, bytes that are not the ones sent. */
enum file_life {
	FILE_UNCLAIMED, /* its mark is to be judged and claimed */
	FILE_CLAIMED,   /* the mark is ours, and its content may be stored under another suffix */
	FILE_UNSEEN,    /* S3 may hold an object, so a HEAD precedes whatever is sent */
	FILE_CLEAR,     /* as far as is known, S3 holds at most the object to be replaced */
	/* In these the turn has ended. */
	FILE_LEFT_OUT, /* it is not to be in S3 as it is now */
	FILE_STRANDED, /* it failed: its key or its content's id is of another version */
	FILE_IN_S3,    /* S3 has it: its mark says so */
	FILE_PROVEN,   /* as FILE_IN_S3, and this turn has read all of its content as of `state` */
};

/* Only the thread that holds the pointer uses it. */
struct file {
	struct candidate *candidate; /* owned */
	enum file_life life;
	struct s3_target target; /* the object's key, and how it is to be stored */
	int fd;                  /* -1: not open */
	struct file_state state; /* of what is open: the file, or the copy of a piece */
	/* Size and times need not show a change of what is open. So the content is read once more,
	 * after all of it was read and before it becomes visible in S3. */
	bool is_reread;
	/* Its file system tells another inode or ctime each time it is asked, although the file has
	 * the same size and modification time. Implies is_reread. */
	bool stat_is_unsteady;
	int64_t mtime_ns; /* of the version being sent; of a piece, when it was cut */
	/* The clock_wall_ns() right before it was opened, and its ctime at that time. The ctime is
	 * kept here also if it does not count in `state`. */
	int64_t opened_ns;
	int64_t opened_ctime_ns;
	/* How it is sent: `encoding` and `plan`. file_open() sets both, the plan by the size alone.
	 * For a large file multipart_plan_or_resume() sets them again before anything is sent.
	 * Nothing changes them until the sending has ended. */
	const struct encoding *encoding; /* the run's or `own_encoding`; NULL: as it is */
	struct encoding own_encoding;
	struct plan plan; /* of the file itself, not of what compressing makes */
	/* The largest ranges of the file to try where compressed parts must have one length, since
	 * larger ones did not fit into a part. 0: no limit. */
	uint64_t range_most;
	struct sums sums; /* of the whole content of what is open; no kinds: not read yet */
	/* Of the whole object, if the file is sent encoded. Otherwise `bytes` is 0. */
	struct sums stored;
	/* The size of the parts in which the object that S3 holds was sent. 0: it was sent whole,
	 * or nobody knows. */
	uint64_t sent_part_bytes;
	char parts_sum[PARTS_SUM_MAX + 1]; /* of the sums of those parts, as in struct version */
	struct mark seen;                  /* the mark as it was last seen while it was not ours */
	struct claim claim;                /* of the mark, from CLAIMED to CLEAR */
	/* The etag of the object to be replaced, which is the done version or a damaged upload. "":
	 * there is nothing to replace. */
	char replaces[S3_ETAG_MAX + 1];
	/* The server does not take the condition of a write, so a HEAD right before the write
	 * stands in for it. */
	bool is_unconditional;
	bool has_given_up;  /* it was retried in vain for too long, which moves no run */
	unsigned restarts;  /* how often this turn has begun anew, for any reason */
	unsigned damages;   /* how often S3 held other bytes than were sent */
	uint64_t begun_ns;  /* the clock_boot_ns() when this turn began */
	struct share share; /* how much of the file was sent */
};

/* The answer of a step. "Returns NEXT, or why not" means that every other answer says how the file
 * goes on instead, or why its turn has ended. A function that is a part of a step returns one, too:
 * its NEXT means that the step goes on. */
enum step {
	/* The turn goes on, in the state that file_enter() makes of this. */
	STEP_NEXT,    /* the step has done its work, and the next one follows */
	STEP_AGAIN,   /* the same step follows once more */
	STEP_CLEAR,   /* the file is sent, from the beginning */
	STEP_DOUBT,   /* S3 may hold an object by now, and is asked */
	STEP_EARLIER, /* the mark says now that an earlier version is done, and is judged again */
	STEP_GOES_ON = STEP_EARLIER,
	/* The turn has ended. The file was reported and counted, and nothing is left to do. */
	STEP_SETTLED,  /* it stays in its state: it has failed, or another uploader holds it */
	STEP_LEFT_OUT, /* this and the next three: in the state of that name */
	STEP_STRANDED,
	STEP_IN_S3,
	STEP_PROVEN,
	/* The turn has ended for this worker. */
	STEP_LATER, /* it was put back into the queue */
	STEP_PARTS, /* its parts are in the queue, and whoever ends the last one goes on */
	STEP_ASIDE, /* it was refused, and was handed over to the run's refusals */
	STEP_OVER,  /* the run is over, and the mark stays as it is for the next run */
};

/* Sets the state of the file by the answer of the step of its state. An answer that says nothing of
 * the state leaves it. */
void file_enter(struct file *file, enum step answer);

/* Makes a file of the candidate, and takes the candidate. If there is no memory, it returns NULL
 * and takes nothing. */
struct file *file_new(struct run *run, struct candidate *candidate);
void file_free(struct file *file);
struct mark_ref file_mark_ref(struct worker *worker, const struct file *file);
struct report_file file_about(const struct file *file);
/* Reports an event about the file. problem may be NULL. */
void file_report(struct worker *worker, const struct file *file, enum s3once_event_type event,
	const struct problem *problem);
/* What the mark is compared with (mark_says()): the version that was opened. Borrows. */
struct asked file_asks(const struct file *file);
/* The metadata of the object that this file becomes. */
struct s3_meta file_meta(const struct worker *worker, const struct file *file);
/* The condition for making the object visible. `ability` is S3_PUT_CONDITION or
 * S3_COMPLETE_CONDITION, whichever request it is. */
struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability);
/* Whether the server may ignore the condition of file_condition(), so that a HEAD has to come right
 * before the request. */
bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability);

/* The file's turn ends. */

/* Ends the turn of a file for which nothing is left to do: reports the event, and returns the
 * answer that it means, LEFT_OUT, IN_S3 or PROVEN.
 *
 * SKIPPED means that file->seen says that this very version is done. This run may have written that
 * mark itself in an earlier turn whose reply was lost. Then UPLOADED or ADOPTED is reported
 * instead, which the earlier turn could not report. */
enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event);
/* Whether file->seen says done, and this run wrote that mark. */
bool file_was_done_here(const struct worker *worker, const struct file *file);
/* Step 7: the file cannot be uploaded. Reports why, and writes it into the mark if that is ours.
 * Returns SETTLED. */
enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem);
/* Puts the file's candidate back into the queue until not_before_ns. Returns LATER. */
enum step file_later(struct worker *worker, struct file *file, uint64_t not_before_ns);

/* Decides what an outcome other than OK leads to, if no step knows better. The file fails, the run
 * ends, or the file is tried later. Or the file is put aside until it shows whether S3 refuses all
 * files. */
enum step file_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* Decides the same for a request to the marks. What is DENIED or ABSENT for one file is so for all,
 * and the run ends. */
enum step file_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* Handles an error that may pass. Reports it, and begins the file once more after a pause. Fails
 * the file if this has gone on for give_up_after_ms. Returns LATER or SETTLED. */
enum step file_again(struct worker *worker, struct file *file, const struct problem *problem);

/* The file is read. */

/* Opens the file that is under the name now, plans it by its size, and chooses how it is
 * compressed. Forgets the sums of what was open before. Output that is still to come through the
 * pipe is not opened: fd stays -1. Returns NEXT, or AGAIN or DOUBT if the file changed meanwhile
 * and was opened once more, or why not. */
enum step file_open(struct worker *worker, struct file *file);
/* Gives the object's key the suffix of --compress, which is "" with --content-encoding. Returns
 * NEXT, or why not: the key would be too long. */
enum step file_add_suffix(struct worker *worker, struct file *file);
/* Returns the range of part `index` of this plan, or of the whole file if `plan` is NULL.
 * `encoding` is what the range is compressed with, or NULL. */
struct range file_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index);
/* Computes the digests `kinds` of the body that a range of the opened file becomes. Returns 0,
 * -ESTALE if the file has changed, or another error of body_digest(). */
int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret);
/* Computes file->sums of the whole content if `encoding` is NULL, or else file->stored of what the
 * encoding makes of it. They have at least these kinds then. Returns NEXT, or why not. */
enum step file_sum(
	struct worker *worker, struct file *file, const struct encoding *encoding, unsigned kinds);
/* Decides what an error of opening or reading the file (-errno) leads to. A file that has changed
 * (-ESTALE) is opened as it is now, for which this returns AGAIN, DOUBT if it was to replace an
 * object, or why not. After -ECANCELED,
 * with which this run has ended the reading, and if no descriptor is left, which ends the run, this
 * returns OVER. If another process holds a lease on the file, it is tried later. Any other error
 * fails it. */
enum step file_read_error(struct worker *worker, struct file *file, int error);
/* Reads the file, and sets *ret to whether the object has its content, as far as the server shows
 * that. Returns NEXT, or why not. */
enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);
/* As file_compare(), but compares the object with the content as it is on the disk, whatever
 * encoding the file is sent with. */
enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret);

/* The file is done. */

/* Returns the version that an object of ours has, as its metadata says. */
struct version file_version_of(const struct worker *worker, const struct s3_object *object);
/* Step 6 for an object that is proven: marks this version done and reports the event. Returns
 * PROVEN, or LEFT_OUT in a dry run, or why not. */
enum step file_done(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event);
/* Does the same for an object that holds the content of the file, but may be compressed otherwise.
 * Its key is the mark's key with `suffix`. First aborts the upload that the mark records. Returns
 * IN_S3, or LEFT_OUT in a dry run, or why not. */
enum step file_done_otherwise(struct worker *worker, struct file *file,
	const struct s3_object *object, const char *suffix);
/* Sets the mark to done with this version. Returns NEXT once the mark is written, or why not. */
enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version);
/* Fails a file that was uploaded although there is no object under its key. Returns SETTLED. */
enum step file_is_nowhere(struct worker *worker, struct file *file);

/* A worker takes tasks from the queue. It brings each file from its claim to its mark, on
 * connections of its own, and blocks meanwhile. Each step of docs/protocol.md ("One file") is one
 * function, and worker.c calls the one that the state of the file asks for.
 *
 * A step uses the connections and the buffer of its worker, and those members of the run that all
 * threads share. */
struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader;      /* its buffer has a small file's whole body, too; owned */
	bool is_warm;              /* it has had a task, so its connections are open */
	bool has_begun;            /* run_begin() has returned true to it */
	bool has_put_aside;        /* its task has put a file aside: refusals_settle() */
	uint64_t read_ns;          /* how long its task has opened and read the file so far */
	struct call_limits limits; /* of any request: run_limits() */
	struct call_limits visible_limits; /* run_visible_limits() */
	/* Members of the run that nearly every step uses, borrowed. */
	const struct s3once_options *options;
	struct report *report;
	struct s3 *server;
};

/* Makes a worker with connections of its own. NULL: out of memory or descriptors. */
struct worker *worker_new(struct run *run);
/* To be called before the worker does anything for a file in a turn or for a part of it: for how
 * long the file has failed before counts for the requests. */
void worker_begin_turn(struct worker *worker, const struct candidate *candidate);
/* The body of a worker's thread. It returns when the queue has no more tasks for this worker. */
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);

/* Steps 2 and 3, of UNCLAIMED: judges the mark, and claims it or takes it over. Returns NEXT once
 * it is claimed, or why not. */
enum step claim_file(struct worker *worker, struct file *file);

/* Step 4, of CLAIMED. For a file that is known by its content, asks S3 for that content under the
 * mark's key with each other suffix of compression, and adopts such an object. If none was adopted,
 * returns DOUBT if S3 may hold an object under its own key, and otherwise NEXT. */
enum step look_elsewhere(struct worker *worker, struct file *file);
/* Why S3 is asked for the object of a file. */
enum look {
	LOOK_AND_JUDGE, /* nothing is sent before S3 has shown what is there */
	/* Much would be sent in vain if the object is there. If S3 refuses to show it,
	 * look_at_object() returns NEXT, provided that the server honours conditions. The condition
	 * of the write then protects an object that must stay. */
	LOOK_AHEAD,
};
/* Step 4, of UNSEEN: asks what S3 holds under the key. An object with the file's content is
 * adopted. Returns CLEAR if the object is damaged, and EARLIER if it is an earlier version. Returns
 * NEXT if the file can be sent, since S3 holds nothing, or exactly the version to be replaced. */
enum step look_at_object(struct worker *worker, struct file *file, enum look why);
/* Step 2, before a claim that is to replace the done version, whose etag is in file->replaces.
 * Returns NEXT if that object is gone, is another one by now, or was uploaded by these marks.
 * Otherwise it stays: reports the file as changed, and returns SETTLED. */
enum step look_whether_ours(struct worker *worker, struct file *file);
/* Asks the same right before a write whose condition the server may ignore, but does not read the
 * file. Returns NEXT if S3 holds nothing, or exactly the version to be replaced. If S3 holds
 * another object, returns DOUBT, so that look_at_object() follows. */
enum step look_once_more(struct worker *worker, struct file *file);
/* Decides what follows after a PutObject or CompleteMultipartUpload under this condition. The
 * outcome is not OK, and the caller does not handle it itself.
 *
 * If the condition was refused, look_at_object() looks at the object. If nothing is in the way of
 * the file now, this returns AGAIN. It also returns AGAIN if the server does not support the
 * condition: the file goes on without one. Any other outcome is left to file_outcome(). */
enum step look_after_write(struct worker *worker, struct file *file,
	const struct s3_condition *condition, enum outcome outcome, const struct problem *problem);
/* Step 6 if the reply did not prove the upload. A HEAD shows the object. Either that proves the
 * upload, or the object is judged as in step 4. Returns PROVEN, or why not. */
enum step prove_by_head(struct worker *worker, struct file *file);

/* Step 5, of CLEAR: sends the file by its plan. A small file is sent here by one PutObject,
 * and is marked as done. A large file is left to multipart.c, and PARTS is returned once its parts
 * are in the queue. */
enum step send_file(struct worker *worker, struct file *file);

/* With options.removes: removes or moves a file that is in S3. The file has to be due and to be
 * proven once more, and no rule may keep it. Reports what became of the file. */
void remove_file(struct worker *worker, struct file *file);

/* Step 5 for a large file: a multipart upload. It is recorded in the mark before its first part, so
 * that any run can resume it. multipart.c begins it and sends its parts, by any workers. The worker
 * that ends the last part completes it. multipart_resume.c decides whether a recorded upload can be
 * resumed, plans a new one if not, and aborts the recorded one. */

/* Sets file->encoding and file->plan of a large file. If the upload that the mark records can be
 * resumed, they are those of that upload, and *ret_resumes is true. Otherwise they follow from the
 * size and from samples of how well the file can be compressed. The plan has no parts if the
 * compressed file is so small that it is sent whole. Returns NEXT, or why not. */
enum step multipart_plan_or_resume(struct worker *worker, struct file *file, bool *ret_resumes);
/* If `is_needed`, reads a file that is compressed on its way and has no content id, and adds the
 * SHA-256 of its content to file->sums. The metadata of its upload names that (file_meta()), and is
 * sent before the first part is read. Returns NEXT, or why not. */
enum step multipart_add_content_sha256(struct worker *worker, struct file *file, bool is_needed);

/* Returns what the file's object is encrypted with: the MD5 of the caller's key (SSE-C) in base64,
 * what sse says, or "". Borrowed. */
const char *multipart_encryption(const struct file *file);
/* Lists the parts that S3 has of the upload to be resumed, into ret_done[file->plan.n_parts].
 * send_part() compares each with the file when its turn comes. Returns NEXT, or why not. */
enum step multipart_resume(struct worker *worker, struct file *file, struct s3_part *ret_done);
/* Aborts the upload that the mark records, if it is open, and waits for the answer. Returns NEXT,
 * or why not. For a STRANDED file, whose key no later run will use, an error is only logged. */
enum step multipart_abort(struct worker *worker, struct file *file);
/* Handles an upload id that S3 does not know any more. Either a late request has completed the
 * upload, or the upload was aborted or has expired. A HEAD will show which. Returns DOUBT, or why
 * the file is given up. */
enum step multipart_is_gone(struct worker *worker, struct file *file);
/* Reports how many bytes of the file are in parts that S3 keeps for a later run or turn. The number
 * replaces the one that was reported of this file before. */
void multipart_keeps(struct file *file, uint64_t bytes);

/* Begins an upload, or resumes the recorded one. Returns PARTS once its parts are in the queue, or
 * why not. Returns NEXT if the file becomes so small by compressing that it is sent whole. */
enum step multipart_begin(struct worker *worker, struct file *file);
/* Sends one part. While other parts are under way or still to come, *ret_file is NULL.
 *
 * The worker that ends the last part gets the file in *ret_file, whether or not the upload was
 * completed. The answer that is returned says how the file goes on. */
enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* Frees an upload that nobody works on any more. The mark still records it for the next run.
 * Returns its file, which is the caller's. */
struct file *multipart_give_up(struct parts *parts);

/* What comes through a pipe becomes a file before it is sent. Once the key is claimed,
 * s3once_options.read is asked for all of it, and the output goes into a file without a name. That
 * file is sent like any other.
 *
 * So nothing reaches S3 before the producer has ended well, the size is known when the parts are
 * planned, and a body that is sent again is read again. With options.spool the file gets a name in
 * that folder once it is whole, and any later run for the same key sends it. */

/* Step 5, of CLEAR, while file->fd is -1. Asks S3 whether there is an object under the key. Then
 * reads all that the pipe gives, or takes the output that an earlier run has kept. Returns NEXT
 * once the output is open as the file, or why not. */
enum step spool_take(struct worker *worker, struct file *file);
/* Removes the kept output, once all is done. Main thread. */
void spool_forget(const struct run *run);

/* Whether a file is done at this very moment. This requires more than skipping a file in a run
 * does. It decides which files may be removed, and what `s3once proven` answers. */

enum done {
	DONE_YES,     /* all that the function checks is true */
	DONE_NO,      /* something says otherwise, with a sentence */
	DONE_UNKNOWN, /* something could not be read, with a sentence */
};

/* The object that S3 holds of a file. */
struct done_object {
	struct s3_object object;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* the mark's key and suffix */
};

/* Sends a HEAD for the object of a done version of the file. OK sets ret->object, which may be
 * another object by now. */
enum outcome done_head(struct worker *worker, const struct file *file, const struct version *done,
	struct done_object *ret, struct problem *ret_problem);
/* Reports an event about the file. With `object`, the report has what S3 told of it. If `object` is
 * NULL, the report has the problem. */
void done_report(struct run *run, const struct file *file, enum s3once_event_type event,
	const struct done_object *object, const struct problem *problem);

/* Whether the content that file->fd holds is that of the version. For a file that is known by its
 * content, compares the content's id. For any other file, compares the checksum of the whole
 * content, and its MD5 if the version has that too. */
enum done done_content(struct worker *worker, const struct file *file, const struct version *done,
	struct problem *ret_problem);
/* Checks three things. The mark, read consistently, says that this version is done. The content
 * that file->fd holds is that version. A HEAD shows the object of that version. If `is_read` says
 * that this turn has proven the content, the content is not read. If the content is read, another
 * modification time than the mark's does not matter.
 *
 * DONE_YES sets *ret to the object. The caller has to check that the file did not change while it
 * was read. */
enum done done_now(struct worker *worker, struct file *file, bool is_read, struct done_object *ret,
	struct problem *ret_problem);
