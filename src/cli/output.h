/* Where a command speaks: results on stdout, all else on stderr, and on a terminal one line that is
 * drawn again and again. Lines are whole and never mixed. Thread-safe but for init and finish. */
#pragma once
#include "base/log.h"
#include <stdbool.h>
#include <uv.h>

struct log_file;
struct output_queue;

struct output {
	struct output_queue *queue; /* NULL: lines are written by who has them */
	bool is_abandoned;          /* a reader stood still at the end */
	struct log_file *log;       /* of output_log_to(); NULL: lines are printed */
	bool logs_results_alone;
	struct {
		uv_mutex_t mutex;
		bool is_drawn; /* a progress line stands on the terminal */
		int error;     /* 0, or the -errno of the first failed write to stdout */
	} locked;
};

/* Log messages go through it from now on. */
void output_init(struct output *output);
/* From now on lines go to the end of this file instead (line_writer.h), each with its time before
 * it; or, with results_alone, the lines of the result alone go there, as they are. A line that
 * cannot be written there is printed. Before the first line and output_never_block(). 0 or -ENOMEM.
 */
int output_log_to(struct output *output, const char *path, bool results_alone);
/* From now on until output_finish() a thread writes the lines, and a reader that stands still (a
 * full pipe, a stopped terminal) keeps nobody waiting for long: with 1 MiB of lines unread and
 * nothing taken for a minute, or for a second after a signal, lines are lost, which is said.
 * Without a thread for it all is as before. Before the first line. */
void output_never_block(struct output *output);
/* A line of the result. Without newline. */
void output_result(struct output *output, const char *line);
/* The same, printf style; escape what comes from outside. */
void output_tell(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A key, a path or a sentence in such a line: escaped as text_add_escaped() does it, and cut only
 * where it is longer than any of these. quote() is for a name inside a sentence. */
struct escaped {
	char text[16 << 10];
};
struct escaped escaped(const char *s);
/* A line on stderr, "s3once: " before it: printf style, without newline; escape what comes from
 * outside. */
void output_say(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Draws the progress line anew; "" takes it away. */
void output_draw(struct output *output, const char *line);
/* Takes the progress line away, lets go of the log and flushes. Returns 0, or -errno if anything
 * could not be written to stdout or to the file of the log: that was said on stderr then. What
 * output_never_block() leaves is waited for as long as it is read, with five minutes for each
 * pause, a second after a signal. */
int output_finish(struct output *output);

/* Whether the descriptor is of a terminal that can draw a line anew. */
bool terminal_can_draw(int fd);
/* 24 rows and 80 columns if the terminal does not tell. */
struct terminal_size {
	unsigned rows, columns;
};
struct terminal_size terminal_size(int fd);
