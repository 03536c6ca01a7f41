#include "../check.h"
#include "cli/watch/watch_folders.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	return check_result();
}
