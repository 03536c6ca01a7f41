#include "cli/output.h"
#include "base/text.h"
#include "cli/output_queue.h"
#include "cli/signals.h"
#include <errno.h>
#include <poll.h>
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

/* Bounded where a thread writes the lines: then it may be this very reader that stands still.
 * Nobody can be told that stderr is gone. */
static void write_stderr(const char *bytes, size_t n, bool may_block)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (!may_block && poll(&room, 1, 0) != 1)
		return;
	ssize_t written = write(STDERR_FILENO, bytes, n);
	(void)written;
}

static void send_stderr(struct output *output, const char *bytes, size_t n, bool may_wait)
{
	if (output->queue)
		output_queue_add(output->queue, STDERR_FILENO, bytes, n, may_wait);
	else
		write_stderr(bytes, n, !output->is_abandoned);
}

/* Takes the progress line away. */
static void erase(struct output *output)
{
	pthread_mutex_lock(&output->locked.mutex);
	const bool was_drawn = output->locked.is_drawn;
	output->locked.is_drawn = false;
	if (was_drawn)
		send_stderr(output, ERASE, strlen(ERASE), false);
	pthread_mutex_unlock(&output->locked.mutex);
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

static void say_line(struct output *output, enum log_level level, const char *kind,
	const char *line, bool may_wait)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	text_addf(&t, "%ss3once: %s%s\n", log_priority(level), kind, line);
	erase(output);
	send_stderr(output, text_string(&t), t.len, may_wait);
	text_clear(&t);
}

static void on_log(void *arg, enum log_level level, const char *line)
{
	static const char *const kinds[] = {"error: ", "warning: ", "note: ", "", "debug: "};
	say_line(arg, level, kinds[level], line, false); /* whoever logs may keep a lease */
}

void output_init(struct output *output)
{
	*output = (struct output){.locked = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_set_sink(on_log, output);
}

static void on_stalled(int fd)
{
	static const char message[] =
		"s3once: warning: nobody has read standard output or error for a minute: lines are "
		"lost until somebody does\n";
	write_stderr(message, strlen(message), false);
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
		.stalled = on_stalled};
	if (output_queue_start(&options, &output->queue))
		output->queue = NULL;
}

void output_result(struct output *output, const char *line)
{
	erase(output);
	if (output->queue) {
		struct text t = TEXT(LINE_BYTES_MAX);
		text_addf(&t, "%s\n", line);
		output_queue_add(output->queue, STDOUT_FILENO, text_string(&t), t.len, true);
		text_clear(&t);
		return;
	}
	pthread_mutex_lock(&output->locked.mutex);
	if (!output->locked.error && printf("%s\n", line) < 0)
		output->locked.error = errno ? -errno : -EIO;
	pthread_mutex_unlock(&output->locked.mutex);
}

void output_say(struct output *output, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	say_line(output, level_of(text_string(&t)), "", text_string(&t), true);
	text_clear(&t);
}

void output_draw(struct output *output, const char *line)
{
	if (output->queue && !output_queue_is_empty(output->queue))
		return;
	struct text t = TEXT(LINE_BYTES_MAX);
	text_add(&t, ERASE);
	text_add(&t, line);
	pthread_mutex_lock(&output->locked.mutex);
	if (*line || output->locked.is_drawn)
		send_stderr(output, text_string(&t), t.len, false);
	output->locked.is_drawn = *line;
	pthread_mutex_unlock(&output->locked.mutex);
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

int output_finish(struct output *output)
{
	uint64_t lost = 0;
	erase(output);
	int error = output->queue ? finish_queue(output, &lost) : 0;
	log_set_sink(NULL, NULL);
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
	return error;
}

bool output_can_draw(void)
{
	const char *terminal = getenv("TERM");
	return isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

unsigned output_columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}
