/* Where a command speaks: results on stdout, all else on stderr, and on a terminal one line that is
 * drawn again and again. Lines are whole and never mixed. Thread-safe but for init and finish. */
#pragma once
#include "base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct output_options {
	/* The file of --log-file, to whose end all lines go instead, each with its
	 * time before it; or, with logs_results_alone, the lines of the result alone, as they are.
	 * A line that cannot be written there is printed. NULL: lines are printed. Copied. */
	const char *log_file;
	bool logs_results_alone;
	/* With 1 MiB of lines unread, a further one waits for room, unless the reader (of a full
	 * pipe, of a stopped terminal) has taken nothing for so long. Lines are lost then, which is
	 * said, until it takes something again. 0: it waits. After a signal that is counted
	 * (signals.h), a second is enough. */
	uint64_t stall_ms;
	/* The same for each pause of the reader in output_finish(). */
	uint64_t end_ms;
};

struct output_writer;
struct output {
	struct output_writer *writer;
};

/* Log messages go through it from now on. A thread writes the lines. Where none can be started, who
 * has a line writes it, with those that others add meanwhile, and waits for the reader. Ends the
 * process if memory has run out. */
void output_init(struct output *output, const struct output_options *options);
/* A line of the result. Without newline. */
void output_result(struct output *output, const char *line);
/* The same, printf style; escape what comes from outside. output_say() has a line on stderr, with
 * "s3once: " before it. */
#define output_tell(output, ...) output_print(output, STDOUT_FILENO, __VA_ARGS__)
#define output_say(output, ...)  output_print(output, STDERR_FILENO, __VA_ARGS__)
void output_print(struct output *output, int fd, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A key, a path or a sentence in such a line: escaped as text_add_escaped() does it, and cut only
 * where it is longer than any of these. quote() is for a name inside a sentence. */
struct escaped {
	char text[16 << 10];
};
struct escaped escaped(const char *s);
/* Draws the progress line anew; "" takes it away. */
void output_draw(struct output *output, const char *line);
/* Whether anything could not be written to stdout. Waits for the reader of what was said so far, as
 * long as a line waits for room. */
bool output_has_failed(struct output *output);
/* Takes the progress line away, waits for the reader, lets go of the log and flushes. Returns 0, or
 * -errno if anything could not be written to stdout or to the file of the log: that was said on
 * stderr then. If the reader hangs, the lines are left to their thread. */
int output_finish(struct output *output);

/* Whether the descriptor is of a terminal that can draw a line anew. */
bool terminal_can_draw(int fd);
/* 24 rows and 80 columns if the terminal does not tell. */
struct terminal_size {
	unsigned rows, columns;
};
struct terminal_size terminal_size(int fd);
