/* Where a command speaks: results on stdout, all else on stderr, and on a terminal one line that is
 * drawn again and again. Lines are whole and never mixed. Thread-safe but for init and finish. */
#pragma once
#include "base/log.h"
#include <pthread.h>
#include <stdbool.h>

struct output_queue;

struct output {
	struct output_queue *queue; /* NULL: lines are written by who has them */
	bool is_abandoned;          /* a reader stood still at the end */
	struct {
		pthread_mutex_t mutex;
		bool is_drawn; /* a progress line stands on the terminal */
		int error;     /* 0, or the -errno of the first failed write to stdout */
	} locked;
};

/* Log messages go through it from now on. */
void output_init(struct output *output);
/* From now on until output_finish() a thread writes the lines, and a reader that stands still (a
 * full pipe, a stopped terminal) keeps nobody waiting for long: with 1 MiB of lines unread and
 * nothing taken for a minute, or for a second after a signal, lines are lost, which is said.
 * Without a thread for it all is as before. Before the first line. */
void output_never_block(struct output *output);
/* A line of the result. Without newline. */
void output_result(struct output *output, const char *line);
/* A line on stderr, "s3once: " before it: printf style, without newline; escape what comes from
 * outside. */
void output_say(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Draws the progress line anew; "" takes it away. */
void output_draw(struct output *output, const char *line);
/* Takes the progress line away, lets go of the log and flushes. Returns 0, or -errno if anything
 * could not be written to stdout: that was said on stderr then. What output_never_block() leaves is
 * waited for as long as it is read, with five minutes for each pause, a second after a signal. */
int output_finish(struct output *output);

/* Whether stderr is a terminal that can draw a line anew, and how many columns it has. */
bool output_can_draw(void);
unsigned output_columns(void);
