/* The output of all commands. Results, messages, log lines and the progress line come together here
 * as whole lines, and a thread writes them to the file of --log-file or prints them. Code that
 * prints without these functions would mix its lines with those of other threads.
 *
 * After a signal, a stalled reader delays the process only briefly. In a run, which has to
 * continue, a stalled reader costs lines even without a signal. */
#include "cli/output.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/must_have.h"
#include "base/problem.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/wait_until.h"
#include "cli/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define LINE_BYTES_MAX (1U << 20) /* a page of status --watch is one, too */
#define ERASE          "\r\033[K"
#define UP             "\033[A"   /* to the line above */
#define QUEUE_BYTES    (1U << 20) /* the most bytes kept at once */
#define WRITE_BYTES    4096U      /* bytes of one write(), which returns once the reader has read */
#define HURRY_MS       1000       /* after a signal, a reader that stalls for longer is given up */
#define LOG_MODE       0640       /* reduced by the umask */

struct line {
	struct line *next;
	int fd;         /* descriptor that it is printed to */
	bool is_logged; /* it goes to the file of the log, and is printed only if that fails */
	size_t n;
	char bytes[];
};

/* The file of --log-file. Lines are appended to it, each with one write, so that several processes
 * can share it. It is opened by the first line, and its name is checked before each line: after
 * logrotate has renamed or removed it, the next line goes to a new file of its name. Truncating and
 * renaming it is left to logrotate. */
struct log_file {
	char *path; /* NULL: there is none, and lines are printed */
	int fd;     /* -1: it is not open */
	dev_t dev;
	ino_t ino;
	bool is_cut;     /* the last line may be there only in part */
	bool has_failed; /* the last line could not be written, which was reported */
	int error;       /* -errno of the first line that could not be written */
};

/* The lines on their way, and the thread that writes them. If a reader hangs at the end, they are
 * left to that thread until the process ends. */
struct output_writer {
	struct output_options options;
	/* Once the thread runs, only the thread uses it, except for the path, which never
	 * changes. */
	struct log_file log;
	uv_thread_t thread;
	bool has_thread; /* otherwise the thread that adds a line writes it */
	_Atomic(uint64_t)
		taken_ns; /* time at which a reader last took something, or had nothing to take */
	uv_mutex_t mutex;
	/* `added` signals a line, or `finishes`, to the thread; `taken` signals more room. */
	uv_cond_t added, taken;
	struct {
		struct line *first, **end;
		size_t bytes;        /* bytes of all lines in the list and of the line that is being
					written */
		uint64_t stalled_ns; /* taken_ns when a wait for room last failed; while both are
					equal, the reader stalls: it has taken nothing since */
		uint64_t lost;       /* lines that found no room or no memory */
		int error;           /* 0, or -errno of the first failed write to standard output */
		int log_error;       /* the same for the file of the log */
		unsigned drawn;      /* number of progress lines on the terminal */
		bool is_writing; /* without the thread: a caller is writing all lines of the list */
		bool finishes;   /* output_finish() was called: no more lines come */
		bool is_abandoned; /* output_finish() has given up: the thread frees the writer */
	} locked;
};

/* Opens the file that now has the path, unless it is open already. If it cannot be opened, the open
 * file stays in use. O_NONBLOCK keeps the open from waiting if the path is a FIFO. Returns 0 or
 * -errno. */
static int open_current(struct log_file *file)
{
	struct stat st;
	const bool is_open = file->fd >= 0;
	/* Whether the path still names the open file. If stat() fails with an error other than
	 * ENOENT, that is unknown, and the file stays in use. */
	bool is_current = false;
	if (is_open && stat(file->path, &st) == 0)
		is_current = st.st_dev == file->dev && st.st_ino == file->ino;
	else if (is_open)
		is_current = errno != ENOENT;
	if (is_current)
		return 0;
	const int fd = open(file->path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, LOG_MODE);
	if (fd < 0 || fstat(fd, &st)) {
		const int error = -errno;
		if (fd >= 0)
			close(fd);
		return is_open ? 0 : error;
	}
	if (is_open)
		close(file->fd);
	file->fd = fd;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->is_cut = false;
	return 0;
}

/* Appends a line with its '\n'. If the previous line may be there only in part, a '\n' comes first.
 * Only the first of consecutive errors is printed, on standard error. Returns 0 or -errno. */
static int append_to_log(struct log_file *file, const char *line, size_t n)
{
	int error = open_current(file);
	if (!error && file->is_cut)
		error = write_all(file->fd, "\n", 1);
	if (!error) {
		error = write_all(file->fd, line, n);
		file->is_cut = error != 0;
	}
	if (error && !file->has_failed)
		dprintf(STDERR_FILENO,
			"s3once: error: --log-file: cannot write to %s: %s; lines are printed "
			"instead until it can be written again\n",
			quote(file->path).text, strerror(-error));
	file->has_failed = error != 0;
	if (error && !file->error)
		file->error = error;
	return error;
}

