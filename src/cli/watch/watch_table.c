/* The folders that are watched, by their inotify descriptor and by their path. */
#include "cli/watch/watch_table.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOUCHED_MAX 1000 /* names in all folders; all of a folder is looked at beyond that */
#define TAG_TOUCHED 't'

static void forget_names(struct watch_table *table, struct watch_folder *folder)
{
	table->n_touched -= folder->touched.n;
	names_clear(&folder->touched);
}

static void settle(struct watch_table *table, struct watch_folder *folder)
{
	forget_names(table, folder);
	folder->touched_all = false;
	folder->first_touch_ns = 0;
}

static void forget(struct watch_table *table, struct watch_folder *folder)
{
	free(folder->path);
	free(folder->only_name);
	folder->path = folder->only_name = NULL;
	settle(table, folder);
}

void watch_table_clear(struct watch_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		forget(table, &table->folders[i]);
	free(table->folders);
	*table = WATCH_TABLE;
}

/* The first with this wd or a higher one. */
static size_t lower_bound(const struct watch_table *table, int wd)
{
	size_t from = 0, to = table->n;
	if (to && table->folders[to - 1].wd < wd)
		return to;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (table->folders[middle].wd < wd)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

struct watch_folder *watch_table_find(struct watch_table *table, int wd)
{
	const size_t i = lower_bound(table, wd);
	struct watch_folder *folder = &table->folders[i];
	return i < table->n && folder->wd == wd && folder->path ? folder : NULL;
}

/* Drops the folders that are gone, if they are more than those that exist. */
static void compact(struct watch_table *table)
{
	size_t kept = 0;
	if (table->n_gone <= table->n / 2)
		return;
	for (size_t i = 0; i < table->n; i++)
		if (table->folders[i].path)
			table->folders[kept++] = table->folders[i];
	table->n = kept;
	table->n_gone = 0;
}

static int make_room(struct watch_table *table)
{
	compact(table);
	if (table->n < table->cap)
		return 0;
	const size_t cap = 2 * table->cap + 16;
	struct watch_folder *grown = realloc(table->folders, cap * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	table->folders = grown;
	table->cap = cap;
	return 0;
}

/* The place of this wd, which is empty unless the folder is known. NULL: out of memory. */
static struct watch_folder *place(struct watch_table *table, int wd)
{
	size_t i = lower_bound(table, wd);
	if (i < table->n && table->folders[i].wd == wd)
		return &table->folders[i];
	if (make_room(table))
		return NULL;
	i = lower_bound(table, wd);
	memmove(&table->folders[i + 1], &table->folders[i],
		(table->n - i) * sizeof *table->folders);
	table->folders[i] = (struct watch_folder){.wd = wd};
	table->n++;
	table->n_gone++;
	return &table->folders[i];
}

int watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name)
{
	char *path_copy = strdup(path), *name_copy = only_name ? strdup(only_name) : NULL;
	struct watch_folder *folder =
		path_copy && (name_copy || !only_name) ? place(table, wd) : NULL;
	if (!folder) {
		free(path_copy);
		free(name_copy);
		return -ENOMEM;
	}
	const bool is_known = folder->path, counts_all = is_known && !folder->only_name;
	const bool is_same = is_known && folder->generation == table->generation;
	table->n_gone -= !is_known;
	/* Of a folder that several sources are in, all counts unless they name the same file. */
	if (is_same && name_copy && (counts_all || strcmp(folder->only_name, name_copy) != 0)) {
		free(name_copy);
		name_copy = NULL;
	}
	free(folder->path);
	free(folder->only_name);
	folder->path = path_copy;
	folder->only_name = name_copy;
	folder->generation = table->generation;
	return 0;
}

void watch_table_drop(struct watch_table *table, struct watch_folder *folder)
{
	table->n_gone += folder->path != NULL;
	forget(table, folder);
}

static bool is_below(const char *path, const char *folder)
{
	const size_t n = strlen(folder);
	return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

void watch_table_drop_below(
	struct watch_table *table, const char *path, void (*dropped)(void *arg, int wd), void *arg)
{
	for (size_t i = 0; i < table->n; i++) {
		struct watch_folder *folder = &table->folders[i];
		if (!folder->path || !is_below(folder->path, path))
			continue;
		watch_table_drop(table, folder);
		dropped(arg, folder->wd);
	}
}

void watch_table_sweep(struct watch_table *table, void (*dropped)(void *arg, int wd), void *arg)
{
	for (size_t i = 0; i < table->n; i++) {
		struct watch_folder *folder = &table->folders[i];
		if (!folder->path || folder->generation == table->generation)
			continue;
		watch_table_drop(table, folder);
		dropped(arg, folder->wd);
	}
}

static void note_name(struct watch_table *table, struct watch_folder *folder, const char *name)
{
	struct names *touched = &folder->touched;
	for (size_t i = 0; name && i < touched->n; i++)
		if (strcmp(names_get(touched, i), name) == 0)
			return;
	if (name && !folder->touched_all && table->n_touched < TOUCHED_MAX &&
		!names_add(touched, TAG_TOUCHED, name, strlen(name))) {
		table->n_touched++;
		return;
	}
	folder->touched_all = true;
	forget_names(table, folder);
}

void watch_table_touch(struct watch_table *table, struct watch_folder *folder, const char *name,
	uint64_t now_ns, uint64_t rest_ns)
{
	note_name(table, folder, name);
	if (!folder->first_touch_ns)
		folder->first_touch_ns = now_ns;
	const uint64_t latest_ns = folder->first_touch_ns + 2 * rest_ns;
	folder->due_ns = now_ns + rest_ns < latest_ns ? now_ns + rest_ns : latest_ns;
	if (folder->due_ns < table->due_ns)
		table->due_ns = folder->due_ns;
}

void watch_table_settle(struct watch_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		settle(table, &table->folders[i]);
	table->due_ns = UINT64_MAX;
}

static void tell_touched(
	const struct watch_folder *folder, void (*rests)(void *arg, const char *path), void *arg)
{
	char path[PATH_MAX + NAME_MAX + 2];
	if (folder->touched_all)
		rests(arg, folder->path);
	for (size_t i = 0; i < folder->touched.n; i++) {
		snprintf(path, sizeof path, "%s/%s", folder->path[1] ? folder->path : "",
			names_get(&folder->touched, i));
		rests(arg, path);
	}
}

void watch_table_take(struct watch_table *table, uint64_t now_ns,
	void (*rests)(void *arg, const char *path), void *arg)
{
	table->due_ns = UINT64_MAX;
	for (size_t i = 0; i < table->n; i++) {
		struct watch_folder *folder = &table->folders[i];
		if (!folder->first_touch_ns)
			continue;
		if (folder->due_ns <= now_ns) {
			tell_touched(folder, rests, arg);
			settle(table, folder);
		} else if (folder->due_ns < table->due_ns) {
			table->due_ns = folder->due_ns;
		}
	}
}
