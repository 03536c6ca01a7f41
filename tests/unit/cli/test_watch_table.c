#include "../check.h"
#include "cli/watch/watch_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST_NS 10

static void count(void *arg, int wd)
{
	++*(int *)arg;
}

static void add_path(void *arg, const char *path)
{
	char *text = arg;
	strcat(text, *text ? " " : "");
	strcat(text, path);
}

/* What is due, as "a b". */
static const char *taken(struct watch_table *table, uint64_t now_ns)
{
	static char text[256];
	text[0] = 0;
	watch_table_take(table, now_ns, add_path, text);
	return text;
}

static void test_rest(void)
{
	struct watch_table table = WATCH_TABLE;
	CHECK_INT(watch_table_put(&table, 1, "a", NULL), 0);
	CHECK_INT(watch_table_put(&table, 2, "b", NULL), 0);
	watch_table_touch(&table, watch_table_find(&table, 1), NULL, 100, REST_NS);
	CHECK_INT((long long)table.due_ns, 110);
	watch_table_touch(&table, watch_table_find(&table, 1), NULL, 105, REST_NS);
	watch_table_touch(&table, watch_table_find(&table, 2), NULL, 103, REST_NS);
	CHECK_STRING(taken(&table, 112), "");
	CHECK_INT((long long)table.due_ns, 113);
	CHECK_STRING(taken(&table, 115), "a b");
	CHECK(table.due_ns == UINT64_MAX);
	CHECK_STRING(taken(&table, 1000), "");
	/* One that is touched all the time is looked at after twice the time. */
	for (uint64_t now = 200; now < 220; now++)
		watch_table_touch(&table, watch_table_find(&table, 2), NULL, now, REST_NS);
	CHECK_STRING(taken(&table, 219), "");
	CHECK_STRING(taken(&table, 220), "b");
	watch_table_clear(&table);
}

static void test_touched_names(void)
{
	struct watch_table table = WATCH_TABLE;
	char name[32];
	watch_table_put(&table, 1, "/a", NULL);
	watch_table_put(&table, 2, "/", NULL);
	struct watch_folder *a = watch_table_find(&table, 1), *root = watch_table_find(&table, 2);
	watch_table_touch(&table, a, "x", 1, REST_NS);
	watch_table_touch(&table, a, "y", 1, REST_NS);
	watch_table_touch(&table, a, "x", 1, REST_NS);
	watch_table_touch(&table, root, "z", 1, REST_NS);
	CHECK_STRING(taken(&table, 100), "/a/x /a/y /z");
	/* A name that is not known stands for all, whenever it comes. */
	watch_table_touch(&table, a, "x", 1, REST_NS);
	watch_table_touch(&table, a, NULL, 1, REST_NS);
	watch_table_touch(&table, a, "y", 1, REST_NS);
	CHECK_STRING(taken(&table, 100), "/a");
	/* Many names do, too, and they leave their room to others. */
	for (int i = 0; i < 1001; i++) {
		snprintf(name, sizeof name, "%d", i);
		watch_table_touch(&table, a, name, 1, REST_NS);
	}
	watch_table_touch(&table, root, "z", 1, REST_NS);
	CHECK_STRING(taken(&table, 100), "/a /z");
	watch_table_touch(&table, a, "x", 1, REST_NS);
	CHECK_STRING(taken(&table, 100), "/a/x");
	CHECK_INT((long long)table.n_touched, 0);
	watch_table_clear(&table);
}

static void test_paths(void)
{
	struct watch_table table = WATCH_TABLE;
	int dropped = 0;
	watch_table_put(&table, 3, "/t/old", NULL);
	watch_table_put(&table, 1, "/t", NULL);
	watch_table_put(&table, 4, "/t/old/sub", NULL);
	watch_table_put(&table, 7, "/t/older", NULL);
	watch_table_put(&table, 3, "/t/new", NULL);
	CHECK_STRING(watch_table_find(&table, 3)->path, "/t/new");
	CHECK(!watch_table_find(&table, 2) && !watch_table_find(&table, 8));
	watch_table_drop_below(&table, "/t/old", count, &dropped);
	CHECK_INT(dropped, 1);
	CHECK(!watch_table_find(&table, 4) && watch_table_find(&table, 7));
	table.generation++;
	watch_table_put(&table, 1, "/t", NULL);
	watch_table_sweep(&table, count, &dropped);
	CHECK_INT(dropped, 3);
	CHECK_INT((long long)(table.n - table.n_gone), 1);
	watch_table_clear(&table);
}

/* A folder of files that are sources, beside one another. */
static void test_names(void)
{
	struct watch_table table = WATCH_TABLE;
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_put(&table, 1, "/t", "b");
	CHECK(!watch_table_find(&table, 1)->only_name);
	watch_table_put(&table, 1, "/t", "a");
	CHECK(!watch_table_find(&table, 1)->only_name);
	table.generation++;
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_clear(&table);
}

/* Folders that come and go for years take no more room. */
static void test_churn(void)
{
	struct watch_table table = WATCH_TABLE;
	char path[32];
	for (int wd = 1; wd < 100000; wd++) {
		snprintf(path, sizeof path, "/t/%d", wd);
		watch_table_put(&table, wd, path, NULL);
		if (wd > 10)
			watch_table_drop(&table, watch_table_find(&table, wd - 10));
	}
	CHECK_INT((long long)(table.n - table.n_gone), 10);
	CHECK(table.cap < 100);
	watch_table_clear(&table);
}

int main(void)
{
	test_rest();
	test_touched_names();
	test_paths();
	test_names();
	test_churn();
	return check_result();
}