/* Prints a line, however long its reader takes. Returns 0 or -errno. */
static int print_line(struct output_writer *writer, const struct line *line)
{
	for (size_t at = 0; at < line->n;) {
		const size_t rest = line->n - at;
		const ssize_t n =
			write(line->fd, line->bytes + at, rest < WRITE_BYTES ? rest : WRITE_BYTES);
		const int error = n < 0 ? -errno : 0;
		if (error == -EAGAIN) /* another process may have made it nonblocking */
			poll(&(struct pollfd){.fd = line->fd, .events = POLLOUT}, 1, -1);
		if (error == -EAGAIN || error == -EINTR)
			continue;
		writer->taken_ns = clock_boot_ns();
		if (error)
			return error;
		at += (size_t)n;
	}
	return 0;
}

/* Appends a line to the log, or prints it if it is not for the log or cannot be appended. Returns
 * 0, or -errno of standard output. Errors of standard error are ignored, since they cannot be
 * reported anywhere. */
static int write_line(struct output_writer *writer, const struct line *line)
{
	if (line->is_logged && append_to_log(&writer->log, line->bytes, line->n) == 0) {
		/* The line counts as read at once, since the log has no slow reader. */
		writer->taken_ns = clock_boot_ns();
		return 0;
	}
	const int error = print_line(writer, line);
	return line->fd == STDOUT_FILENO ? error : 0;
}

/* Removes the first line of the list and writes it. The mutex is released meanwhile. After a failed
 * write to standard output, further results are dropped, unless they go to the log. */
static void write_first_locked(struct output_writer *writer)
{
	struct line *line = writer->locked.first;
	const bool is_dropped =
		writer->locked.error && line->fd == STDOUT_FILENO && !line->is_logged;
	writer->locked.first = line->next;
	if (!line->next)
		writer->locked.end = &writer->locked.first;
	uv_mutex_unlock(&writer->mutex);
	const int error = is_dropped ? 0 : write_line(writer, line);
	uv_mutex_lock(&writer->mutex);
	if (error && !writer->locked.error)
		writer->locked.error = error;
	writer->locked.log_error = writer->log.error;
	writer->locked.bytes -= line->n;
	uv_cond_broadcast(&writer->taken);
	free(line);
}

static void free_writer(struct output_writer *writer)
{
	if (writer->log.fd >= 0)
		close(writer->log.fd);
	free(writer->log.path);
	uv_cond_destroy(&writer->added);
	uv_cond_destroy(&writer->taken);
	uv_mutex_destroy(&writer->mutex);
	free(writer);
}

/* The thread that writes the lines, until output_finish() ends it and no line is left. If the
 * reader hangs then, output_finish() leaves the writer to this thread to free. */
static void write_lines(void *arg)
{
	struct output_writer *writer = arg;
	uv_mutex_lock(&writer->mutex);
	for (;;) {
		wait_until(writer->locked.first || writer->locked.finishes, .cond = &writer->added,
			.mutex = &writer->mutex);
		if (!writer->locked.first)
			break;
		write_first_locked(writer);
	}
	const bool is_left_to_us = writer->locked.is_abandoned;
	uv_mutex_unlock(&writer->mutex);
	if (is_left_to_us)
		free_writer(writer);
}

/* Whether the reader has taken nothing for `ms` (0: no limit) or, after a signal, for a second. */
static bool is_stalled(const struct output_writer *writer, uint64_t ms)
{
	/* Read before the clock, so that the difference is never negative. */
	const uint64_t taken_ns = writer->taken_ns;
	const uint64_t passed_ms = (clock_boot_ns() - taken_ns) / NS_PER_MS;
	return (ms && passed_ms >= ms) || (signals_came() && passed_ms >= HURRY_MS);
}

/* Waits until at most this many bytes are on their way. Returns false if the reader takes nothing
 * for `ms`. */
static bool await_drained_locked(struct output_writer *writer, size_t bytes, uint64_t ms)
{
	/* The deadline never comes, but makes wait_until() test the condition several times a
	 * second, which a condition that depends on the time needs. */
	wait_until(writer->locked.bytes <= bytes || is_stalled(writer, ms), .cond = &writer->taken,
		.mutex = &writer->mutex, .deadline_ns = UINT64_MAX);
	return writer->locked.bytes <= bytes;
}

/* Whether a wait for room has failed, and the reader has taken nothing since. */
static bool has_stalled_locked(const struct output_writer *writer)
{
	return writer->locked.stalled_ns == writer->taken_ns;
}

/* What becomes of a line if there is no room for it. */
enum without_room { LINE_WAITS, LINE_IS_LOST };

