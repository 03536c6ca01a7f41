/* A file that is under way: its steps, and the data that they share. file.c derives values from it
 * and ends its turn, and file_outcome.c decides about errors. All functions may block, in the
 * thread of the worker. */
#pragma once
#include "marks/judge_object.h"
#include "upload/body/multipart_plan.h"
#include "upload/run.h"

struct worker;

#define FILE_RESTARTS_MAX 8 /* the most restarts of one file in one turn */
/* The most times that a file is sent again because S3 stored wrong bytes. */
#define FILE_DAMAGES_MAX 3

/* The steps of a file in its turn, and the ways in which the turn ends. worker.c performs the
 * steps. Each returns the step that follows it, or the end of the turn:
 *
 *   OPEN ---> CLAIM ---> ELSEWHERE ---> SEND ---> PROVEN
 *     ^         |            |          ^  |
 *     |         |            |          |  | S3 may hold an object
 *     |         |            |          |  v
 *     |         |            +--------> LOOK ---> PROVEN, if it has the file's content
 *     |         |                        |
 *     +---------+------------------------+
 *      the mark is judged once more
 *
 * "Returns NEXT, or the step to take instead": any answer but NEXT is the step with which the
 * file goes on, or the end of its turn.
 *
 * The values are compared by their order: first come the steps, then the ends that settle the
 * file, and then those after which the file is no longer this worker's. */
enum step {
	/* The function has succeeded, and its caller continues: a whole step is followed by the
	 * next one. */
	STEP_NEXT,
	STEP_OPEN,      /* open the current version */
	STEP_CLAIM,     /* judge and claim the mark */
	STEP_ELSEWHERE, /* search for its content under other suffixes */
	/* Send a HEAD first, since S3 may have an object: an upload is gone, a reply is lost, or S3
	 * stored wrong bytes. */
	STEP_LOOK,
	STEP_SEND, /* send it: as far as is known, S3 has no object but the one to be replaced */
	/* The turn has ended, the file was reported and counted, and there is no more work. */
	STEP_SETTLED, /* it failed, changed and may not replace its object, or is held by another */
	/* It failed, since it changed after its key or its content's id was made. No later run has
	 * the same key or id for it, and so none will resume its upload. */
	STEP_STRANDED,
	/* It is not to be sent: because of its age or size, with --if-changed=skip, or in a dry
	 * run. */
	STEP_LEFT_OUT,
	STEP_IN_S3,  /* it is in S3 according to its mark */
	STEP_PROVEN, /* as IN_S3, and this turn has read the whole content in file->state */
	/* The turn has ended for this worker, and another worker may have the file. */
	STEP_LATER, /* it was put back into the queue */
	STEP_PARTS, /* its parts are in the queue, and the worker with the last part continues */
	STEP_ASIDE, /* S3 refused it, and the run's refusals own it */
	STEP_OVER,  /* the run is over, and the mark stays unchanged for the next run */
};

/* Only the thread that holds the pointer uses it. */
struct file {
	struct candidate *candidate; /* owned */
	enum step step;              /* the next step, or the end of its turn; set by worker.c */
	struct s3_target target;     /* the object's key and settings */
	int fd;                      /* -1: not open */
	struct file_state state;     /* state of the open file, which may be the copy of a piece */
	/* Size and times may not show a change of the open file. So after the whole content was
	 * read, it is reread before it becomes visible in S3. */
	bool must_reread;
	/* Its file system returns another inode or ctime each time, although the file has the same
	 * size and modification time. Implies must_reread. */
	bool stat_is_unsteady;
	int64_t mtime_ns; /* that of the version being sent; for a piece, at the time it was cut */
	/* The clock_wall_ns() right before it was opened, and its ctime at that time. The ctime is
	 * kept here even if it does not count in `state`. */
	int64_t opened_ns;
	int64_t opened_ctime_ns;
	/* `encoding` and `plan` decide how it is sent. file_open() sets both, the plan by the size
	 * alone. For a large file multipart_choose_plan() sets them again before anything is
	 * sent. Nothing changes them until the sending has ended. */
	const struct encoding *encoding; /* the run's or `own_encoding`; NULL: as it is */
	struct encoding own_encoding;
	struct plan plan; /* plan for the file itself, not for its compressed form */
	/* Some servers want all parts of an upload to have the same length. If the file is
	 * compressed for such a server, and a range of it did not fit into a part of that length,
	 * this is the largest range to try next. 0: no limit. */
	uint64_t max_range_bytes;
	/* checksums of the whole content of the open file; no kinds: not read yet */
	struct sums content_sums;
	/* Checksums of the whole object, if the file is sent encoded. Otherwise `bytes` is 0. */
	struct sums object_sums;
	/* The size of the parts in which S3's object was sent. 0: it was sent whole, or the size is
	 * unknown. */
	uint64_t sent_part_bytes;
	/* The checksum of those parts' checksums, as in struct version. */
	char parts_sum[PARTS_SUM_MAX + 1];
	struct mark seen_mark;          /* the mark as last seen while it was not ours */
	struct claim claim;             /* claim of the mark, after CLAIM */
	struct mark_claiming *claiming; /* its claim was submitted (ahead.h); NULL: it was not */
	/* The etag of the object to be replaced, which is the done version or a damaged upload. "":
	 * there is nothing to replace. */
	char replaced_etag[S3_ETAG_MAX + 1];
	/* The server does not support the condition of a write, so a HEAD right before the write
	 * replaces it. */
	bool is_unconditional;
	bool has_given_up; /* it was retried for too long without success, so its end is not
			      progress */
	unsigned judgings; /* number of times that its mark was judged in this turn */
	unsigned restarts; /* number of restarts of this turn, for any reason */
	unsigned damages;  /* number of times that S3 stored wrong bytes */
	uint64_t begun_ns; /* clock_boot_ns() at the beginning of this turn */
	struct file_progress progress; /* the part of the file that was sent */
};

