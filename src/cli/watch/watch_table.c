/* The folders that are watched, by their inotify descriptor and by their path. */
#include "base/must_have.h"
#include "cli/watch/watch_folders.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void forget(struct watch_folder *folder)
{
	free(folder->path);
	free(folder->only_name);
	folder->path = folder->only_name = NULL;
}

void watch_table_clear(struct watch_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		forget(&table->folders[i]);
	free(table->folders);
	*table = (struct watch_table){0};
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

/* Room for one more. The folders that are gone are dropped if they are more than those that exist.
 */
static void make_room(struct watch_table *table)
{
	size_t kept = 0;
	if (table->n_gone > table->n / 2) {
		for (size_t i = 0; i < table->n; i++)
			if (table->folders[i].path)
				table->folders[kept++] = table->folders[i];
		table->n = kept;
		table->n_gone = 0;
	}
	if (table->n < table->cap)
		return;
	table->cap = 2 * table->cap + 16;
	table->folders =
		must_have(reallocarray(table->folders, table->cap, sizeof *table->folders));
}

void watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name)
{
	char *path_copy = must_have(strdup(path));
	char *name_copy = only_name ? must_have(strdup(only_name)) : NULL;
	size_t i = lower_bound(table, wd);
	if (i == table->n || table->folders[i].wd != wd) {
		make_room(table);
		i = lower_bound(table, wd);
		memmove(&table->folders[i + 1], &table->folders[i],
			(table->n - i) * sizeof *table->folders);
		table->folders[i] = (struct watch_folder){.wd = wd};
		table->n++;
		table->n_gone++;
	}
	struct watch_folder *folder = &table->folders[i];
	const bool is_known = folder->path, counts_all = is_known && !folder->only_name;
	const bool is_same = is_known && folder->generation == table->generation;
	table->n_gone -= !is_known;
	/* Of a folder that several sources are in, all counts unless they name the same file. */
	if (is_same && name_copy && (counts_all || strcmp(folder->only_name, name_copy) != 0)) {
		free(name_copy);
		name_copy = NULL;
	}
	forget(folder);
	folder->path = path_copy;
	folder->only_name = name_copy;
	folder->generation = table->generation;
}

void watch_table_drop(struct watch_table *table, struct watch_folder *folder)
{
	table->n_gone += folder->path != NULL;
	forget(folder);
}

void watch_table_drop_all(
	struct watch_table *table, const char *path, void (*dropped)(void *arg, int wd), void *arg)
{
	const size_t n = path ? strlen(path) : 0;
	for (size_t i = 0; i < table->n; i++) {
		struct watch_folder *folder = &table->folders[i];
		const char *own = folder->path;
		const bool is_below =
			own && path && strncmp(own, path, n) == 0 && (!own[n] || own[n] == '/');
		if (!own || (path ? !is_below : folder->generation == table->generation))
			continue;
		watch_table_drop(table, folder);
		dropped(arg, folder->wd);
	}
}
