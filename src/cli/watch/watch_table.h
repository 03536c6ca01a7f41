/* Which folder each watch of inotify(7) is about, and what was touched in them. */
#pragma once
#include "scan/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_folder {
	int wd;
	unsigned generation;     /* see watch_table_sweep() */
	char *path;              /* NULL: it is watched no more */
	char *only_name;         /* only this file in it counts; NULL: all */
	uint64_t first_touch_ns; /* 0: not touched */
	bool touched_all;        /* more names than are kept, or unknown ones */
	struct names touched;    /* else these */
	uint64_t due_ns;         /* of a folder that was touched */
};

/* WATCH_TABLE is empty. In order of wd, which the kernel gives in rising order. */
struct watch_table {
	struct watch_folder *folders;
	size_t n, cap;
	size_t n_gone; /* with path NULL */
	unsigned generation;
	size_t n_touched; /* names, in all folders */
	uint64_t due_ns;  /* not later than the first due_ns; UINT64_MAX: none is touched */
};

#define WATCH_TABLE ((struct watch_table){.due_ns = UINT64_MAX})

/* Forgets all folders and frees their memory. */
void watch_table_clear(struct watch_table *table);
/* The folder that is watched as wd, or NULL. Valid until the table changes. */
struct watch_folder *watch_table_find(struct watch_table *table, int wd);
/* A folder is watched as wd, perhaps one that was known under another path. 0 or -ENOMEM. */
int watch_table_put(struct watch_table *table, int wd, const char *path, const char *only_name);
void watch_table_drop(struct watch_table *table, struct watch_folder *folder);
/* Calls `dropped` for each folder that is at `path` or below it, and drops it. */
void watch_table_drop_below(
	struct watch_table *table, const char *path, void (*dropped)(void *arg, int wd), void *arg);
/* The same for each that was not put since the generation was raised last. */
void watch_table_sweep(struct watch_table *table, void (*dropped)(void *arg, int wd), void *arg);

/* This name in the folder was touched, or with NULL any. The folder is due rest_ns after the last
 * touch, but not later than twice that after the first one. */
void watch_table_touch(struct watch_table *table, struct watch_folder *folder, const char *name,
	uint64_t now_ns, uint64_t rest_ns);
/* No folder is touched any longer. */
void watch_table_settle(struct watch_table *table);
/* Calls `rests` with the path of each folder that is due, or with those of the files in it if few
 * were touched. It is not touched any longer then. */
void watch_table_take(struct watch_table *table, uint64_t now_ns,
	void (*rests)(void *arg, const char *path), void *arg);
