/* The bounded queue between the scan and the workers. It decides which task is next. Thread-safe.
 *
 * The scan adds candidates in blocks of up to BLOCK_FILES. Each process begins the blocks in a
 * random order. A block is opened by its first small file: only once that file is claimed are the
 * others released to the workers. So if several uploaders begin the same block, only one of them
 * continues. The others find the mark of its first file claimed, and put the block back. Once it is
 * due again, the marks of all of its files are reread together.
 *
 * Released files take turns (struct turns). A file that a worker puts back waits until it is
 * due. */
#pragma once
#include "marks/mark.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCK_FILES 50

/* Knowledge about a file's object in the bucket, before the file is begun. */
enum in_bucket {
	BUCKET_UNASKED,  /* not checked: the files around it have marks */
	BUCKET_UNLISTED, /* not covered by a listing: only a HEAD can show its object */
	BUCKET_LISTED,   /* listed: candidate.listed_suffixes has the result */
};

/* A file that may have to be sent. Owns its strings. */
struct candidate {
	struct candidate *next;
	char *key, *path, *relative; /* in one allocation with the struct */
	char *object_key; /* the object's key: `key`, and the suffix of compression if there is one
			   */
	char *suffix;     /* that suffix, at the end of `object_key`, with room for SUFFIX_MAX
			     characters */
	char *content_id; /* the content's id, or "" */
	size_t source;
	uint64_t size;
	int64_t mtime_ns;
	dev_t dev;
	ino_t ino;
	uint64_t failing_ns; /* duration of its failures so far, pauses included */
	uint64_t kept_bytes; /* bytes in the parts of its open upload, as counted in report.kept */
	uint64_t contested_ns; /* time at which another uploader was found in its block; 0: never */
	uint64_t held_since_ns;     /* time at which another uploader was first found to hold it; 0:
				       never */
	enum mark_state mark_state; /* the state of its mark at the last read */
	char mark_session[ID_CHARS + 1]; /* the session of that mark, or "" */
	unsigned block_serial;           /* serial number of the block it came in */
	unsigned failures;               /* temporary failures to send it */
	unsigned parts_done;             /* the most parts that S3 has had; see note_parts_done() */
	enum in_bucket in_bucket;
	unsigned char
		listed_suffixes; /* bit N: the listing contains its key with family_suffix(N) */
	bool opens_block; /* it is the first of its block: the others wait until it is claimed */
	/* Its mark is read before the claim, since another uploader works on files of this run, and
	 * may have claimed this one. */
	bool needs_mark_read;
	bool was_compressed; /* the scan found it compressed; `suffix` is its suffix */
	bool is_rotated;     /* it is a rotated log, which may be renamed at any time */
	bool may_grow;       /* it is a log whose writer may only be quiet, so it is not removed */
	bool is_piece;       /* it is a piece of a growing log, which begins at `offset`: see
				scan_open_piece() */
	bool is_piped;       /* it is the input of options.read, not a file: see spool.c */
	bool is_new;         /* if is_piece: this run has cut the piece */
	uint64_t offset;     /* if is_piece: its first byte in the log */
	bool held_was_reported; /* reported as held */
	bool was_sent;          /* this run has stored its object, or may have */
	bool is_completing;   /* a CompleteMultipartUpload without a reply may still be under way in
				 S3 */
	bool was_marked_done; /* this run has marked it done, or may have done so */
};
/* Notes that another uploader holds the file. */
void candidate_note_held(struct candidate *candidate);
/* Whether the file has been held for five seconds since the first candidate_note_held(), and was
 * not reported as held before. If several uploaders share a tree, many files are held only briefly,
 * and need no report. */
bool candidate_held_report_is_due(const struct candidate *candidate);
/* The rank of a file in a run with --final, where the file with the lowest rank is sent first.
 * Small files come before large ones. Small files are ordered by age, the oldest first, and large
 * ones by size, the smallest first. */
uint64_t candidate_rank(const struct candidate *candidate);

/* Some candidates, in any order. */
struct block {
	struct block *next, *before; /* its neighbours in a list */
	struct candidate *files[BLOCK_FILES];
	size_t n;
	uint64_t due_ns; /* clock_boot_ns() from which on it may be taken */
	uint64_t rank;   /* of the blocks that are due, the one with the lowest rank goes first */
	bool came_back;  /* a worker has put its files back: their marks are reread */
};

/* Limit of concurrent large bodies. Each has a buffer, which is its share of --memory. */
#define LARGE_BODIES_MAX 64

