/* The bounded queue between the scan and the workers. It decides which task is next. Thread-safe.
 *
 * The scan adds candidates in blocks of up to BLOCK_FILES. Each process begins the blocks in a
 * random order. A block is opened by its first small file: only once that file is claimed are the
 * others released to the workers. So if several uploaders come to the same block, only one goes on
 * with it. The others find the mark of that one file claimed, and put their block back. When blocks
 * that came back are due, the marks of all their files are read again together.
 *
 * Files that are released take turns (struct turns). A file that a worker gives back waits until it
 * is due. */
#pragma once
#include "marks/mark.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCK_FILES 50

/* What is known, before a file is begun, about whether the bucket has its object. */
enum in_bucket {
	BUCKET_UNASKED,  /* not asked: the marks know the files around it */
	BUCKET_UNLISTED, /* no listing covers it: only a HEAD shows whether S3 has its object */
	BUCKET_LISTED,   /* candidate.listed_suffixes has the objects that the listing has shown */
};

/* A file that may have to be sent. Owns its strings. */
struct candidate {
	struct candidate *next;
	char *key, *path, *relative; /* in one allocation with the struct */
	char *object_key; /* the object's key: `key`, and the suffix of compression if there is one
			   */
	char *suffix;     /* that suffix, at the end of `object_key`; there is room for SUFFIX_MAX
			     characters */
	char *content_id; /* the content's id, or "" */
	size_t source;
	uint64_t size;
	int64_t mtime_ns;
	dev_t dev;
	ino_t ino;
	uint64_t failing_ns; /* the time since it began to fail, pauses included */
	uint64_t kept_bytes; /* bytes of its open upload that S3 keeps, as counted in report.kept */
	uint64_t contested_ns;  /* the time when another uploader was met in its block; 0: never */
	uint64_t held_since_ns; /* the time when another uploader was first seen to hold it; 0:
				   never */
	enum mark_state mark_state;      /* the state of its mark at the last read */
	char mark_session[ID_CHARS + 1]; /* the session of that mark, or "" */
	unsigned block_serial;           /* serial number of the block it came in */
	unsigned failures;               /* failures to send it, for reasons that may pass */
	unsigned parts_done;             /* the highest number of its parts that S3 ever had; see
					    note_parts_done() */
	enum in_bucket in_bucket;
	unsigned char listed_suffixes; /* bit N: the listing has its key with family_suffix(N) */
	bool opens_block;              /* the other files of its block wait until it is claimed */
	/* Its mark is read before it is claimed, since another uploader was seen in the run's
	 * files, and may have claimed this one by now. */
	bool needs_mark_read;
	bool was_compressed; /* it was found compressed, as `suffix` says */
	bool is_rotated;     /* it is a log, which may have been renamed by now */
	bool may_grow;       /* it is a log that is not removed: its writer may only be quiet */
	bool is_piece;       /* a range of a log that grows, from offset on: see scan_open_piece */
	bool is_piped;       /* the input of options.read, not a file: see spool.c */
	bool is_new;         /* if is_piece: no earlier run knew the range */
	uint64_t offset;     /* if is_piece: the start of the range in the log */
	bool held_was_reported; /* it was reported as held */
	bool was_sent;          /* a request of this run has stored its object, or may have */
	bool is_completing; /* S3 may still be at work on a CompleteMultipartUpload without reply */
	bool was_marked_done; /* this run has marked it done, or may have */
};
/* Notes that another uploader holds the file. */
void candidate_note_held(struct candidate *candidate);
/* Whether the file has been held for five seconds since the first candidate_note_held(), and was
 * not reported as held before. Where several uploaders share a tree, many files are held for a
 * moment, which is not worth a report. */
bool candidate_held_report_is_due(const struct candidate *candidate);
/* The rank of a file in a run with --final, on a host that is about to end: the lowest rank goes
 * first. Small files come before large ones. Small files are ordered by age, the oldest first, and
 * large ones by size, the smallest first. */
uint64_t candidate_rank(const struct candidate *candidate);

/* Some candidates, in any order. */
struct block {
	struct block *next, *before; /* its neighbours in the list that it is in */
	struct candidate *files[BLOCK_FILES];
	size_t n;
	uint64_t due_ns; /* the clock_boot_ns() from which it may be taken */
	uint64_t rank;   /* among blocks that are due at the same time, the lowest goes first */
	bool came_back;  /* a worker gave its files back: their marks are read again */
};

/* The most large bodies that are ever sent at once. Each has a buffer of its share of the
 * memory. */
#define LARGE_BODIES_MAX 64