/* Returns whether there is room for n more bytes. If there is none, a line that waits waits here,
 * unless an earlier wait has failed and the reader has taken nothing since. */
static bool await_room_locked(
	struct output_writer *writer, size_t n, enum without_room without_room)
{
	static const char message[] =
		"s3once: warning: nobody has read standard output or error for a minute: lines are "
		"lost until somebody does\n";
	/* The most bytes of other lines. A line that is larger than the queue is queued alone. */
	const size_t others = n < QUEUE_BYTES ? QUEUE_BYTES - n : 0;
	if (writer->locked.bytes <= others)
		return true;
	if (without_room == LINE_IS_LOST || has_stalled_locked(writer))
		return false;
	if (await_drained_locked(writer, others, writer->options.stall_ms))
		return true;
	/* Several threads may have waited at the same time. The first one prints the warning. */
	if (!has_stalled_locked(writer)) {
		writer->locked.stalled_ns = writer->taken_ns;
		/* If a signal has ended the wait, the message would be wrong. */
		signals_print_if_room(signals_came() ? "" : message);
	}
	return false;
}

/* Appends a line to the list, or counts it as lost if there is no memory or no room. `header` has
 * all of the line except its bytes, which are copied from `bytes`. */
static void add_locked(struct output_writer *writer, struct line header, const char *bytes,
	enum without_room without_room)
{
	struct line *line = malloc(sizeof *line + header.n);
	/* Nothing was unread, so the time within which the reader has to take something begins now.
	 */
	if (!writer->locked.bytes)
		writer->taken_ns = clock_boot_ns();
	if (!line || !await_room_locked(writer, header.n, without_room)) {
		writer->locked.lost++;
		free(line);
		return;
	}
	*line = header;
	memcpy(line->bytes, bytes, header.n);
	*writer->locked.end = line;
	writer->locked.end = &line->next;
	writer->locked.bytes += header.n;
	uv_cond_signal(&writer->added);
	/* Without the thread, this caller writes the whole list, unless another caller is doing
	 * so. */
	if (writer->has_thread || writer->locked.is_writing)
		return;
	writer->locked.is_writing = true;
	while (writer->locked.first)
		write_first_locked(writer);
	writer->locked.is_writing = false;
}

/* Redraws the lines of progress, or removes them if `line` is "". It does not wait for room, since
 * a newer progress line follows. */
static void draw_locked(struct output_writer *writer, const char *line)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	if (!*line && !writer->locked.drawn)
		return;
	text_add(&t, ERASE);
	for (unsigned i = 1; i < writer->locked.drawn; i++)
		text_add(&t, UP ERASE);
	text_add(&t, line);
	writer->locked.drawn = *line ? 1 : 0;
	for (const char *at = line; (at = strchr(at, '\n')); at++)
		writer->locked.drawn++;
	add_locked(writer, (struct line){.fd = STDERR_FILENO, .n = t.len}, text_string(&t),
		LINE_IS_LOST);
	text_clear(&t);
}

/* Adds a line, which is a result if `fd` is standard output. A printed message begins with its
 * level for the journal, and with "s3once: ". `kind` is the word for the level, such as "error: ",
 * or "" if the line has it already or needs none. */
static void put_line(struct output *output, int fd, enum log_level level, const char *kind,
	const char *line, enum without_room without_room)
{
	struct output_writer *writer = output->writer;
	struct text t = TEXT(LINE_BYTES_MAX);
	/* With --log-file, the file gets either all lines, each with its time before it, or only
	 * the results, without a time. Lines that do not go to the file are printed. */
	const bool has_log = writer->log.path != NULL, is_result = fd == STDOUT_FILENO;
	const bool logs_all = has_log && !writer->options.logs_results_alone;
	const bool is_logged = logs_all || (has_log && is_result);
	char time[21];
	if (logs_all) {
		clock_format_iso(clock_wall_s(), time);
		text_addf(&t, "%s ", time);
	} else if (!is_result) {
		text_addf(&t, "%ss3once: ", log_priority(level));
	}
	text_addf(&t, "%s%s\n", kind, line);
	uv_mutex_lock(&writer->mutex);
	if (!is_logged) /* the progress line is removed, or this line would begin after it */
		draw_locked(writer, "");
	add_locked(writer, (struct line){.fd = fd, .is_logged = is_logged, .n = t.len},
		text_string(&t), without_room);
	uv_mutex_unlock(&writer->mutex);
	text_clear(&t);
}

/* Adds a message of the log. It is the log_sink of the output. */
static void on_log(void *arg, enum log_level level, const char *line)
{
	static const char *const kinds[] = {
		"error: ", "warning: ", "warning: ", "note: ", "", "debug: "};
	struct output *output = arg;
	/* Only a run has stall_ms. The thread that logs there may have to renew a lease, so it does
	 * not wait. */
	const bool is_of_run = output->writer->options.stall_ms != 0;
	put_line(output, STDERR_FILENO, level, kinds[level], line,
		is_of_run ? LINE_IS_LOST : LINE_WAITS);
}