/* The parts of an open upload that no worker has taken yet. The struct is a member of the
 * upload. */
struct parts {
	struct parts *next;
	unsigned next_index, end_index; /* [next_index, end_index) are not taken yet */
	unsigned under_way;             /* parts that are being sent */
};

enum task_kind {
	TASK_END,    /* no more work */
	TASK_FILE,   /* upload a file */
	TASK_CHECK,  /* reread the marks of files that were put back */
	TASK_PART,   /* send a part of an open upload */
	TASK_RETIRE, /* the worker is no longer needed, and ends */
};
/* The work that a worker takes from the queue. */
struct task {
	enum task_kind kind;
	/* For FILE: the file, which the worker owns now. */
	struct candidate *file;
	/* For CHECK: all blocks that were put back and are due, linked by `next`, which the worker
	 * owns now. It rereads their marks, and returns files by queue_put_back_later() and
	 * queue_put_back_checked(). */
	struct block *blocks;
	/* For PART: an upload, and the number of the part. */
	struct parts *parts;
	unsigned index;
	/* The next three are for the queue only. */
	bool is_large;         /* it counts as a large body under way */
	bool begins_upload;    /* it begins a multipart upload */
	unsigned block_serial; /* serial number of the block that its file opens; 0: none */
	/* The worker sets these for queue_done(). */
	uint64_t read_ns;  /* time for reading the file */
	bool has_follower; /* the worker has a task from queue_take_ahead() */
};

/* Files, first in, first out. */
struct file_line {
	struct candidate *first, **end;
	size_t n;
};
enum { LINE_SMALL, LINE_WHOLE, LINE_SPLIT, LINES }; /* WHOLE: large; SPLIT: sent in parts */

/* The tasks that are ready to be taken from the queue, and the turns of their kinds. Small files,
 * large files and the parts of open uploads take turns, so that no kind waits until another is
 * finished. While small files wait, half of the workers are reserved for them. Not thread-safe: the
 * mutex of the queue guards it. */
struct turns {
	unsigned workers;    /* limit of concurrent workers; may change */
	unsigned max_large;  /* limit of those that send large bodies; may change */
	uint64_t part_bytes; /* a larger file is sent in parts */
	bool is_ranked; /* files are ordered by candidate_rank(), without turns; set it first */
	struct file_line lines[LINES];
	struct parts *parts;        /* the open uploads with parts to hand out, in turn */
	unsigned large;             /* large bodies under way */
	unsigned uploads_beginning; /* tasks under way that begin a multipart upload */
	/* Uploads from turns_open_parts() until their last part has ended, which queue_end_part()
	 * notes. */
	unsigned uploads_open;
	unsigned small_since_large; /* small files taken since the last large task */
	bool part_was_last;         /* the last large task was a part */
};

/* Initialises `turns`, which must not be moved afterwards. */
void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes);
/* Removes and returns any file, which the caller then owns. Returns NULL if none is left. */
struct candidate *turns_pop_any(struct turns *turns);
/* Adds a file at the end of its line, and takes ownership. With ranks, the rank alone decides the
 * file's place, here and in turns_add_first(). */
void turns_add(struct turns *turns, struct candidate *file);
/* Likewise, at the front of its line. */
void turns_add_first(struct turns *turns, struct candidate *file);
/* Removes the files of the block with this serial number, which the caller then owns. Returns their
 * number. */
size_t turns_remove_block(struct turns *turns, unsigned serial, struct candidate *ret[BLOCK_FILES]);
/* Hands out the parts [0, n) of an upload from now on. Initialises *parts, which must not be moved
 * before its last part has ended. */
void turns_open_parts(struct turns *turns, struct parts *parts, unsigned n);
/* Stops handing out parts of this upload. */
void turns_drop_parts(struct turns *turns, struct parts *parts);
/* Removes the next file or part. Returns false if none may be begun now. */
bool turns_take(struct turns *turns, struct task *ret);
/* The file that turns_take() would take next. NULL if that is not a small file, or if there is no
 * task. */
const struct candidate *turns_next_small(const struct turns *turns);
/* Whether turns_take() would find a file or a part. */
bool turns_has(const struct turns *turns);
/* Whether a large file or a part is under way or waits. */
bool turns_has_large(const struct turns *turns);
/* Notes that a task from turns_take() has ended. */
void turns_done(struct turns *turns, const struct task *task);

#define QUEUE_FILES 8192 /* candidates held at once; the scan waits for room */

