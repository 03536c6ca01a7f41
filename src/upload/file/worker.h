/* A worker takes tasks from the queue. It brings each file from its claim to its mark, on
 * connections of its own, and blocks meanwhile. Each step of docs/protocol.md ("One file") is one
 * function, and worker.c calls one after the other.
 *
 * A step uses the connections and the buffer of its worker, and those members of the run that all
 * threads share. */
#pragma once
#include "upload/file/file.h"

/* The file that follows the present one, if it was taken ahead (ahead.h). */
struct next_file {
	bool is_taken; /* `task` is to be performed next */
	struct task task;
	struct file *file; /* NULL: it was not begun, since there was no memory */
	enum step answer;  /* the answer of OPEN, its first step */
	uint64_t read_ns;  /* how long OPEN took */
	struct mark_claiming claiming;
};

struct worker {
	struct run *run;
	struct s3_conn *s3;
	struct store_conn *marks;
	struct reader reader; /* its buffer has a small file's whole body, too; owned */
	bool has_put_aside;   /* its task has put a file aside: refusals_settle() */
	uint64_t read_ns;     /* how long its task has opened and read the file so far */
	struct next_file next;
	struct call_limits limits;         /* limits of every request: run_limits() */
	struct call_limits visible_limits; /* run_visible_limits() */
	/* Members of the run that nearly every step uses, borrowed. */
	const struct s3once_options *options;
	struct report *report;
	struct s3 *server;
};

/* Makes a worker with connections of its own. NULL: out of memory or descriptors. */
struct worker *worker_new(struct run *run);

/* The body of a worker's thread. It returns when the queue has no more tasks for this worker. */
void worker_run(struct worker *worker);
void worker_free(struct worker *worker);