/* The parts of an open upload that are still to be handed out. The struct is a member of the
 * upload. */
struct parts {
	struct parts *next;
	unsigned next_index, end_index; /* [next_index, end_index) are still to be handed out */
	unsigned under_way;             /* parts that a worker is sending */
};

enum task_kind {
	TASK_END,    /* there is nothing more to do */
	TASK_FILE,   /* a file is to be brought to its mark */
	TASK_CHECK,  /* the marks of files that came back are to be read again */
	TASK_PART,   /* a part of an open upload is to be sent */
	TASK_RETIRE, /* this worker is not needed any more */
};
/* The work that a worker takes from the queue. */
struct task {
	enum task_kind kind;
	/* For FILE: the file, which the worker owns now. */
	struct candidate *file;
	/* For CHECK: all blocks that came back and are due, linked by `next`, which the worker owns
	 * now. The worker reads the marks again, and gives files back by queue_later() and
	 * queue_ready(). */
	struct block *blocks;
	/* For PART: an upload, and the number of the part. */
	struct parts *parts;
	unsigned index;
	/* Only the queue uses these three. */
	bool is_large;         /* it counts among the large bodies under way */
	bool begins_upload;    /* it begins a multipart upload */
	unsigned block_serial; /* that of the block that its file opens; 0: it opens none */
	/* The worker sets these for queue_done(). */
	uint64_t read_ns;  /* how long the file was read */
	bool has_follower; /* the worker has a task from queue_take_ahead() */
};

/* Files in the order in which they came. */
struct file_line {
	struct candidate *first, **end;
	size_t n;
};
enum { LINE_SMALL, LINE_WHOLE, LINE_SPLIT, LINES }; /* WHOLE: large; SPLIT: sent in parts */

/* The tasks that are ready to be taken from the queue, and the turns of their kinds. Small files,
 * large files and the parts of open uploads take turns, so that no kind waits until another is
 * finished. While small files wait, half of the workers are for small files. Not thread-safe: the
 * mutex of the queue guards it. */
struct turns {
	unsigned workers;    /* the most workers that may be at work at once; may change */
	unsigned max_large;  /* the most of these that may send large bodies; may change */
	uint64_t part_bytes; /* a larger file is sent in parts */
	bool is_ranked;      /* files go by candidate_rank(), not by turns; to be set at first */
	struct file_line lines[LINES];
	struct parts *parts;        /* the open uploads with parts to hand out, in turn */
	unsigned large;             /* large bodies under way */
	unsigned uploads_beginning; /* tasks under way that begin a multipart upload */
	/* Uploads from turns_open_parts() until their last part has ended, which queue_part_ended()
	 * notes. */
	unsigned uploads_open;
	unsigned small_since_large; /* small files that were taken since the last large task */
	bool part_was_last;         /* the last large task was a part */
};

/* Initialises `turns`, which must not be moved afterwards. */
void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes);
/* Takes out any file, and the caller owns the file then. Returns NULL if none is left. */
struct candidate *turns_pop_any(struct turns *turns);
/* Adds a file at the end of its line. `turns` owns it then. With ranks, its rank alone decides when
 * it is begun, here and in turns_add_first(). */
void turns_add(struct turns *turns, struct candidate *file);
/* Likewise, at the front of its line. */
void turns_add_first(struct turns *turns, struct candidate *file);
/* Takes out the files of the block with this serial number, and the caller owns them then. Returns
 * their number. */
size_t turns_remove_block(struct turns *turns, unsigned serial, struct candidate *ret[BLOCK_FILES]);
/* Hands out the parts [0, n) of an upload from now on. Initialises *parts, which must not be moved
 * before its last part has ended. */
void turns_open_parts(struct turns *turns, struct parts *parts, unsigned n);
/* Hands out no more parts of this upload. */
void turns_drop_parts(struct turns *turns, struct parts *parts);
/* Takes out the next file or part. Returns false if there is none whose turn has come. */
bool turns_take(struct turns *turns, struct task *ret);
/* The small file that turns_take() would find; NULL if that is another task or none. */
const struct candidate *turns_next_small(const struct turns *turns);
/* Whether turns_take() would find a file or a part. */
bool turns_has(const struct turns *turns);
/* Whether anything large is under way or waits. */
bool turns_has_large(const struct turns *turns);
/* Notes that a task from turns_take() has ended. */
void turns_done(struct turns *turns, const struct task *task);

#define QUEUE_FILES 8192 /* candidates held at once; the scan waits for room */

