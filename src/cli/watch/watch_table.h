/* The folders that inotify(7) watches for a job, by their watch descriptors. */
#pragma once
#include <stddef.h>

/* A folder, and its watch descriptor of inotify(7). */
struct watch_folder {
	int wd;
	char *path;
	char *only_name;           /* only this file in it is watched; NULL: all files */
	struct watch_folder *next; /* used by watch_table_drop_below() */
};

/* All folders that are watched. Zero it to start. */
struct watch_table {
	void *tree; /* tree of tsearch(3), in the order of wd */
	size_t n;
};

/* Forgets all folders and frees their memory. */
void watch_table_clear(struct watch_table *table);
/* Returns the folder that is watched as wd, or NULL. It is valid until the table changes. */
struct watch_folder *watch_table_find(const struct watch_table *table, int wd);
/* Notes that the folder at `path` is watched as wd. It replaces a folder with the same wd, perhaps
 * the same folder under another path. `only_name` is as in struct watch_folder. If the folder that
 * is replaced has another only_name, the new one has none: events of all names in it count. */
void watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name);
/* Forgets the folder that is watched as wd, but does not end its watch. */
void watch_table_drop(struct watch_table *table, int wd);
/* Forgets each folder at `path` or below it, and ends its watch. `fd` is that of inotify. */
void watch_table_drop_below(struct watch_table *table, const char *path, int fd);
