/* The paths that wait in a job of `s3once watch`: their order, their times, and what a check makes
 * of those that are due. */
#include "../check.h"
#include "cli/watch/pending_paths.h"
#include <stdlib.h>

#define NOW_NS 1000

/* Checks the list, each path followed by a space. */
static bool check_list(const struct path_list *list, const char *want)
{
	char all[200] = "";
	for (size_t i = 0; i < list->n; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", list->paths[i]);
	return CHECK_STRING(all, want);
}

/* Checks the waiting paths: each with its time, and '*' if it is new. */
static bool check_pending(const struct pending_paths *pending, const char *want)
{
	char all[200] = "";
	for (size_t i = 0; i < pending->n; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s %llu%s ",
			pending->paths[i].path, (unsigned long long)pending->paths[i].due_ns,
			pending->paths[i].is_new ? "*" : "");
	return CHECK_STRING(all, want);
}

/* Judges a path by its name, and notes that it was asked. */
static uint64_t postponed_ns(void *arg, const char *path, uint64_t now_ns)
{
	char *asked = arg;
	strcat(asked, path + 1);
	return strstr(path, "gone") ? UINT64_MAX : strstr(path, "written") ? now_ns + 500 : now_ns;
}

/* A path waits once, from the first time on. It is new once it was touched, whatever comes then. */
static void test_add(void)
{
	struct pending_paths pending = {0};
	CHECK(pending_due_ns(&pending) == UINT64_MAX);
	pending_add(&pending, "/b", 20, SINCE_PASS);
	CHECK(!pending_has_new(&pending));
	pending_add(&pending, "/c", 30, SINCE_TOUCH);
	pending_add(&pending, "/a", 40, SINCE_PASS);
	check_pending(&pending, "/a 40 /b 20 /c 30* ");
	pending_add(&pending, "/b", 10, SINCE_TOUCH);
	pending_add(&pending, "/c", 5, SINCE_PASS);
	check_pending(&pending, "/a 40 /b 20* /c 30* ");
	CHECK_INT(pending_due_ns(&pending), 20);
	CHECK(pending_has_new(&pending));
	pending_clear(&pending);
	CHECK(pending_due_ns(&pending) == UINT64_MAX);
}

/* Only what is due is judged. What is at rest is taken, if it is asked for, and otherwise is due
 * still. */
static void test_check(void)
{
	struct pending_paths pending = {0};
	struct path_list rested = {0}, more = {0};
	char asked[100] = "";
	pending_add(&pending, "/later", NOW_NS + 1, SINCE_TOUCH);
	CHECK(!pending_check(&pending, NOW_NS, postponed_ns, asked, NULL));
	CHECK_STRING(asked, "");
	pending_add(&pending, "/gone", NOW_NS, SINCE_TOUCH);
	pending_add(&pending, "/written", 1, SINCE_TOUCH);
	CHECK(!pending_check(&pending, NOW_NS, postponed_ns, asked, NULL));
	CHECK_STRING(asked, "gonewritten");
	check_pending(&pending, "/later 1001* /written 1500 ");
	pending_add(&pending, "/rests", 1, SINCE_TOUCH);
	pending_add(&pending, "/always", 2, SINCE_PASS);
	CHECK(pending_check(&pending, NOW_NS, postponed_ns, asked, NULL));
	check_pending(&pending, "/always 1000 /later 1001* /rests 1000* /written 1500 ");
	*asked = '\0';
	CHECK(pending_check(&pending, NOW_NS, postponed_ns, asked, &rested));
	CHECK_STRING(asked, "alwaysrests");
	check_list(&rested, "/always /rests ");
	check_pending(&pending, "/later 1001* /written 1500 ");
	CHECK(pending_check(&pending, NOW_NS + 1, postponed_ns, asked, &more));
	path_list_move(&rested, &more);
	check_list(&rested, "/always /rests /later ");
	check_list(&more, "");
	path_list_clear(&rested);
	pending_clear(&pending);
}

/* Each path waits once, in order. If too many wait, their folder does instead, once. */
static void test_many(void)
{
	struct pending_paths pending = {0};
	char name[96];
	for (unsigned i = 0; i < 1010; i++) {
		/* 7 has no divisor in common with 1010, so this is each name once, out of order. */
		snprintf(name, sizeof name, "/tree/%04u", i * 7 % 1010);
		pending_add(&pending, name, NOW_NS, SINCE_PASS);
		CHECK_INT(pending.n, i < 1000 ? i + 1 : 1001);
		if (i < 999)
			pending_add(&pending, name, NOW_NS, SINCE_PASS);
		CHECK_INT(pending.n, i < 1000 ? i + 1 : 1001);
	}
	CHECK_STRING(pending.paths[0].path, "/tree");
	for (size_t i = 1; i < pending.n; i++)
		CHECK(strcmp(pending.paths[i - 1].path, pending.paths[i].path) < 0);
	pending_clear(&pending);
}

int main(void)
{
	test_add();
	test_check();
	test_many();
	return check_result();
}
