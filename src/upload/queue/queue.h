/* The bounded queue between the scan and the workers: who runs next. Candidates travel in blocks,
 * which each process begins in an order of its own. Before it is begun, a block is read again: what
 * did other uploaders take meanwhile? At the beginning, and once other uploaders were seen, one
 * small file of a block is begun first, and the others wait until it is claimed: of uploaders that
 * come to the same block in the same moment only one goes on with it. What is ready takes turns
 * (turns.h). What comes back waits until it is due. Thread-safe. */
#pragma once
#include "upload/queue/turns.h"

#define QUEUE_FILES 8192 /* candidates held at once; the scan waits for room */

struct queue;
/* At most `most` tasks at once; files of more than part_bytes are sent in parts. 0 or -ENOMEM. */
int queue_new(unsigned most, uint64_t part_bytes, struct queue **ret);
/* Before anything is added: what the scan finds is begun by candidate_rank() and not by turns, as
 * far as it is in the queue by then. Blocks go by the rank of their first file. */
void queue_rank(struct queue *queue);
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
	uint64_t large_bytes;              /* as told by queue_moved() */
	unsigned cuts;                     /* as told by queue_cut() */
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
/* So many bytes of large bodies have moved, or needed no sending. Lock-free, as is the next one. */
void queue_moved(struct queue *queue, uint64_t bytes);
/* A large body was cut. */
void queue_cut(struct queue *queue);
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

/* From now on no task is handed out, and every worker that waits for one returns. */
void queue_close(struct queue *queue);
/* After the last worker has ended, returns the uploads that were never handed out to the end, one a
 * call, and NULL at the end. */
struct parts *queue_leftover(struct queue *queue);
/* Likewise of the files that are left in the queue. The caller frees each. */
struct candidate *queue_left(struct queue *queue);