struct queue;
enum queue_order {
	QUEUE_BY_TURNS, /* blocks are begun in a random order, and their files take turns */
	QUEUE_BY_RANK,  /* files go by candidate_rank(), and blocks by that of their first file */
};
/* Makes a queue that hands out at most `max_tasks` tasks at once. Files of more than part_bytes are
 * sent in parts. Returns 0 or -ENOMEM. */
int queue_new(unsigned max_tasks, uint64_t part_bytes, enum queue_order order, struct queue **ret);
/* Frees the queue and the remaining files. Call queue_pop_upload() first for all open uploads. */
void queue_free(struct queue *queue);

/* Functions for the scan. */

/* Waits for room, and adds the candidates as one block. Returns false, and takes nothing, if the
 * queue is closed. */
bool queue_add(struct queue *queue, struct candidate *const *files, size_t n);
enum queue_phase {
	QUEUE_GATHERS,  /* workers wait until there are several blocks to choose from */
	QUEUE_FLOWS,    /* workers get tasks */
	QUEUE_COMPLETE, /* the scan adds nothing more */
	QUEUE_CLOSED,   /* no more tasks; waiting workers return */
};
/* Enters this phase, unless the queue is already in a later one. CLOSED ends the run. */
void queue_enter_phase(struct queue *queue, enum queue_phase phase);

/* Functions for the main thread, which sets the levels. */

/* Sets the limits of concurrent tasks, at most that of queue_new(), and of large bodies among them.
 * Further workers wait. */
void queue_set_level(struct queue *queue, unsigned workers, unsigned large);
/* Lets n workers end: the next n that ask for a task get TASK_RETIRE, which needs no
 * queue_done(). */
void queue_retire_workers(struct queue *queue, unsigned n);
/* Releases the files and blocks that are due, and wakes a worker for them. Call it often, since no
 * worker wakes when something becomes due. */
void queue_release_due(struct queue *queue);
/* Totals so far, and the work under way. */
struct queue_figures {
	uint64_t files, read_ns; /* finished small files, and the time for reading them */
	unsigned large;          /* large bodies under way */
	bool has_large;          /* large files are under way, or wait */
	bool is_idle;            /* no task is under way */
};
void queue_read_figures(struct queue *queue, struct queue_figures *ret);

/* Functions for workers. */

/* Waits for the next task. It is TASK_END once all is done or the queue is closed. Each other task,
 * except RETIRE, requires one call of queue_done(). */
void queue_take(struct queue *queue, struct task *ret);
void queue_done(struct queue *queue, const struct task *task);
/* Takes another task without waiting, for a worker that is about to finish its current one. Returns
 * false if the next task is not a small file without a mark, or if the worker might have to
 * retire. */
bool queue_take_ahead(struct queue *queue, struct task *ret);
/* Puts back files of one block, whose marks were reread, and which may be begun at once. */
void queue_put_back_checked(struct queue *queue, struct candidate *const *files, size_t n);
/* Puts back files that are to be begun again, but not before this clock_boot_ns(). Files that the
 * scan has found by then come first. Without ranks, files that it finds more than a minute later
 * come after them. */
void queue_put_back_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns);
/* Releases the rest of the block that this file opens, once the file is claimed. Without this call,
 * the rest is released when the file's task ends, or after two seconds. The caller keeps the
 * file. */
void queue_release_rest(struct queue *queue, const struct candidate *file);
/* Call it if another uploader works on the block with this serial number. The files of the block
 * that are not begun are put back for a moment. Workers keep the files that they have begun. From
 * now on, needs_mark_read is set for the first file of each block and for large files. */
void queue_put_back_block(struct queue *queue, unsigned serial);
/* Turns spreading on or off. While the queue spreads, workers begin another block before they
 * continue one, so that the next files are in other folders. With ranks, it has no effect. */
void queue_set_spreading(struct queue *queue, bool spreads);
/* Whether there is a block that is due and not begun. */
bool queue_has_due_block(struct queue *queue);
/* Hands out the parts [0, n) of an upload from now on. */
void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n);
enum part_result { PART_STORED, PART_FAILED };
/* Notes the end of a part. After a failure, no more parts of this upload are handed out. Returns
 * true to exactly one caller: when no part is under way, and none is left to hand out. */
bool queue_end_part(struct queue *queue, struct parts *parts, enum part_result result);

/* After the last worker has ended, each call returns another upload with parts that were not handed
 * out, and finally NULL. */
struct parts *queue_pop_upload(struct queue *queue);
/* After the last worker has ended, each call returns another remaining file, and finally NULL. The
 * caller frees the files. */
struct candidate *queue_pop_file(struct queue *queue);
