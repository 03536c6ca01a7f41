/* The bounded queue between the scan and the workers: who runs next. Thread-safe.
 *
 * Candidates travel in blocks of up to BLOCK_FILES, which each process begins in an order of its
 * own. The life of a block: it is added by the scan; the marks of its files are read again, since
 * other uploaders may have taken some; one small file of it, which leads, is claimed first, where
 * there may be other uploaders; then the rest is released. So of uploaders that come to the same
 * block at the same moment only one goes on with it. Files that are released take turns (struct
 * turns). A file that comes back waits until it is due. */
#pragma once
#include "marks/mark.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCK_FILES 50

/* A file above this counts as a large body, of which only so many go at once. */
#define SMALL_BYTES_MAX (1U << 20)

/* A file that may have to be sent. Owns its strings. */
struct candidate {
	struct candidate *next;
	char *key, *path, *relative; /* all in one allocation with the struct */
	char *object;  /* the object's key: key, perhaps with the suffix of compression */
	char *suffix;  /* what that has behind the key, with room for SUFFIX_MAX characters */
	char *content; /* the content's id, or "" */
	size_t source;
	uint64_t size;
	int64_t mtime_ns;
	dev_t dev;
	ino_t ino;
	uint64_t failing_ns;       /* for how long it was tried since, pauses included */
	uint64_t kept_bytes;       /* of it in an open upload: as counted in report.kept */
	uint64_t held_since_ns;    /* another uploader was first seen to hold it; 0: never */
	enum mark_state mark;      /* of its mark when that was read last */
	char holder[ID_CHARS + 1]; /* the session of that mark, or "" */
	unsigned block;            /* serial number of the block it came in */
	unsigned failures;         /* how often it could not be sent, for a reason that may pass */
	unsigned parts_done;       /* the most that its upload ever had; more is progress */
	bool leads;                /* the rest of its block waits for its claim */
	bool was_compressed;       /* the suffix is that of the file as it was found */
	bool is_rotated;           /* its name may be another by now */
	bool is_piece; /* a range of a log that grows, from offset on: see scan_open_piece */
	bool is_piped; /* what options.read gives, not a file: see piped.c */
	bool is_new;   /* of such a range: no run before this one knew of it */
	uint64_t offset;
	bool said_held; /* that it is held was told once */
	bool was_sent;  /* a request of this run has made it its object, or may have */
	bool said_done; /* a mark of this run has said that it is done, or may have */
};
/* Many are held for a moment where several uploaders share a tree: nobody is told before five
 * seconds. Notes the first time. */
bool candidate_was_just_seen_held(struct candidate *candidate);
/* Which file goes first where a host is about to end: the lower one. Small files come before large
 * ones, by age, and large ones by size. */
uint64_t candidate_rank(const struct candidate *candidate);

/* Some candidates, in any order. */
struct block {
	struct block *next, *before; /* for whoever holds it */
	struct candidate *files[BLOCK_FILES];
	size_t n;
	uint64_t read_ns; /* when its marks were read */
	uint64_t due_ns;  /* the clock_boot_ns() from which it may be taken */
	uint64_t rank;    /* of those that are due alike, the lowest is the first */
	bool came_back;   /* another uploader was seen in it, or it failed */
};

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

/* What is ready to be taken from the queue, and whose turn it is. Small files, large files and the
 * parts of open uploads take turns, so that none waits for the end of another. While small files
 * wait, half of the workers are theirs. Not thread-safe: the queue's. */
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

#define QUEUE_FILES 8192 /* candidates held at once; the scan waits for room */

struct queue;
/* At most `most` tasks at once; files of more than part_bytes are sent in parts. With `is_ranked`,
 * what the scan finds is begun by candidate_rank() and not by turns, as far as it is in the queue
 * by then, and blocks go by the rank of their first file. 0 or -ENOMEM. */
int queue_new(unsigned most, uint64_t part_bytes, bool is_ranked, struct queue **ret);
/* Frees what is left in it; parts must be gone (queue_leftover). */
void queue_free(struct queue *queue);

/* The scan's side. */

/* Takes the candidates, and waits for room. Returns false, and takes nothing, once the queue is
 * closed. read_ns is when their marks were read, by clock_boot_ns(). */
bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns);
enum queue_phase {
	QUEUE_GATHERS,  /* workers wait until there is enough to choose from, or no room */
	QUEUE_FLOWS,    /* they have begun */
	QUEUE_COMPLETE, /* the scan adds nothing more */
	QUEUE_CLOSED,   /* no task is handed out, and every worker that waits for one returns */
};
/* From now on it is in this phase, unless it is in a later one. Whoever ends the run closes it. */
void queue_enter(struct queue *queue, enum queue_phase phase);

/* The side of the main thread, which sets the levels. */

/* From now on, so many tasks go at once, at most as many as in queue_new(), and so many of them
 * are large bodies. Workers beyond that wait. */
void queue_set_level(struct queue *queue, unsigned workers, unsigned large);
/* So many workers are to end as soon as they ask for a task. They get TASK_RETIRE, which needs no
 * queue_done(). */
void queue_retire(struct queue *queue, unsigned n);
/* What has happened so far, and what is under way. */
struct queue_seen {
	uint64_t files, files_ns, read_ns; /* small files that ended; how long they took, and were
					      read, added up. The first one of a worker does not
					      count, since it waits for connections, and none that
					      was begun before the number of workers changed */
	unsigned warm;                     /* workers that have ended a task */
	unsigned busy, large;              /* tasks under way, and large bodies among them */
	bool has_large;                    /* some are under way, or wait */
	bool has_company;                  /* other uploaders were seen in these files */
};
/* To be called often: wakes a worker where a block has become due meanwhile, or the rest of one. */
void queue_look(struct queue *queue, struct queue_seen *ret);

/* The worker's side. */

/* Waits for the next task, which is TASK_END when all is done or the queue is closed. Each task but
 * END and RETIRE is ended by one queue_done(). */
void queue_take(struct queue *queue, struct task *ret);
void queue_done(struct queue *queue, const struct task *task);
/* Ends a TASK_CHECK, once for each. Takes the files of its block that may be begun now, in this
 * order, of which there may be none. One of them may be begun before the rest. */
void queue_ready(struct queue *queue, struct candidate *const *files, size_t n);
/* Takes files to look at or begin again, not before a given time (clock_boot_ns()): after what the
 * scan has found until then, but before what it finds a minute later. */
void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns);
/* Takes files of a block that another uploader is at work in. It will be read again as
 * one that is due now. */
void queue_shared(struct queue *queue, struct candidate *const *files, size_t n);
/* The file, which leads its block, is claimed, so that the rest of its block may be begun. The rest
 * waits for this no longer than until the file's task has ended, and than half a second. The file
 * stays the caller's.
 */
void queue_claimed(struct queue *queue, const struct candidate *file);
/* Another uploader turned out to be in the block with this serial number, too. What is not begun of
 * it goes back, as by queue_shared(). What the caller has in hand stays the caller's. */
void queue_contested(struct queue *queue, unsigned block);
/* Hands out the parts [0, n) of an upload from now on. */
void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n);
/* A part has ended. With `give_up`, no more of this upload is handed out. Returns true to exactly
 * one caller, once nothing of the upload is under way or to come any more. */
bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up);

/* After the last worker has ended, returns the uploads that were never handed out to the end, one a
 * call, and NULL at the end. */
struct parts *queue_leftover(struct queue *queue);
/* Likewise of the files that are left in the queue. The caller frees each. */
struct candidate *queue_left(struct queue *queue);
