/* Messages to stderr. Each is one line, written with one write(2). The caller escapes bytes that
 * come from elsewhere. */
#pragma once
/* LOG_URGENT is for a warning that --quiet does not hide. */
enum log_level { LOG_ERROR, LOG_URGENT, LOG_WARNING, LOG_NOTE, LOG_INFO, LOG_DEBUG };

/* Sets the level. Lines of a less severe level are dropped. The default is LOG_WARNING. */
void log_set_level(enum log_level level);

/* Returns the prefix of a line on stderr by which the journal knows its level, such as "<3>"
 * (sd-daemon(3)). It is "" unless stderr is the journal, as JOURNAL_STREAM shows (systemd.exec(5)).
 */
const char *log_priority(enum log_level level);

/* Sets the function that takes the lines instead of stderr; NULL restores stderr. A line has no
 * newline at its end. The function is called from any thread, but by one at a time. */
typedef void log_sink(void *arg, enum log_level level, const char *line);
void log_set_sink(log_sink *sink, void *arg);

/* One message, printf style, without newline. Safe from any thread. */
void log_message(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#define log_error(...)   log_message(LOG_ERROR, __VA_ARGS__)
#define log_urgent(...)  log_message(LOG_URGENT, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_note(...)    log_message(LOG_NOTE, __VA_ARGS__)
#define log_info(...)    log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_message(LOG_DEBUG, __VA_ARGS__)
