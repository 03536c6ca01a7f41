#include "../check.h"
#include "base/log.h"

static struct {
	unsigned lines;
	enum log_level level;
	char last[10000];
} seen;

static void sink(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	seen.lines++;
	seen.level = level;
	snprintf(seen.last, sizeof seen.last, "%s", line);
}

int main(void)
{
	log_set_sink(sink, NULL);
	log_info("not wanted by default");
	CHECK_INT(seen.lines, 0);
	log_warning("%s %d", "number", 1);
	CHECK_STRING(seen.last, "number 1");
	CHECK_INT(seen.level, LOG_WARNING);
	log_set_level(LOG_DEBUG);
	log_debug("two\nlines");
	CHECK_STRING(seen.last, "two lines");
	log_set_level(LOG_ERROR);
	log_warning("dropped");
	CHECK_INT(seen.lines, 2);
	char big[9000];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	log_error("%s", big);
	CHECK_INT(strlen(seen.last), 8191);
	CHECK_STRING(seen.last + 8180, "xxxxxxxx...");
	log_set_sink(NULL, NULL);
	return check_result();
}
