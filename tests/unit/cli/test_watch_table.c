#include "../check.h"
#include "cli/watch/watch_table.h"
#include <stdio.h>

static void test_paths(void)
{
	struct watch_table table = {0};
	watch_table_put(&table, 3, "/t/old", NULL);
	watch_table_put(&table, 1, "/t", NULL);
	watch_table_put(&table, 4, "/t/old/sub", NULL);
	watch_table_put(&table, 7, "/t/older", NULL);
	watch_table_put(&table, 3, "/t/new", NULL);
	CHECK_STRING(watch_table_find(&table, 3)->path, "/t/new");
	CHECK(!watch_table_find(&table, 2) && !watch_table_find(&table, 8));
	watch_table_put(&table, 5, "/t/old", NULL);
	watch_table_drop_below(&table, "/t/old", -1);
	CHECK_INT((long long)table.n, 3);
	CHECK(!watch_table_find(&table, 4) && !watch_table_find(&table, 5));
	CHECK(watch_table_find(&table, 1) && watch_table_find(&table, 7));
	watch_table_clear(&table);
}

/* A folder of files that are sources, beside one another. */
static void test_names(void)
{
	struct watch_table table = {0};
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_put(&table, 1, "/t", "b");
	CHECK(!watch_table_find(&table, 1)->only_name);
	watch_table_put(&table, 1, "/t", "a");
	CHECK(!watch_table_find(&table, 1)->only_name);
	watch_table_clear(&table);
	watch_table_put(&table, 1, "/t", "a");
	CHECK_STRING(watch_table_find(&table, 1)->only_name, "a");
	watch_table_clear(&table);
}

/* Folders that come and go for years take no more room. */
static void test_churn(void)
{
	struct watch_table table = {0};
	char path[32];
	for (int wd = 1; wd < 100000; wd++) {
		snprintf(path, sizeof path, "/t/%d", wd);
		watch_table_put(&table, wd, path, NULL);
		if (wd > 10)
			watch_table_drop(&table, wd - 10);
	}
	CHECK_INT((long long)table.n, 10);
	watch_table_clear(&table);
}

int main(void)
{
	test_paths();
	test_names();
	test_churn();
	return check_result();
}