/* Makes a file from the candidate, and takes ownership of that. Returns NULL, and takes nothing, if
 * out of memory. */
struct file *file_new(struct run *run, struct candidate *candidate);
void file_free(struct file *file);
/* Call it before a file's turn, and before the work on one of its parts. It shortens the time for
 * retries of the worker's requests by the time for which the file has already been failing. */
void file_limit_requests(struct worker *worker, const struct candidate *candidate);
/* Returns the "host:directory" of the file's source, as its mark records it. Borrowed. */
const char *file_source(const struct worker *worker, const struct file *file);
/* Returns the arguments of a request about the file's mark. Borrows. */
struct mark_ref file_mark_ref(struct worker *worker, const struct file *file);
/* Reports the number of bytes in parts that S3 keeps for a later run or turn. It replaces the
 * number reported for this file before. */
void file_set_kept_bytes(struct file *file, uint64_t bytes);
/* Returns the description of the file for an event. Borrows. */
struct report_file file_about(const struct file *file);
/* Reports an event about the file. problem may be NULL. */
void file_report(struct worker *worker, const struct file *file, enum s3once_event_type event,
	const struct problem *problem);
/* Returns the opened version for comparison with a mark (mark_says()). Borrows. */
struct file_version file_opened_version(const struct worker *worker, const struct file *file);
/* The metadata of the object that this file becomes. */
struct s3_meta file_meta(const struct worker *worker, const struct file *file);
/* The condition for making the object visible. `feature` is S3_PUT_CONDITION or
 * S3_COMPLETE_CONDITION, whichever request it is. */
struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_feature feature);
/* Whether the server may ignore the condition of file_condition(), so that a HEAD has to come right
 * before the request. */
bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_feature feature);

/* The file's turn ends. */

/* Ends the turn of a file that needs no more work: reports the event, and returns LEFT_OUT, IN_S3
 * or PROVEN accordingly. With LEFT_OUT, a mark that this run has claimed is set to failed.
 *
 * SKIPPED means that this very version is done according to file->seen_mark. This run may have
 * written that mark itself in an earlier turn whose reply was lost. Then UPLOADED or ADOPTED is
 * reported instead, which the earlier turn could not report. */
enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event);
/* Whether file->seen_mark says done, and this run wrote that mark. */
bool file_was_done_here(const struct worker *worker, const struct file *file);
/* Whether the file is the input of a pipe that was not read yet, so that its content is unknown. Do
 * not call it after file_put_back(): the file has no candidate then. */
bool file_is_unread_pipe(const struct file *file);
/* Step 7: the file cannot be uploaded. Reports the reason, and writes it into the mark if that is
 * ours, by a claim of this turn or of an earlier one. Returns SETTLED. */
enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem);
/* Puts the file's candidate back into the queue, to be taken at not_before_ns at the earliest.
 * Returns LATER. */
enum step file_put_back(struct worker *worker, struct file *file, uint64_t not_before_ns);

/* Handles an outcome other than OK that no step handles itself. The file fails, the run ends, or
 * the file is retried later. Or the file is put aside until it is clear whether S3 refuses all
 * files. */
enum step file_handle_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* Likewise for a request to the marks. DENIED or ABSENT concern all files, and the run ends. */
enum step file_handle_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem);
/* Handles an error of the file itself that may pass. Reports it, and begins the file once more
 * after a pause. Fails the file if this has gone on for give_up_after_ms. */
enum step file_retry(struct worker *worker, struct file *file, const struct problem *problem);