void output_init(struct output *output, const struct output_options *options)
{
	struct output_writer *writer = must_have(calloc(1, sizeof *writer));
	writer->log.fd = -1;
	if (options->log_file)
		writer->log.path = must_have(strdup(options->log_file));
	writer->options = *options;
	writer->locked.end = &writer->locked.first;
	uv_mutex_init(&writer->mutex);
	uv_cond_init(&writer->added);
	uv_cond_init(&writer->taken);
	writer->has_thread = thread_start(&writer->thread, write_lines, writer) == 0;
	output->writer = writer;
	log_set_sink(on_log, output);
}

void output_result(struct output *output, const char *line)
{
	put_line(output, STDOUT_FILENO, LOG_INFO, "", line, LINE_WAITS);
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

void output_print(struct output *output, int fd, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	const char *line = text_string(&t);
	/* The level at the beginning of the line. */
	const enum log_level level = strncmp(line, "error: ", 7) == 0     ? LOG_ERROR
				     : strncmp(line, "warning: ", 9) == 0 ? LOG_WARNING
									  : LOG_INFO;
	put_line(output, fd, level, "", line, LINE_WAITS);
	text_clear(&t);
}

void output_draw(struct output *output, const char *line)
{
	uv_mutex_lock(&output->writer->mutex);
	/* While other lines wait for the reader, a progress line would be out of date when it is
	 * read. */
	if (!output->writer->locked.bytes)
		draw_locked(output->writer, line);
	uv_mutex_unlock(&output->writer->mutex);
}

void output_await_reader(struct output *output, uint64_t ms)
{
	uv_mutex_lock(&output->writer->mutex);
	await_drained_locked(output->writer, 0, ms);
	uv_mutex_unlock(&output->writer->mutex);
}

bool output_has_failed(struct output *output)
{
	struct output_writer *writer = output->writer;
	output_await_reader(output, writer->options.stall_ms);
	uv_mutex_lock(&writer->mutex);
	const bool has_failed = writer->locked.error || writer->locked.log_error;
	uv_mutex_unlock(&writer->mutex);
	return has_failed;
}

/* Reports lost lines on standard error, if that need not wait: it may have the reader that hangs.
 */
static void report_lost(uint64_t lost)
{
	char line[200];
	snprintf(line, sizeof line,
		"%ss3once: error: nobody read standard output or error for too long: %llu "
		"lines were lost\n",
		log_priority(LOG_ERROR), (unsigned long long)lost);
	signals_print_if_room(line);
}

/* Returns the number of lost lines. Unless all lines are written, these include all lines of the
 * list, and the one that is being written, which is no longer in it. */
static uint64_t count_lost_locked(const struct output_writer *writer, bool is_written)
{
	uint64_t lost = writer->locked.lost;
	if (is_written)
		return lost;
	for (const struct line *line = writer->locked.first; line; line = line->next)
		lost++;
	return lost + 1;
}

int output_finish(struct output *output)
{
	struct output_writer *writer = output->writer;
	log_set_sink(NULL, NULL); /* from now on, messages of the log go to standard error */
	uv_mutex_lock(&writer->mutex);
	draw_locked(writer, "");
	const bool is_written = await_drained_locked(writer, 0, writer->options.end_ms);
	const uint64_t lost = count_lost_locked(writer, is_written);
	int error = writer->locked.error;
	const int log_error = writer->locked.log_error;
	/* If the writer is abandoned, its thread may free it as soon as the mutex is released. So
	 * all that is needed later is copied before. */
	uv_thread_t thread = writer->thread;
	writer->locked.finishes = true;
	writer->locked.is_abandoned = !is_written;
	if (!is_written && writer->has_thread)
		thread_abandon(thread);
	uv_cond_signal(&writer->added);
	uv_mutex_unlock(&writer->mutex);
	if (is_written) {
		if (writer->has_thread)
			uv_thread_join(&thread);
		free_writer(writer);
	}
	output->writer = NULL;
	if (!error && is_written)
		error = output_flush_stdout();
	if (lost) {
		report_lost(lost);
		return error ? error : -ETIMEDOUT;
	}
	if (error)
		log_error("cannot write to standard output: %s", strerror(-error));
	return error ? error : log_error;
}

int output_flush_stdout(void)
{
	static _Atomic(int) first; /* ferror() keeps no reason */
	const int error = fflush(stdout) ? -errno : ferror(stdout) ? -EIO : 0;
	if (!first)
		first = error;
	return first;
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
	return (struct terminal_size){.rows = (is_known && size.ws_row) ? size.ws_row : 24,
		.columns = (is_known && size.ws_col) ? size.ws_col : 80};
}
