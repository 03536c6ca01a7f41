/* Bytes of files as they leave this host, and what becomes of them: for the counts, the progress
 * and the level of large bodies. */
#pragma once
#include "upload/progress/bandwidth.h"
#include "upload/progress/report.h"
#include "upload/queue/queue.h"
#include <stdatomic.h>

/* How much of a file that is under way has moved, or needed no sending. Thread-safe. */
struct share {
	struct report *report;
	struct queue *queue;
	struct bandwidth *bandwidth; /* NULL: there is no limit */
	struct bandwidth_user user;
	_Atomic uint64_t bytes;
};
/* Bytes that S3 has already. */
void share_has(struct share *share, uint64_t bytes);
/* The file's turn is over: it is under way no more. */
void share_end(struct share *share);

/* One body being sent. `bytes`: moved in this attempt. share NULL: nobody counts. One thread. */
struct transfer {
	struct share *share;
	uint64_t whole_bytes, bytes;
	uint64_t content_bytes; /* of the file in it; other than whole_bytes if it is encoded */
	uint64_t share_bytes;   /* of those, what counts as moved */
	bool is_large;          /* a large body, by the queue's rule */
};
/* More has left. */
void transfer_moved(struct transfer *transfer, uint64_t bytes);
/* It is sent once more, or was in vain: what had moved does not count as progress any more. A body
 * of which only some had moved was cut. */
void transfer_undo(struct transfer *transfer);
