/* The bounded queue between the scan and the workers. Candidates travel in blocks: a block is read
 * again before its files are begun (what did other uploaders take meanwhile?), and each process
 * goes through the blocks it has in an order of its own, so that many uploaders over one tree do
 * not fight for the same files. At the beginning, and once other uploaders were seen, one file of a
 * block is begun first, and the others wait until it is claimed: of uploaders that open the same
 * block in the same moment only one goes on with it. What is ready takes turns (turns.h).
 * Thread-safe. */
#pragma once
#include "upload/queue/turns.h"

#define QUEUE_FILES 8192 /* candidates held at once; the scan waits for room */

struct queue;
/* At most `most` tasks at once; files of more than part_bytes are sent in parts. 0 or -ENOMEM. */
int queue_new(unsigned most, uint64_t part_bytes, struct queue **ret);
/* Frees what is left in it; parts must be gone (queue_leftover). */
void queue_free(struct queue *queue);

/* The scan's side. */

/* Takes the candidates, and waits for room. Returns false, and takes nothing, once the queue is
 * closed. read_ns is when their marks were read, by clock_boot_ns(). */
bool queue_add(struct queue *queue, struct candidate *const *files, size_t n, uint64_t read_ns);
/* Workers may begin, since enough is there to choose from. */
void queue_flow(struct queue *queue);
/* The scan will add nothing more. */
void queue_complete(struct queue *queue);

/* The side of who sets the level. */

/* From now on, so many tasks go at once, at most as many as in queue_new(). Workers beyond that
 * wait.
 */
void queue_set_level(struct queue *queue, unsigned level);
/* So many workers are to end as soon as they ask for a task. They get TASK_RETIRE, which needs no
 * queue_done(). */
void queue_retire(struct queue *queue, unsigned n);
/* What happened since the window began. */
struct queue_window {
	uint64_t began_ns;                 /* clock_boot_ns() */
	uint64_t counts_from_ns;           /* files that were begun earlier do not count */
	uint64_t files, files_ns, read_ns; /* small files that ended in it; how long they took, and
					      were read, added up. The first one of a worker does
					      not count: it waits for connections */
	uint64_t idle_ns;                  /* how long workers had nothing to do, added up */
	unsigned warm;                     /* workers that have ended a task, whenever */
	bool has_company;                  /* other uploaders were seen in these files */
	unsigned bulk;                     /* large bodies that may go at once; 0: there are none */
};
void queue_window(struct queue *queue, struct queue_window *ret);
/* Begins the next window. is_like_before says that nothing has changed, so that files which were
 * begun in the last window count in this one. */
void queue_begin_window(struct queue *queue, bool is_like_before);

/* The worker's side. */

/* Waits for the next task, which is TASK_END when all is done or the queue is closed. Each task but
 * END and RETIRE is ended by one queue_done(). */
void queue_take(struct queue *queue, struct task *ret);
void queue_done(struct queue *queue, const struct task *task);
/* So many bytes of large bodies have moved, or needed no sending. How many large bodies go at once
 * depends on it. Lock-free. */
void queue_moved(struct queue *queue, uint64_t bytes);
/* A large body was cut: fewer go at once. */
void queue_cut(struct queue *queue);
/* Ends a TASK_CHECK, once for each. Takes the files of its block that may be begun now, in this
 * order, of which there may be none. One of them may be begun before the rest. */
void queue_ready(struct queue *queue, struct candidate *const *files, size_t n);
/* Takes files to look at again, but not before a given time (clock_boot_ns()). */
void queue_later(
	struct queue *queue, struct candidate *const *files, size_t n, uint64_t not_before_ns);
/* Takes a file to begin once more, after all other files and not before a given time. */
void queue_again(struct queue *queue, struct candidate *file, uint64_t not_before_ns);
/* Takes files of a block that another uploader is at work in. It will be read again last. */
void queue_shared(struct queue *queue, struct candidate *const *files, size_t n);
/* The file is claimed, so that the rest of its block may be begun. The rest waits for this for half
 * a second at most, and no longer than until the file's task has ended. The file stays the
 * caller's. */
void queue_claimed(struct queue *queue, const struct candidate *file);
/* Another uploader turned out to be in the block with this serial number, too. What is not begun of
 * it goes back, as by queue_shared(). What the caller has in hand stays the caller's. */
void queue_contested(struct queue *queue, unsigned block);
/* Hands out the parts [0, n) of an upload from now on. */
void queue_open_parts(struct queue *queue, struct parts *parts, unsigned n);
/* A part has ended. With `give_up`, no more of this upload is handed out. Returns true to exactly
 * one caller, once nothing of the upload is under way or to come any more. */
bool queue_part_ended(struct queue *queue, struct parts *parts, bool give_up);

/* From now on no task is handed out, and every worker that waits for one returns. */
void queue_close(struct queue *queue);
/* After the last worker has ended, returns the uploads that were never handed out to the end, one a
 * call, and NULL at the end. */
struct parts *queue_leftover(struct queue *queue);
/* After the last worker has ended, returns when the oldest of the files that are left in the queue
 * was modified (ns since 1970), or INT64_MAX if there is none. */
int64_t queue_oldest_ns(const struct queue *queue);
