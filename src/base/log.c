/* The log: it drops messages of a less severe level than the one set, and gives the others, one
 * line at a time, to the sink, to the function of the program that uses the library, or to stderr.
 */
#include "base/log.h"
#include "s3once/log.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#define LINE_MAX_BYTES 8192

static atomic_int max_level = LOG_WARNING;
/* The sink and the user's function, and the mutex that is held while they are set or called. */
static struct {
	uv_mutex_t mutex;
	log_sink *sink;
	void *arg;
	s3once_log *log;
	void *log_arg;
} locked;
static uv_once_t once = UV_ONCE_INIT;

static void make_sink_mutex(void)
{
	uv_mutex_init(&locked.mutex);
}

/* Locks the sink. The first call makes the mutex, since libuv has no static initialiser for one. */
static void lock_sink(void)
{
	uv_once(&once, make_sink_mutex);
	uv_mutex_lock(&locked.mutex);
}

void log_set_level(enum log_level level)
{
	atomic_store(&max_level, (int)level);
}

void log_set_sink(log_sink *sink, void *arg)
{
	lock_sink();
	locked.sink = sink;
	locked.arg = arg;
	uv_mutex_unlock(&locked.mutex);
}

static const struct {
	const char *name, *priority; /* the priority as the journal reads it before a line */
} levels[] = {[LOG_ERROR] = {"error", "<3>"},
	[LOG_URGENT] = {"warning", "<4>"},
	[LOG_WARNING] = {"warning", "<4>"},
	[LOG_NOTE] = {"note", "<5>"},
	[LOG_INFO] = {"info", "<6>"},
	[LOG_DEBUG] = {"debug", "<7>"}};

/* Returns the priority as a number of syslog(3). */
static int priority_of(int level)
{
	return levels[level].priority[1] - '0';
}

void s3once_set_log(s3once_log *log, void *arg, int priority)
{
	int level = -1; /* nothing is logged */
	while (level < LOG_DEBUG && priority_of(level + 1) <= priority)
		level++;
	lock_sink();
	locked.log = log;
	locked.log_arg = arg;
	atomic_store(&max_level, level);
	uv_mutex_unlock(&locked.mutex);
}

const char *log_priority(enum log_level level)
{
	unsigned long long device, inode;
	struct stat st;
	const char *stream = getenv("JOURNAL_STREAM");
	/* JOURNAL_STREAM names the device and inode of the journal. They are compared with those of
	 * stderr, since a child may inherit the variable and have another stderr. */
	const bool is_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
				!fstat(STDERR_FILENO, &st) && st.st_dev == device &&
				st.st_ino == inode;
	return is_journal ? levels[level].priority : "";
}

void log_message(enum log_level level, const char *format, ...)
{
	if ((int)level > atomic_load(&max_level))
		return;
	va_list ap;
	va_start(ap, format);
	/* The 32 bytes are for the prefix and the newline. */
	char message[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 32];
	int n = vsnprintf(message, sizeof message, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof message)
		memcpy(message + sizeof message - 4, "...", 4);
	for (char *at = message; (at = strchr(at, '\n'));)
		*at = ' ';
	lock_sink();
	if (locked.sink) {
		locked.sink(locked.arg, level, message);
	} else if (locked.log) {
		locked.log(locked.log_arg, priority_of((int)level), message);
	} else {
		n = snprintf(line, sizeof line, "%ss3once: %s: %s\n", log_priority(level),
			levels[level].name, message);
		const size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
		/* A failure of stderr cannot be reported anywhere. */
		const ssize_t written = write(STDERR_FILENO, line, len);
		(void)written;
	}
	uv_mutex_unlock(&locked.mutex);
}
