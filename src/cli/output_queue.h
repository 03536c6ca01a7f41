/* Lines on their way to standard output and error. A thread of their own writes them in their
 * order, so that whoever has something to say never stands still with a reader that does.
 * Thread-safe but for start and finish. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_queue_options {
	size_t bytes_max;         /* kept at once; a line more is waited for */
	uint64_t stall_ms;        /* who waits for room gives up after so long without a byte
				     taken: lines are then lost until one is taken again */
	uint64_t end_ms;          /* the same of output_queue_finish() */
	uint64_t hurry_ms;        /* instead of both while is_hurried() */
	bool (*is_hurried)(void); /* asked every 100 ms */
	void (*stalled)(int fd);  /* lines are lost from here on; called by who waited */
	/* Takes the lines that are logged, from the thread of the queue. Returns 0, or -errno:
	 * then the line goes to its descriptor. NULL: no line is logged. */
	int (*log)(void *arg, const char *bytes, size_t n);
	void *log_arg;
};

struct output_piece {
	int fd;
	bool is_logged; /* it goes to `log` instead */
	const char *bytes;
	size_t n;
};

struct output_queue;
/* 0, -ENOMEM, or -errno of the thread. */
int output_queue_start(const struct output_queue_options *options, struct output_queue **ret);
/* Takes a copy. A line that may not wait is lost when there is no room. */
void output_queue_add(struct output_queue *queue, const struct output_piece *piece, bool may_wait);
/* Nothing is on its way. */
bool output_queue_is_empty(struct output_queue *queue);

struct output_fate {
	int error;           /* 0, or -errno of the first failed write to standard output */
	uint64_t lines_lost; /* for want of room or memory, or left when the end was given up */
};
/* Waits until all is written, as long as the reader takes anything, and frees the queue. One whose
 * reader stands still is left to its thread until the process ends. */
struct output_fate output_queue_finish(struct output_queue *queue);
