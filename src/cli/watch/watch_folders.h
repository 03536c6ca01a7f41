/* Watches the folders of a job by inotify(7), and reports touched files. The reports are only
 * hints: files that the kernel does not report are found by a pass over all files. libuv's
 * uv_fs_event is not used, since it does not report an overflow of the queue. The functions are for
 * one thread. */
#pragma once
#include "cli/job/job.h"
#include <stdbool.h>
#include <stddef.h>

struct watch_folders;
/* Makes an object for the sources of the job, which watches nothing yet. Files that the rules of
 * the job exclude are not reported, nor is its --log-file. Everything is borrowed.
 *
 * watch_folders_read() calls `touched` for each touched file and each new folder, with its absolute
 * path, in which the links of its folder are resolved. `sign` is called for each folder that is
 * found, as a sign of life, since this may take long. */
struct watch_folders *watch_folders_new(const struct job *job,
	void (*touched)(void *arg, const char *path), void (*sign)(void *arg), void *arg);
/* NULL is fine. */
void watch_folders_free(struct watch_folders *folders);

/* Watches every folder that exists now, and forgets earlier events. Call it before a pass over all
 * files. If the kernel allows no more watches, or no inotify at all, it warns once. Without
 * inotify, nothing is ever reported as touched. */
void watch_folders_renew(struct watch_folders *folders);
/* Returns a descriptor that is readable when there are events, or -1. */
int watch_folders_fd(const struct watch_folders *folders);
/* Reads the events of inotify, and watches new folders. Returns false if events were lost or a
 * SOURCE is gone, so that all files have to be checked. */
bool watch_folders_read(struct watch_folders *folders);

/* Returns the number of watched folders. */
size_t watch_folders_count(const struct watch_folders *folders);

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
