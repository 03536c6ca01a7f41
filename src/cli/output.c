#include "cli/output.h"
#include "base/text.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_BYTES_MAX (64U << 10)
#define ERASE          "\r\033[K"

/* Nobody can be told that stderr is gone. */
static void write_stderr(const struct text *t)
{
	ssize_t written = write(STDERR_FILENO, text_string(t), t->len);
	(void)written;
}

static void erase_locked(struct output *output)
{
	if (output->locked.is_drawn)
		write_stderr(&(struct text){.data = (char[]){ERASE}, .len = strlen(ERASE)});
	output->locked.is_drawn = false;
}

static void say(struct output *output, const char *kind, const char *line)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	text_addf(&t, "s3once: %s%s\n", kind, line);
	pthread_mutex_lock(&output->locked.mutex);
	erase_locked(output);
	write_stderr(&t);
	pthread_mutex_unlock(&output->locked.mutex);
	text_clear(&t);
}

static void on_log(void *arg, enum log_level level, const char *line)
{
	static const char *const kinds[] = {"error: ", "warning: ", "", "debug: "};
	say(arg, kinds[level], line);
}

void output_init(struct output *output)
{
	*output = (struct output){.locked = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_set_sink(on_log, output);
}

static void note_error_locked(struct output *output, bool failed)
{
	if (failed && !output->locked.error)
		output->locked.error = errno ? -errno : -EIO;
}

void output_result(struct output *output, const char *line)
{
	pthread_mutex_lock(&output->locked.mutex);
	erase_locked(output);
	if (!output->locked.error)
		note_error_locked(output, printf("%s\n", line) < 0);
	pthread_mutex_unlock(&output->locked.mutex);
}

void output_say(struct output *output, const char *format, ...)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&t, format, ap);
	va_end(ap);
	say(output, "", text_string(&t));
	text_clear(&t);
}

void output_draw(struct output *output, const char *line)
{
	struct text t = TEXT(LINE_BYTES_MAX);
	text_add(&t, ERASE);
	text_add(&t, line);
	pthread_mutex_lock(&output->locked.mutex);
	if (*line || output->locked.is_drawn)
		write_stderr(&t);
	output->locked.is_drawn = *line;
	pthread_mutex_unlock(&output->locked.mutex);
	text_clear(&t);
}

int output_finish(struct output *output)
{
	output_draw(output, "");
	log_set_sink(NULL, NULL);
	note_error_locked(output, fflush(stdout) != 0 || ferror(stdout));
	int error = output->locked.error;
	if (error)
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
