#include "../check.h"
#include "base/log.h"
#include "s3once/log.h"

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

static void take(void *arg, int priority, const char *message)
{
	snprintf(seen.last, sizeof seen.last, "%s %d %s", (const char *)arg, priority, message);
	seen.lines++;
}

/* The function of a program that uses the library, at each side of its limit. */
static void test_public_log(void)
{
	char own[] = "own", all[] = "all";
	seen.lines = 0;
	s3once_set_log(take, own, 5);
	log_info("dropped");
	CHECK_INT(seen.lines, 0);
	log_note("a note");
	CHECK_STRING(seen.last, "own 5 a note");
	log_urgent("urgent");
	CHECK_STRING(seen.last, "own 4 urgent");
	log_error("an error");
	CHECK_STRING(seen.last, "own 3 an error");
	s3once_set_log(take, all, 7);
	log_debug("more");
	CHECK_STRING(seen.last, "all 7 more");
	s3once_set_log(take, NULL, 2);
	log_error("dropped");
	CHECK_INT(seen.lines, 4);
	s3once_set_log(NULL, NULL, 4);
	log_note("dropped");
	log_warning("on standard error");
	CHECK_INT(seen.lines, 4);
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
	test_public_log();
	return check_result();
}
