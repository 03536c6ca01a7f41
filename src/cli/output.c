/* Where all commands speak: results, messages, the log's lines and the progress line come together
 * here as whole lines, and line_writer.h takes them to a file or prints them, with push and verify
 * by a thread. Who prints past it would mix lines with those of other threads. */
#include "cli/output.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/line_writer.h"
#include "cli/signals.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_BYTES_MAX (64U << 10)
#define ERASE          "\r\033[K"
#define QUEUE_BYTES    (1U << 20)
#define STALL_MS       60000
#define END_MS         300000
#define HURRY_MS       1000

static void write_locked(struct output *output, const struct output_piece *piece)
{
	const bool is_result = piece->fd == STDOUT_FILENO && !piece->is_logged;
	if (is_result && output->locked.error)
		return;
	const int error = piece_write(piece, output->log, NULL, NULL);
	if (error)
		output->locked.error = error;
}

/* This does not wait for the reader, since others would wait for the mutex meanwhile. */
static void draw_locked(struct output *output, const char *bytes, size_t n)
{
	const struct output_piece piece = {.fd = STDERR_FILENO, .bytes = bytes, .n = n};
	if (output->queue)
		output_queue_add(output->queue, &piece, false);
	else
		write_locked(output, &piece);
}

/* Takes the progress line away. */
static void erase(struct output *output)
{
	uv_mutex_lock(&output->locked.mutex);
	if (output->locked.is_drawn)
		draw_locked(output, ERASE, strlen(ERASE));
	output->locked.is_drawn = false;
	uv_mutex_unlock(&output->locked.mutex);
}

static bool begins_with(const char *line, const char *words)
{
	return strncmp(line, words, strlen(words)) == 0;
}

/* The level that a line names at its beginning. */
static enum log_level level_of(const char *line)
{
	if (begins_with(line, "error: "))
		return LOG_ERROR;
	return begins_with(line, "warning: ") ? LOG_WARNING : LOG_INFO;
}

/* A line, and what it is. */
struct said {
	int fd;
	enum log_level level;
	const char *kind; /* what is said of the level, or "" */
	const char *line;
	bool may_wait;
};

/* What stands before a line of the log, or of the terminal. */
static void add_begin(struct text *t, const struct output *output, const struct said *said)
{
	char time[21];
	if (output->log && !output->logs_results_alone) {
		clock_format_iso(clock_wall_ns() / (int64_t)NS_PER_S, time);
		text_addf(t, "%s ", time);
	} else if (said->fd == STDERR_FILENO) {
		text_addf(t, "%ss3once: ", log_priority(said->level));
	}
}

static void put_line(struct output *output, const struct said *said)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	const bool is_result = said->fd == STDOUT_FILENO;
	add_begin(&t, output, said);
	text_addf(&t, "%s%s\n", said->kind, said->line);
	const struct output_piece piece = {
		.fd = said->fd,
		.is_logged = output->log && (is_result || !output->logs_results_alone),
		.bytes = text_string(&t),
		.n = t.len,
	};
	if (!piece.is_logged)
		erase(output);
	if (output->queue) {
		output_queue_add(output->queue, &piece, said->may_wait);
	} else if (output->is_abandoned && piece.fd == STDERR_FILENO) {
		/* The reader that hangs may be the reader of this line. */
		signals_say_if_room(piece.bytes);
	} else {
		uv_mutex_lock(&output->locked.mutex);
		write_locked(output, &piece);
		uv_mutex_unlock(&output->locked.mutex);
	}
	text_clear(&t);
}

static void on_log(void *arg, enum log_level level, const char *line)
{
	static const char *const kinds[] = {"error: ", "warning: ", "note: ", "", "debug: "};
	/* The thread that logs may have to renew a lease, so it does not wait. */
	put_line(arg, &(struct said){STDERR_FILENO, level, kinds[level], line, false});
}

void output_init(struct output *output)
{
	*output = (struct output){0};
	uv_mutex_init(&output->locked.mutex);
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_set_sink(on_log, output);
}

