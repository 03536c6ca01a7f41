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

/* The folders that are due, as "a b". */
static const char *taken(struct watch_table *table, uint64_t now_ns)
{
	static char text[256];
	const char **paths;
	const int n = watch_table_take(table, now_ns, &paths);
	text[0] = 0;
	for (int i = 0; i < n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, paths[i]);
	}
	free(paths);
	return text;
}

static void test_rest(void)
{
	struct watch_table table = WATCH_TABLE;
	CHECK_INT(watch_table_put(&table, 1, "a", NULL), 0);
	CHECK_INT(watch_table_put(&table, 2, "b", NULL), 0);
	watch_table_touch(&table, watch_table_find(&table, 1), 100, REST_NS);
	CHECK_INT((long long)table.due_ns, 110);
	watch_table_touch(&table, watch_table_find(&table, 1), 105, REST_NS);
	watch_table_touch(&table, watch_table_find(&table, 2), 103, REST_NS);
	CHECK_STRING(taken(&table, 112), "");
	CHECK_INT((long long)table.due_ns, 113);
	CHECK_STRING(taken(&table, 115), "a b");
	CHECK(table.due_ns == UINT64_MAX);
	CHECK_STRING(taken(&table, 1000), "");
	/* One that is touched all the time is looked at after twice the time. */
	for (uint64_t now = 200; now < 220; now++)
		watch_table_touch(&table, watch_table_find(&table, 2), now, REST_NS);
	CHECK_STRING(taken(&table, 219), "");
	CHECK_STRING(taken(&table, 220), "b");
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
	test_paths();
	test_names();
	test_churn();
	return check_result();
}
