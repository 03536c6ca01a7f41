/* Which folder each watch of inotify(7) is about. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct watch_folder {
	int wd;
	unsigned generation; /* see watch_table_drop_all() */
	char *path;          /* NULL: it is watched no more */
	char *only_name;     /* only this file in it counts; NULL: all */
};

/* Zero it to start. In order of wd, which the kernel gives in rising order. */
struct watch_table {
	struct watch_folder *folders;
	size_t n, cap;
	size_t n_gone; /* with path NULL */
	unsigned generation;
};

/* Forgets all folders and frees their memory. */
void watch_table_clear(struct watch_table *table);
/* The folder that is watched as wd, or NULL. Valid until the table changes. */
struct watch_folder *watch_table_find(struct watch_table *table, int wd);
/* A folder is watched as wd, perhaps one that was known under another path. 0 or -ENOMEM. */
int watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name);
void watch_table_drop(struct watch_table *table, struct watch_folder *folder);
/* Calls `dropped` for each folder that is at `path` or below it, or with NULL for each that was not
 * put since the generation was raised last, and drops it. */
void watch_table_drop_all(
	struct watch_table *table, const char *path, void (*dropped)(void *arg, int wd), void *arg);
