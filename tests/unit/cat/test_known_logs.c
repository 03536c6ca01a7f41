#include "../check.h"
#include "cat/known_logs.h"

static void add(struct known_logs *known, struct known_log *log, uint64_t start, uint64_t end,
	const char *table)
{
	struct log_range range = {.start = start, .end = end, .id = "1"};
	snprintf(range.table, sizeof range.table, "%s", table);
	CHECK_INT(known_logs_add(known, log, &range), 0);
}

static bool may_repeat(
	const struct known_logs *known, uint64_t start, uint64_t end, const char *table)
{
	struct log_range range = {.start = start, .end = end};
	snprintf(range.table, sizeof range.table, "%s", table);
	return known_log_may_repeat(known->logs, &range);
}

static void test_continuation_of_a_log(void)
{
	struct known_logs known = {.n = 0};
	CHECK(!known_logs_find_continued(&known, 0));
	CHECK(!known_logs_find_continued(&known, 5));
	add(&known, NULL, 0, 5, "t");
	add(&known, NULL, 0, 9, "t");
	CHECK(!known_logs_find_continued(&known, 0));
	CHECK(!known_logs_find_continued(&known, 6));
	CHECK(known_logs_find_continued(&known, 9) == &known.logs[0]);
	struct known_log *log = known_logs_find_continued(&known, 5);
	CHECK(log == &known.logs[1]);
	add(&known, log, 5, 7, "t");
	CHECK_INT(known.n, 2);
	CHECK_INT(known.logs[0].end, 7);
	CHECK_INT(known.logs[0].n, 2);
	CHECK_INT(known.logs[1].end, 9);
	/* Only the latest log may have any length. */
	add(&known, NULL, 0, LENGTH_UNKNOWN, "t");
	CHECK(known_logs_find_continued(&known, 100) == &known.logs[0]);
	add(&known, NULL, 0, 3, "t");
	CHECK(!known_logs_find_continued(&known, 100));
	for (unsigned i = 0; i < 2 * KNOWN_LOGS_MAX; i++)
		add(&known, NULL, 0, 1000 + i, "t");
	CHECK_INT(known.n, KNOWN_LOGS_MAX);
	CHECK(!known_logs_find_continued(&known, 9));
	CHECK(known_logs_find_continued(&known, 1000 + KNOWN_LOGS_MAX) ==
		&known.logs[KNOWN_LOGS_MAX - 1]);
	known_logs_clear(&known);
}

static void test_lines_that_may_repeat(void)
{
	struct known_logs known = {.n = 0};
	add(&known, NULL, 0, 5, "t");
	CHECK(!may_repeat(&known, 0, 9, "t")); /* marks that know the log cut no piece twice */
	CHECK(may_repeat(&known, 0, 9, "other"));
	CHECK(!may_repeat(&known, 0, 5, "other")); /* an equal log */
	CHECK(may_repeat(&known, 0, LENGTH_UNKNOWN, "other"));
	CHECK(!may_repeat(&known, 5, 9, "t"));
	add(&known, &known.logs[0], 5, 9, "t");
	CHECK(may_repeat(&known, 0, 9, "other"));
	CHECK(may_repeat(&known, 5, 12, "t")); /* marks that were restored from a copy */
	CHECK(!may_repeat(&known, 9, 12, "other"));
	known_logs_clear(&known);
	/* The beginning of the log is not read. */
	add(&known, NULL, 5, 9, "t");
	CHECK(may_repeat(&known, 0, 12, "other"));
	CHECK(!may_repeat(&known, 0, 5, "other"));
	known_logs_clear(&known);
}

int main(void)
{
	test_continuation_of_a_log();
	test_lines_that_may_repeat();
	return check_result();
}
