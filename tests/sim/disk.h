/* A file system in memory. The world chooses its inode numbers, its times and the order of its
 * listings, never the real machine.
 *
 * Functions that return int return -errno on failure. Nodes belong to their disk. */
#pragma once
#include "chance.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct disk;
struct node;

struct node_entry {
	char *name;
	struct node *node;
};

/* A write that has not been synced. */
struct unsynced {
	uint64_t offset;
	size_t n;
	bool is_truncation; /* the file is truncated to `offset` bytes */
	unsigned char *bytes;
};

struct node {
	struct disk *disk;
	uint64_t number;
	mode_t mode;
	uid_t uid;
	unsigned links;
	unsigned opened;  /* descriptors and connections that have it open */
	unsigned writers; /* those of them that may write */
	int64_t mtime_ns, ctime_ns, atime_ns, born_ns;
	unsigned char *data; /* the content of a file, or the target of a link */
	uint64_t size, cap;
	struct node_entry *entries; /* the content of a folder */
	size_t n_entries, cap_entries;
	struct node *parent;
	/* For a file whose writes are lost unless it is synced: disk_keep_unsynced(). */
	bool waits_for_sync;
	unsigned char *synced;
	uint64_t synced_size;
	struct unsynced *unsynced;
	size_t n_unsynced;
	uint64_t unsynced_ns; /* world time of the first unsynced write */
	uint64_t flocked_by;  /* a process id */
	unsigned log;         /* the number of its log, if it is one (judge_waits.h) */
};

/* `wall_ns` returns the time of the disk's machine, in ns since 1970. */
struct disk *disk_new(uint64_t seed, const char *name, int64_t (*wall_ns)(void *arg), void *arg);
void disk_free(struct disk *disk);
struct node *disk_root(struct disk *disk);
uint64_t disk_device(const struct disk *disk);

#define LOOKUP_FOLLOW   1
#define LOOKUP_NO_LINKS 2 /* any link on the way is -ELOOP */
/* Finds the node at a path, which begins at `from` unless it is absolute. */
int disk_find(struct disk *disk, struct node *from, const char *path, int flags, struct node **ret);
/* Finds the folder of the last component of a path, and that component, which points into the
 * path. */
int disk_find_parent(struct disk *disk, struct node *from, const char *path, struct node **ret,
	const char **ret_name);
int disk_make(struct disk *disk, struct node *folder, const char *name, mode_t mode, uid_t uid,
	struct node **ret);
int disk_remove(struct node *folder, const char *name, bool is_folder);
int disk_link(struct node *folder, const char *name, struct node *node);
int disk_rename(struct node *from, const char *from_name, struct node *to, const char *to_name,
	bool may_replace);
/* Returns the absolute path of a folder. The caller frees it. */
char *disk_path(const struct node *node);
/* Returns the names in a folder, in the order in which this disk lists them, with a NULL at the
 * end. The caller frees each name and the list. */
char **disk_listing(const struct node *folder);

long node_read(struct node *node, void *buf, size_t n, uint64_t offset);
int node_write(struct node *node, const void *bytes, size_t n, uint64_t offset);
int node_truncate(struct node *node, uint64_t size);
void node_stat(const struct node *node, struct stat *ret);
void node_touch(struct node *node);
void node_touch_status(struct node *node); /* as chmod does */
void node_release(struct node *node);      /* call it after `links` or `opened` was reduced */

/* From now on, a power cut may undo the writes to this file since its last sync. */
void disk_keep_unsynced(struct node *node);
void node_sync(struct node *node);
/* Simulates a power cut: each such file keeps a random part of the writes since its last sync. */
void disk_lose_power(struct disk *disk, struct chance *chance);

/* Copies a folder with all its content to the same path of another disk, which then has the same
 * device and inode numbers, like the copy of a disk image. */
void disk_copy(struct disk *from, const char *path, struct disk *to);

/* Read and write whole files by absolute path. Missing folders are made. */
int disk_put(struct disk *disk, const char *path, const void *bytes, size_t n);
struct node *disk_get(struct disk *disk, const char *path);
