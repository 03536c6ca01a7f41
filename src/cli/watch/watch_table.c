/* The watched folders, in a tree in the order of their watch descriptors. */
#include "cli/watch/watch_table.h"
#include "base/must_have.h"
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

static int by_wd(const void *a, const void *b)
{
	const struct watch_folder *first = a, *second = b;
	return (first->wd > second->wd) - (first->wd < second->wd);
}

static void free_folder(void *arg)
{
	struct watch_folder *folder = arg;
	free(folder->path);
	free(folder->only_name);
	free(folder);
}

void watch_table_clear(struct watch_table *table)
{
	tdestroy(table->tree, free_folder);
	*table = (struct watch_table){0};
}

struct watch_folder *watch_table_find(const struct watch_table *table, int wd)
{
	struct watch_folder **found = tfind(&(struct watch_folder){.wd = wd}, &table->tree, by_wd);
	return found ? *found : NULL;
}

void watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name)
{
	struct watch_folder *folder = must_have(calloc(1, sizeof *folder));
	const struct watch_folder *known = watch_table_find(table, wd);
	/* A folder that is known already may be watched for another SOURCE. Then everything in it
	 * counts, unless both SOURCEs are the same file. */
	const bool counts_all = known && only_name &&
				(!known->only_name || strcmp(known->only_name, only_name) != 0);
	folder->wd = wd;
	folder->path = must_have(strdup(path));
	if (only_name && !counts_all)
		folder->only_name = must_have(strdup(only_name));
	watch_table_drop(table, wd); /* frees `known` */
	must_have(tsearch(folder, &table->tree, by_wd));
	table->n++;
}

void watch_table_drop(struct watch_table *table, int wd)
{
	struct watch_folder *folder = watch_table_find(table, wd);
	if (!folder)
		return;
	tdelete(folder, &table->tree, by_wd);
	free_folder(folder);
	table->n--;
}

/* A list of the folders at a path and below it. */
struct below {
	const char *path;
	struct watch_folder *first;
};

/* Adds a folder to the list if it is at the path or below it: a visit of twalk_r(3). */
static void list_if_below(const void *node, VISIT which, void *arg)
{
	struct below *below = arg;
	struct watch_folder *folder = *(struct watch_folder *const *)node;
	const size_t n = strlen(below->path);
	const bool is_first_visit = which == preorder || which == leaf;
	const bool is_below = strncmp(folder->path, below->path, n) == 0 &&
			      (folder->path[n] == '\0' || folder->path[n] == '/');
	if (!is_first_visit || !is_below)
		return;
	folder->next = below->first;
	below->first = folder;
}

void watch_table_drop_below(struct watch_table *table, const char *path, int fd)
{
	struct below below = {.path = path};
	/* The folders are listed first, since the tree must not change while it is walked. */
	twalk_r(table->tree, list_if_below, &below);
	for (struct watch_folder *at = below.first, *next; at; at = next) {
		next = at->next;
		inotify_rm_watch(fd, at->wd);
		watch_table_drop(table, at->wd);
	}
}
