/* What is ready to be taken from the queue, and whose turn it is. Small files, large files and the
 * parts of open uploads take turns, so that none waits for the end of another. While small files
 * wait, half of the workers are theirs. Not thread-safe: the queue's. */
#pragma once
#include "upload/queue/blocks.h"

/* Never more large bodies than this go at once. Each has a buffer of its share of the memory. */
#define LARGE_MOST 64

/* The parts of an open upload still to hand out: embedded in the upload. */
struct parts {
	struct parts *next;
	unsigned next_index, end_index; /* [next, end) are still to hand out */
	unsigned under_way;
};

enum task_kind {
	TASK_END,    /* there is nothing more to do */
	TASK_FILE,   /* a file is to be brought to its mark */
	TASK_CHECK,  /* the marks of a block are to be read again */
	TASK_PART,   /* a part of an open upload is to be sent */
	TASK_RETIRE, /* this worker is not needed any more */
};
/* What a worker takes from the queue. */
struct task {
	enum task_kind kind;
	/* Of FILE. It is the worker's now. */
	struct candidate *file;
	/* Of CHECK. It is the worker's now, who reads its marks again, sorts the files with
	 * queue_later and queue_shared, and ends with queue_ready. */
	struct block *block;
	/* Of PART: an upload, and which part of it. */
	struct parts *parts;
	unsigned index;
	uint64_t begun_ns; /* clock_boot_ns() when it was handed out */
	/* These three are the queue's. */
	bool is_large;  /* it counts among the large bodies under way */
	bool opens;     /* it begins a file that is to be sent in parts */
	unsigned leads; /* the serial number of the block that waits for the claim, or 0 */
	/* The worker sets these for queue_done(). */
	uint64_t read_ns; /* how long the file was read */
	bool is_first;    /* of its worker: connections had to be made for it */
};

/* Files in the order in which they came. */
struct file_line {
	struct candidate *first, **end;
	size_t n;
};
enum { LINE_SMALL, LINE_WHOLE, LINE_SPLIT, LINES }; /* SPLIT: in parts; WHOLE: up to that */

struct turns {
	unsigned workers;    /* at work at once, at most; may change */
	unsigned large_most; /* large bodies of these, at most; may change */
	uint64_t part_bytes; /* a larger file is sent in parts */
	bool is_ranked;      /* by candidate_rank() in place of turns; may be set at first */
	struct file_line lines[LINES];
	struct parts *parts;   /* each upload in turn */
	unsigned large;        /* bodies under way */
	unsigned being_opened; /* uploads until their parts are there */
	unsigned open;         /* and from then on, until the last part has ended */
	unsigned small_since_large;
	bool part_was_last; /* of parts and whole files */
};

/* In place; it is not moved while it is used. */
void turns_init(struct turns *turns, unsigned workers, uint64_t part_bytes);
/* Any file that is left, which is the caller's then. NULL: none is. */
struct candidate *turns_left(struct turns *turns);
/* Takes the file. With `is_first`, it will be begun before all other files of its kind. */
void turns_add(struct turns *turns, struct candidate *file, bool is_first);
/* Takes out the files of this block, which are the caller's then. Returns how many they are. */
size_t turns_remove_block(struct turns *turns, unsigned block, struct candidate *ret[BLOCK_FILES]);
/* Hands out the parts [0, n) of an upload from now on. */
void turns_open(struct turns *turns, struct parts *parts, unsigned n);
/* Hands out no more of this upload. */
void turns_give_up(struct turns *turns, struct parts *parts);
/* The next file or part; false if there is none whose turn has come. */
bool turns_take(struct turns *turns, struct task *ret);
/* Whether there is one more. */
bool turns_has(const struct turns *turns);
/* Whether anything large is under way or waits. */
bool turns_has_large(const struct turns *turns);
/* The task has ended. */
void turns_done(struct turns *turns, const struct task *task);
