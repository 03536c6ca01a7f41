/* A file system in memory. Its inode numbers, times and the order of its listings come from the
 * world, never from the real machine.
 *
 * Functions return 0, a value of their own, or -errno. Nodes belong to their disk. */
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

/* A write that the disk has not been asked to keep. */
struct unsynced {
	uint64_t offset;
	size_t n;
	bool is_truncation; /* to `offset` bytes */
	unsigned char *bytes;
};

struct node {
	struct disk *disk;
	uint64_t number;
	mode_t mode;
	uid_t uid;
	unsigned links;
	unsigned opened;  /* by descriptors and connections */
	unsigned writers; /* of these, those that may write */
	int64_t mtime_ns, ctime_ns, atime_ns, born_ns;
	unsigned char *data; /* of a file; the target of a link */
	uint64_t size, cap;
	struct node_entry *entries; /* of a folder */
	size_t n_entries, cap_entries;
	struct node *parent;
	/* Of a file whose writes wait for a sync (disk_keep_unsynced()). */
	bool waits_for_sync;
	unsigned char *synced;
	uint64_t synced_size;
	struct unsynced *unsynced;
	size_t n_unsynced;
	uint64_t unsynced_ns; /* world time of the first of these */
	uint64_t flocked_by;  /* a process id */
	unsigned log;         /* that it has, where logs rotate (judge_waits.h) */
};

/* What tells the time of this disk's machine, in ns since 1970. */
struct disk *disk_new(uint64_t seed, const char *name, int64_t (*wall_ns)(void *arg), void *arg);
void disk_free(struct disk *disk);
struct node *disk_root(struct disk *disk);
uint64_t disk_device(const struct disk *disk);

#define LOOKUP_FOLLOW   1
#define LOOKUP_NO_LINKS 2 /* no link at all on the way: -ELOOP */
/* The node at a path, which begins at `from` unless it is absolute. */
int disk_find(struct disk *disk, struct node *from, const char *path, int flags, struct node **ret);
/* The folder that the last part of a path is in, and that part, which points into path. */
int disk_find_parent(struct disk *disk, struct node *from, const char *path, struct node **ret,
	const char **ret_name);
int disk_make(struct disk *disk, struct node *folder, const char *name, mode_t mode, uid_t uid,
	struct node **ret);
int disk_remove(struct node *folder, const char *name, bool is_folder);
int disk_link(struct node *folder, const char *name, struct node *node);
int disk_rename(struct node *from, const char *from_name, struct node *to, const char *to_name,
	bool may_replace);
/* Absolute path of a folder; caller frees. */
char *disk_path(const struct node *node);
/* The names in a folder in the order in which this disk lists them, ended by NULL. The caller frees
 * each, and the list. */
char **disk_listing(const struct node *folder);

long node_read(struct node *node, void *buf, size_t n, uint64_t offset);
int node_write(struct node *node, const void *bytes, size_t n, uint64_t offset);
int node_truncate(struct node *node, uint64_t size);
void node_stat(const struct node *node, struct stat *ret);
void node_touch(struct node *node);
void node_touch_status(struct node *node); /* as chmod does */
void node_release(struct node *node);      /* after links or opened were lowered */

/* From now on, writes to this file are lost at a failure of power until it is synced. */
void disk_keep_unsynced(struct node *node);
void node_sync(struct node *node);
/* The power fails: each file that waits for a sync keeps a part of what was written since, which
 * chance chooses. */
void disk_lose_power(struct disk *disk, struct chance *chance);

/* Copies a folder and all below it to the same path of another disk, which then has the same device
 * and the same numbers, as the copy of an image has. */
void disk_copy(struct disk *from, const char *path, struct disk *to);

/* Convenience for people: whole files by absolute path, folders made as needed. */
int disk_put(struct disk *disk, const char *path, const void *bytes, size_t n);
struct node *disk_get(struct disk *disk, const char *path);
