/* A worker takes jobs from the queue and brings each file from its claim to its mark, blocking, on
 * connections of its own. The steps of docs/protocol.md ("One file") are one function each;
 * worker.c calls them in a straight line. */
#pragma once
#include "base/checksum.h"
#include "upload/parts_plan.h"
#include "upload/run.h"

struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct digest digest;
	void *buffer; /* a small file's whole body, or what a digest reads through */
	size_t buffer_bytes;
};

#define FILE_RESTARTS_MAX 8 /* of one file in one run */

/* The file under way. Whoever holds the pointer is the only one to touch it. */
struct file {
	struct candidate *candidate; /* owned */
	struct s3_target target;     /* its key, and how it is to be stored */
	int fd;                      /* -1: not open */
	struct file_state state;     /* of the version being sent */
	struct plan plan;
	struct sums sums; /* of the whole content of that version, if `summed` */
	bool summed;
	struct mark seen;   /* the mark, as last seen, while it is not ours */
	struct claim claim; /* ours, if `claimed` */
	bool claimed;
	bool must_look;     /* S3 may hold something already: HEAD before anything is sent */
	bool unconditional; /* the server does not take the condition for what it is: HEAD right
			       before instead */
	struct version replaces; /* the done version that is to be replaced; its etag "" if there is
				    none */
	char *upload_id;         /* as the mark has it, or NULL */
	bool upload_is_open;     /* as far as we know; else a new one takes its place in the mark */
	uint64_t upload_part_bytes, upload_size; /* what it was begun with */
	int64_t upload_mtime_ns;
	unsigned restarts;
};

/* What a step leads to. */
enum step {
	STEP_NEXT,    /* go on with the next step */
	STEP_AGAIN,   /* from the top: the file or the mark is another by now */
	STEP_SETTLED, /* reported and counted; nothing more to do */
	STEP_LATER,   /* put back into the queue */
	STEP_PARTS,   /* its parts are in the queue; whoever ends the last one goes on */
	STEP_OVER,    /* the run is over; the mark stays as it is for the next one */
};

/* Steps 2 and 3: judge the mark, claim it or take it over. NEXT: claimed. */
enum step claim_file(struct worker *worker, struct file *file);
/* Done with other content: what to do is the user's choice. NEXT: replace it. */
enum step changed_file(struct worker *worker, struct file *file);
/* Done with the same size and another mtime: the content decides. Like changed_file, or SETTLED. */
enum step touched_file(struct worker *worker, struct file *file);
/* Step 4: what does S3 hold under the key? NEXT: nothing (or exactly the version to be replaced):
 * send. Content that is the file's own is adopted. */
enum step look_at_object(struct worker *worker, struct file *file);
/* The same before much is sent, only to save that: NEXT also where we may not look, but the server
 * is known to refuse what we must not replace. */
enum step look_ahead(struct worker *worker, struct file *file);
/* The same after a condition was refused. NEXT never: AGAIN if the way is free now. */
enum step look_after_refusal(
	struct worker *worker, struct file *file, const struct s3_condition *condition);
/* The object as HEAD shows it proves the file, or nothing does. SETTLED, or why not. */
enum step file_prove_by_head(struct worker *worker, struct file *file);
/* Step 5, small: one PutObject from the check of the file to the done mark. */
enum step send_whole(struct worker *worker, struct file *file);
/* Step 5, large: resumes the recorded upload or begins one, and puts its parts into the queue. */
enum step parts_begin(struct worker *worker, struct file *file);
/* One part. If it was the last, *ret_file is the file (else NULL), completed or not, and the step
 * is where it goes on. */
enum step parts_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file);
/* The file of an upload nobody works on any more. Frees the upload. */
struct file *parts_give_up(struct parts *parts);
/* Aborts the upload recorded in the mark and awaits the answer. */
enum step parts_abort(struct worker *worker, struct file *file);

/* ---- what the steps share ---- */

struct mark_ref file_mark_ref(struct worker *worker, const struct file *file);
struct report_file file_about(const struct file *file);
/* The metadata that our objects carry. */
struct s3_meta file_meta(const struct worker *worker, const struct file *file);
/* The condition for making the object visible; `ability` is the one that If-None-Match needs here.
 */
struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability);
/* The server may ignore that condition: HEAD right before. */
bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability);

/* Computes file->sums of the whole content with at least these kinds. NEXT; AGAIN if it changed
 * meanwhile. */
enum step file_sum(struct worker *worker, struct file *file, unsigned kinds);
/* The file changed while it was read: opens what is there now, says so, gives up after too many.
 * AGAIN or SETTLED. */
enum step file_changed(struct worker *worker, struct file *file);
/* Step 6, once proven: marks this version done and reports the event. */
enum step file_done(
	struct worker *worker, struct file *file, const char *etag, enum s3once_event_type event);
/* Nothing is left to do: reports the event. SETTLED. */
enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event);
/* Writes a done mark; NEXT if it stands. */
enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version);
/* Step 7: the file cannot be uploaded; its mark, if it is ours, says why. */
enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem);
/* Puts the file's candidate back into the queue until then. LATER. */
enum step file_later(struct worker *worker, struct file *file, uint64_t not_before_ns);
/* What an outcome other than OK leads to when no step knows better: fail the file, end the run, or
 * try later. */
enum step file_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* An error of reading the file: changed, gone, unreadable, or ended by us. */
enum step file_read_error(struct worker *worker, struct file *file, int error);

/* The body of a pool thread: until the queue has no more jobs. */
int worker_new(struct run *run, size_t buffer_bytes, struct worker **ret);
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);
void file_free(struct file *file);