struct queue;
/* Makes a queue that hands out at most `max_tasks` tasks at once. Files of more than part_bytes are
 * sent in parts. With `is_ranked`, files in the queue go by candidate_rank() and not by turns, and
 * blocks go by the rank of their first file. Returns 0 or -ENOMEM. */
int queue_new(unsigned max_tasks, uint64_t part_bytes, bool is_ranked, struct queue **ret);
/* Frees the queue and the files that are left in it. The uploads must have been taken by
 * queue_pop_upload() before. */
void queue_free(struct queue *queue);

/* Functions for the scan. */

/* Waits for room, and adds the candidates as one block. Returns false, and takes nothing, if the
 * queue is closed. */
bool queue_add(struct queue *queue, struct candidate *const *files, size_t n);
enum queue_phase {
	QUEUE_GATHERS,  /* workers wait, so that there will be blocks to choose from */
	QUEUE_FLOWS,    /* workers get tasks */
	QUEUE_COMPLETE, /* the scan adds nothing more */
	QUEUE_CLOSED,   /* no task is handed out, and every worker that waits for one returns */
};
/* Enters this phase, unless the queue is in a later one. CLOSED ends the run. */
void queue_enter(struct queue *queue, enum queue_phase phase);

/* Functions for the main thread, which sets the levels. */

/* Sets the most tasks that may be under way from now on, which is at most that of queue_new(), and
 * the most large bodies among them. Workers beyond that wait. */
void queue_set_level(struct queue *queue, unsigned workers, unsigned large);
/* Makes n workers end as soon as they ask for a task. They get TASK_RETIRE, which needs no
 * queue_done(). */
void queue_retire(struct queue *queue, unsigned n);
/* Events so far, and the work under way. */
struct queue_seen {
	uint64_t files, read_ns; /* small files that ended, and how long they were read */
	unsigned large;          /* large bodies under way */
	bool has_large;          /* large files are under way, or wait */
	bool is_idle;            /* no task is under way */
};
/* Sets *ret to the figures so far. To be called often, since this also releases the files and
 * blocks that are due by now, and wakes a worker for them. */
void queue_release_due(struct queue *queue, struct queue_seen *ret);

/* Functions for workers. */

/* Waits for the next task. It is TASK_END once all is done or the queue is closed. Each task but
 * END and RETIRE has to be ended by one queue_done(). */
void queue_take(struct queue *queue, struct task *ret);
void queue_done(struct queue *queue, const struct task *task);
/* Takes a further task without waiting, for a worker that is about to end its present one. Returns
 * false if the next task is not a small file without a mark, or if the worker might have to
 * retire. */
bool queue_take_ahead(struct queue *queue, struct task *ret);
/* Takes back files of one block that may be begun now, since their marks were read again. */
void queue_ready(struct queue *queue, struct candidate *const *files, size_t n);
/* Takes back files that are to be begun again, but not before a given time (clock_boot_ns()). They
 * come after the files that the scan has found by that time. Without ranks they come before the
 * files that the scan finds a minute later. */
void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns);
/* Releases the rest of the block that this file opens, once the file is claimed. Without this call,
 * the rest is released when the file's task has ended, or after two seconds. The file stays the
 * caller's. */
void queue_release_block(struct queue *queue, const struct candidate *file);
/* To be called when another uploader turns out to be in the block with this serial number. The
 * files of the block that are not begun come back a moment later. Files that a worker has in hand
 * stay there. From now on, needs_mark_read is set for the first file of each block and for large
 * files. */
void queue_put_back_block(struct queue *queue, unsigned serial);
/* From now on, or until it is called with false, workers begin a further block before they go on in
 * one that is open. So the next files are those of other folders. Ranks alone order files if there
 * are any, and this changes nothing then. */
void queue_spread(struct queue *queue, bool does);
/* Whether a block is due that no worker has begun. */
bool queue_has_block(struct queue *queue);
/* Hands out the parts [0, n) of an upload from now on. */
void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n);
enum part_result { PART_STORED, PART_FAILED };
/* Notes that a part has ended. After a failure, no more parts of this upload are handed out.
 * Returns true to exactly one caller, once no part of the upload is under way or still to come. */
bool queue_part_ended(struct queue *queue, struct parts *parts, enum part_result result);

/* After the last worker has ended, returns an upload with parts that were not handed out, one a
 * call, and then NULL. */
struct parts *queue_pop_upload(struct queue *queue);
/* After the last worker has ended, returns a file that is left in the queue, one a call, and then
 * NULL. The caller frees each. */
struct candidate *queue_pop_file(struct queue *queue);
