/* The folders of a job as inotify(7) watches them, and what is touched in them. It is a hint
 * only: what the kernel does not tell is found when all files are looked at. inotify is used
 * as it is, since libuv's uv_fs_event does not say that the queue has overflowed. For one thread.
 */
#pragma once
#include "cli/job/job.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_folders;
/* Makes an object that watches nothing yet: the sources of the job, but what its rules exclude.
 * What is done to its --log-file does not count. Everything is borrowed.
 *
 * `touched` is called by watch_folders_read() with the absolute path, without links in its folder,
 * of each file that was touched, and of each folder that is new. `moves` is called for each folder
 * that is found, as a sign of life, since finding all of them may take long. */
struct watch_folders *watch_folders_new(const struct job *job,
	void (*touched)(void *arg, const char *path), void (*moves)(void *arg), void *arg);
/* NULL is fine. */
void watch_folders_free(struct watch_folders *folders);

/* Watches every folder that is there now, and forgets what has happened so far. To be called before
 * all files are looked at. A folder that cannot be watched is reported once; so is a host that
 * refuses inotify, on which no folder is ever touched. */
void watch_folders_renew(struct watch_folders *folders);
/* A descriptor that is readable when something has happened. -1: there is none. */
int watch_folders_fd(const struct watch_folders *folders);
/* Takes in what has happened. New folders are watched from now on. Returns false if not all of it
 * is known, so that all files have to be looked at. */
bool watch_folders_read(struct watch_folders *folders);

size_t watch_folders_count(const struct watch_folders *folders);

/* Which folder each watch of inotify(7) is about. */
struct watch_folder {
	int wd;
	char *path;
	char *only_name;           /* only this file in it counts; NULL: all */
	struct watch_folder *next; /* while many are dropped */
};

/* Zero it to start. */
struct watch_table {
	void *tree; /* tsearch(3), by wd */
	size_t n;
};

/* Forgets all folders and frees their memory. */
void watch_table_clear(struct watch_table *table);
/* The folder that is watched as wd, or NULL. Valid until the table changes. */
struct watch_folder *watch_table_find(const struct watch_table *table, int wd);
/* A folder is watched as wd, perhaps one that was known under another path. */
void watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name);
void watch_table_drop(struct watch_table *table, int wd);
/* Drops each folder that is at `path` or below it, and its watch, whose descriptor is fd. */
void watch_table_drop_all(struct watch_table *table, const char *path, int fd);
