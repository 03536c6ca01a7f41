/* The file under way, and what the steps of worker.h share about it: what is derived from it
 * (file.c), reading it (file_read.c), and how its turn ends (file_settle.c, file_outcome.c and
 * file_done.c, each of which builds on those before). All of it blocks, in the thread of the
 * worker. */
#pragma once
#include "upload/body.h"
#include "upload/multipart_plan.h"
#include "upload/run.h"
#include "upload/transfer.h"

struct worker;

#define FILE_RESTARTS_MAX 8 /* of one file in one run */
#define FILE_DAMAGES_MAX                                                                           \
	3 /* how often it is sent again because S3 holds other bytes than it was sent */

/* The file under way. Whoever holds the pointer is the only one to touch it. */
struct file {
	struct candidate *candidate;     /* owned */
	struct s3_target target;         /* its key, and how it is to be stored */
	int fd;                          /* -1: not open */
	struct file_state state;         /* of the version being sent */
	const struct encoding *encoding; /* of what is sent of it; NULL: it is sent as it is */
	struct plan plan;                /* of the file, not of what is made of it */
	struct sums sums;                /* of the whole content of that version, if `summed` */
	bool summed;
	bool is_planned; /* how well it can be compressed is known to the plan, if that matters */
	struct sums stored;       /* of its object, if that is encoded; else its `bytes` are 0 */
	uint64_t sent_part_bytes; /* what S3 holds was sent in parts of this size; 0: whole, or
				     unknown */
	char parts_sum[PARTS_SUM_MAX + 1]; /* of those parts' checksums, as marks have it */
	struct mark seen;                  /* the mark, as last seen, while it is not ours */
	struct claim claim;                /* ours, if `claimed` */
	bool claimed;
	bool must_look;        /* S3 may hold something already: HEAD before anything is sent */
	bool looked_elsewhere; /* under the mark's key with other suffixes, as far as need be */
	bool unconditional;    /* the server does not take the condition for what it is: HEAD right
				  before instead */
	struct version replaces; /* what is to be replaced: the done version, or a damaged upload;
				    its etag "" if there is none */
	bool is_in_s3;           /* its turn has ended so, as was told */
	bool is_left_out;        /* its turn has ended, and it is not to be in S3 as it is now */
	bool has_lost_key;       /* it is another version than its key was made for */
	bool is_proven;          /* by this turn, which has read all of its content as of `state` */
	int64_t opened_ns;       /* clock_wall_ns() when it was opened and `state` was taken */
	int64_t opened_ctime_ns; /* then, also where it does not count in `state` */
	unsigned restarts, damages;
	uint64_t begun_ns; /* when this turn began, clock_boot_ns() */
	struct share share;
};

/* What a step leads to. */
enum step {
	STEP_NEXT,    /* go on with the next step */
	STEP_AGAIN,   /* from the top: the file or the mark is another by now */
	STEP_SETTLED, /* reported and counted; nothing more to do */
	STEP_LATER,   /* put back into the queue */
	STEP_PARTS,   /* its parts are in the queue; whoever ends the last one goes on */
	STEP_ASIDE,   /* refused, and the run's refusals have it: it is theirs now */
	STEP_OVER,    /* the run is over; the mark stays as it is for the next one */
};

/* Takes the candidate. NULL: out of memory, and nothing is taken. */
struct file *file_new(struct run *run, struct candidate *candidate);
void file_free(struct file *file);
struct mark_ref file_mark_ref(struct worker *worker, const struct file *file);
struct report_file file_about(const struct file *file);
/* The metadata that our objects carry. */
struct s3_meta file_meta(const struct worker *worker, const struct file *file);
/* The condition for making the object visible. `ability` is the one that If-None-Match needs here.
 */
struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability);
/* Whether the server may ignore that condition: then a HEAD goes right before. */
bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability);
/* Whether the object's etag is surely an MD5 of what it holds. */
bool file_etag_is_md5(const struct worker *worker, const struct s3_object *object);

/* Remembers for the mark how what S3 holds was sent: whole, or in these parts with these sums. */
void file_note_whole(struct file *file);
void file_note_parts(
	struct file *file, const struct sums *sums, const struct plan *plan, enum checksum kind);

/* Opens what is under the name now, and plans its upload. NEXT, or why not. */
enum step file_open(struct worker *worker, struct file *file);
/* Part `index` of this plan, or without one the whole file, to be sent with this encoding, or NULL.
 */
struct range file_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index);
/* Computes `kinds` of what is sent of a range of the file as it was opened. 0, -ESTALE if it has
 * changed, or another error of body_digest(). */
int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret);
/* Computes file->sums of the whole content with at least these kinds. NEXT; AGAIN if it changed
 * meanwhile. */
enum step file_sum(struct worker *worker, struct file *file, unsigned kinds);
/* What an error of reading the file leads to, given as -errno: it changed (-ESTALE), it is gone or
 * cannot be read, or we ended the reading (-ECANCELED). */
enum step file_read_error(struct worker *worker, struct file *file, int error);

/* Nothing is left to do: reports the event. SETTLED. */
enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event);
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
/* For an error that may pass. Reports it, and begins the file once more after all other files.
 * Fails the file if this has gone on for too long. LATER or SETTLED. */
enum step file_again(struct worker *worker, struct file *file, const struct problem *problem);

/* What an object of ours is a version of, as it says itself. */
struct version file_version_of(const struct worker *worker, const struct s3_object *object);
/* Step 6, once proven: marks this version done and reports the event. SETTLED, or why not. */
enum step file_done(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event);
/* Writes a done mark of any version. NEXT if it stands. */
enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version);
