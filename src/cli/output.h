/* Prints the output of a command: results on stdout, anything else on stderr, and on a terminal a
 * progress line that is redrawn. Lines are whole and never mixed. Thread-safe except for init and
 * finish. */
#pragma once
#include "base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct output_options {
	/* The file of --log-file; copied. All lines are appended to it instead of being printed,
	 * each with its time before it. With logs_results_alone, only results are, without a time.
	 * A line that cannot be written there is printed. NULL: lines are printed. */
	const char *log_file;
	bool logs_results_alone;
	/* The longest stall of a reader (of a full pipe, of a stopped terminal). While 1 MiB of
	 * lines is unread, a new line waits for room. If the reader has taken nothing for this
	 * time, lines are lost until it takes something again, with a warning. After a signal that
	 * is counted (signals.h), the limit is one second. 0: no limit. */
	uint64_t stall_ms;
	/* The limit for output_finish(). */
	uint64_t end_ms;
};

struct output_writer;
struct output {
	struct output_writer *writer;
};

/* Begins the output, through which log messages go from now on. A thread writes the lines. If it
 * cannot be started, a caller that adds a line writes it, with those added meanwhile, and waits for
 * the reader. Ends the process if memory has run out. */
void output_init(struct output *output, const struct output_options *options);
/* Prints a line of the result, which is given without a newline. */
void output_result(struct output *output, const char *line);
/* output_resultf() prints a line of the result, printf style. output_message() prints a line on
 * stderr, with "s3once: " before it. The caller escapes text from outside. */
#define output_resultf(output, ...) output_print(output, STDOUT_FILENO, __VA_ARGS__)
#define output_message(output, ...) output_print(output, STDERR_FILENO, __VA_ARGS__)
void output_print(struct output *output, int fd, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A key, a path or a sentence for such a line, escaped by text_add_escaped(). The buffer has
 * room for the longest of these. quote() is for a name inside a sentence. */
struct escaped {
	char text[16 << 10];
};
struct escaped escaped(const char *s);
/* Redraws the progress line, or several separated by '\n'; "" removes them. */
void output_draw(struct output *output, const char *line);
/* Waits until the reader has taken all lines so far, or has taken nothing for `ms` (0: no limit).
 */
void output_await_reader(struct output *output, uint64_t ms);
/* Returns whether a write to stdout or to the log file has failed. Before that, it waits until the
 * reader has taken all lines so far, for stall_ms without progress at most. */
bool output_has_failed(struct output *output);
/* Removes the progress line, waits for the reader, takes no log messages any more, and flushes.
 * Returns 0, or -errno if a line was lost on its way to stdout or to the log file; an error on
 * stderr has reported it. If the reader hangs, the remaining lines are left to the thread that
 * writes them. */
int output_finish(struct output *output);

/* Flushes what was printed to the FILE stdout, by code that has no struct output. Returns 0, or
 * -errno of the first time that this failed. */
int output_flush_stdout(void);

/* Whether the descriptor is a terminal that can redraw a line. */
bool terminal_can_draw(int fd);
/* The size of the terminal; 24 rows and 80 columns if unknown. */
struct terminal_size {
	unsigned rows, columns;
};
struct terminal_size terminal_size(int fd);
