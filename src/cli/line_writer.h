/* Lines on their way to a file, or to standard output and error: one function writes them, here or
 * in a thread of its own. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file of --log-file. Lines are appended to it, each with one write, so that several processes
 * can share it. It is opened by the first line, and looked for before each line: after logrotate
 * has renamed or removed it, the next line goes to a new file of its name. One thread at a time. */
struct log_file;

/* Whether lines can be appended to the file, as far as that is known without making it. 0, or
 * -EINVAL with a sentence. */
int log_file_check(const char *path, struct problem *ret_problem);

/* Copies the path. 0 or -ENOMEM. */
int log_file_new(const char *path, struct log_file **ret);
void log_file_free(struct log_file *file); /* NULL is fine */
/* 0, or -errno of the first line that could not be written. */
int log_file_error(const struct log_file *file);

struct output_piece {
	int fd;
	bool is_logged; /* it goes to the file of the log instead */
	const char *bytes;
	size_t n;
};
/* Writes all of it: to the log, or to its descriptor if it is not logged or that fails. The first
 * error of a row of errors of the log is said on standard error, and the next line begins as a line
 * of its own even then. `wrote` is called now and then as a sign of life; NULL: nobody asks.
 * Returns 0, or -errno of standard output; nobody can be told that standard error is gone. */
int piece_write(const struct output_piece *piece, struct log_file *log, void (*wrote)(void *arg),
	void *arg);

/* A thread that writes pieces in their order, so that whoever has something to say never stands
 * still with a reader that does. Thread-safe but for start and finish. */
struct output_queue_options {
	/* The most bytes that are kept at once. A further line waits for room. */
	size_t bytes_max;
	/* The wait for room ends if the reader has taken no byte for so long. Lines are lost then,
	 * until it takes one again. */
	uint64_t stall_ms;
	/* The same in output_queue_finish(). */
	uint64_t end_ms;
	/* Replaces both while is_hurried() is true, which is asked every 100 ms. */
	uint64_t hurry_ms;
	bool (*is_hurried)(void);
	/* Is called by the thread that has waited, when lines begin to be lost. */
	void (*stalled)(int fd);
	/* Takes the lines that are logged, and is used by no other thread until the end. A line
	 * that cannot be written to it goes to its descriptor. NULL: no line is logged. */
	struct log_file *log;
};

struct output_queue;
/* 0, -ENOMEM, or -errno of the thread. */
int output_queue_start(const struct output_queue_options *options, struct output_queue **ret);
/* Adds a copy of the line. A line that may not wait is lost if there is no room. */
void output_queue_add(struct output_queue *queue, const struct output_piece *piece, bool may_wait);
/* Whether all lines were written. */
bool output_queue_is_empty(struct output_queue *queue);

struct output_fate {
	int error;           /* 0, or -errno of the first failed write to standard output */
	uint64_t lines_lost; /* for want of room or memory, or at the end, when nobody read them */
};
/* Waits until all is written, as long as the reader takes anything, and frees the queue. If the
 * reader hangs, the queue is left to its thread until the process ends. */
struct output_fate output_queue_finish(struct output_queue *queue);