int output_log_to(struct output *output, const char *path, bool results_alone)
{
	output->logs_results_alone = results_alone;
	return log_file_new(path, &output->log);
}

static void on_stalled(int fd)
{
	(void)fd;
	static const char message[] =
		"s3once: warning: nobody has read standard output or error for a minute: lines are "
		"lost until somebody does\n";
	signals_say_if_room(message);
}

static bool is_hurried(void)
{
	return signals_came() > 0;
}

void output_never_block(struct output *output)
{
	const struct output_queue_options options = {.bytes_max = QUEUE_BYTES,
		.stall_ms = STALL_MS,
		.end_ms = END_MS,
		.hurry_ms = HURRY_MS,
		.is_hurried = is_hurried,
		.stalled = on_stalled,
		.log = output->log};
	if (output_queue_start(&options, &output->queue))
		output->queue = NULL;
}

void output_result(struct output *output, const char *line)
{
	put_line(output, &(struct said){STDOUT_FILENO, LOG_INFO, "", line, true});
}

void output_tell(struct output *output, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	output_result(output, text_string(&t));
	text_clear(&t);
}

struct escaped escaped(const char *s)
{
	struct escaped line;
	struct text t = TEXT(sizeof line.text - 1);
	text_add_escaped_string(&t, s);
	snprintf(line.text, sizeof line.text, "%s", text_string(&t));
	text_clear(&t);
	return line;
}

void output_say(struct output *output, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	const char *line = text_string(&t);
	put_line(output, &(struct said){STDERR_FILENO, level_of(line), "", line, true});
	text_clear(&t);
}

void output_draw(struct output *output, const char *line)
{
	if (output->queue && !output_queue_is_empty(output->queue))
		return;
	struct text t = TEXT(LINE_BYTES_MAX);
	text_add(&t, ERASE);
	text_add(&t, line);
	uv_mutex_lock(&output->locked.mutex);
	if (*line || output->locked.is_drawn)
		draw_locked(output, text_string(&t), t.len);
	output->locked.is_drawn = *line;
	uv_mutex_unlock(&output->locked.mutex);
	text_clear(&t);
}

/* 0, or -errno with lines that nobody will read. */
static int finish_queue(struct output *output, uint64_t *ret_lost)
{
	const struct output_fate fate = output_queue_finish(output->queue);
	output->queue = NULL;
	output->is_abandoned = fate.lines_lost > 0;
	*ret_lost = fate.lines_lost;
	return fate.error ? fate.error : fate.lines_lost ? -ETIMEDOUT : 0;
}

/* 0, or -errno of a line that could not be written. One that was abandoned to its thread stays. */
static int close_log(struct output *output)
{
	const int error = output->log ? log_file_error(output->log) : 0;
	log_file_free(output->log);
	output->log = NULL;
	return error;
}

int output_finish(struct output *output)
{
	uint64_t lost = 0;
	erase(output);
	int error = output->queue ? finish_queue(output, &lost) : 0;
	log_set_sink(NULL, NULL);
	if (output->is_abandoned)
		output->log = NULL;
	if (!error && !output->is_abandoned && (fflush(stdout) || ferror(stdout)))
		error = errno ? -errno : -EIO;
	if (output->locked.error)
		error = output->locked.error;
	if (lost)
		output_say(output,
			"error: nobody read standard output or error for too long: %llu lines were "
			"lost",
			(unsigned long long)lost);
	else if (error)
		output_say(output, "error: cannot write to standard output: %s", strerror(-error));
	const int log_error = close_log(output);
	return error ? error : log_error;
}

bool terminal_can_draw(int fd)
{
	const char *terminal = getenv("TERM");
	return isatty(fd) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

struct terminal_size terminal_size(int fd)
{
	struct winsize size = {0};
	const bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0;
	return (struct terminal_size){.rows = is_known && size.ws_row ? size.ws_row : 24,
		.columns = is_known && size.ws_col ? size.ws_col : 80};
}
