#include "../check.h"
#include "cli/watch/watch_folders.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A folder in which a folder is made while it begins to be watched. */
struct race {
	char *root, *inner;
	bool has_inner_reported;
};

static void make_inner(void *arg)
{
	struct race *race = arg;
	char *outer;
	CHECK(asprintf(&outer, "%s/outer", race->root) > 0);
	if (access(outer, F_OK) == 0)
		mkdir(race->inner, 0700); /* the first time that outer is found */
	free(outer);
}

static void note_inner(void *arg, const char *path)
{
	struct race *race = arg;
	race->has_inner_reported |= strcmp(path, race->inner) == 0;
}

/* When the folder was found, it had no folder in it, and what is made in it before its watch begins
 * makes no event. */
static void test_folder_made_between_find_and_watch(void)
{
	char root[] = "/tmp/test_watch_folders.XXXXXX", path[64], inner[64];
	CHECK(mkdtemp(root) != NULL);
	snprintf(path, sizeof path, "%s/outer", root);
	snprintf(inner, sizeof inner, "%s/outer/inner", root);
	char *sources[] = {root};
	struct job job = {.operands = sources, .n_sources = 1};
	job.options.run.sources = (const char *const *)sources;
	struct race race = {.root = root, .inner = inner};
	struct watch_folders *folders = watch_folders_new(&job, note_inner, make_inner, &race);
	watch_folders_renew(folders);
	CHECK_INT(mkdir(path, 0700), 0);
	CHECK(watch_folders_read(folders));
	CHECK(race.has_inner_reported);
	CHECK_INT((long long)watch_folders_count(folders), 3);
	watch_folders_free(folders);
	rmdir(inner);
	rmdir(path);
	rmdir(root);
}

int main(void)
{
	test_folder_made_between_find_and_watch();
	test_paths();
	test_names();
	test_churn();
	return check_result();
}
