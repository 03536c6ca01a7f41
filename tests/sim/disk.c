/* Implements disk.h: the part of a file system that the program uses. Permissions are not checked,
 * except that a file may have none at all. */
#include "disk.h"
#include "tasks.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disk {
	struct node *root;
	uint64_t device, last_number;
	struct chance chance;
	uint64_t listing_salt;
	int64_t (*wall_ns)(void *arg);
	void *arg;
	struct node **nodes; /* all nodes ever made, for disk_free() */
	size_t n_nodes, cap_nodes;
};

static void *must(void *memory)
{
	if (!memory) {
		perror("no memory");
		abort();
	}
	return memory;
}

static struct node *node_new(struct disk *disk, mode_t mode, uid_t uid)
{
	struct node *node = must(calloc(1, sizeof *node));
	/* Numbers rise, but not by one, and differ from those of other disks. */
	disk->last_number += 1 + chance_below(&disk->chance, 5);
	node->disk = disk;
	node->number = disk->last_number;
	node->mode = mode;
	node->uid = uid;
	node->born_ns = node->mtime_ns = node->ctime_ns = node->atime_ns = disk->wall_ns(disk->arg);
	if (disk->n_nodes == disk->cap_nodes) {
		disk->cap_nodes = 2 * disk->cap_nodes + 64;
		disk->nodes = must(realloc(disk->nodes, disk->cap_nodes * sizeof *disk->nodes));
	}
	disk->nodes[disk->n_nodes++] = node;
	return node;
}

struct disk *disk_new(uint64_t seed, const char *name, int64_t (*wall_ns)(void *arg), void *arg)
{
	struct disk *disk = must(calloc(1, sizeof *disk));
	disk->chance = chance_of(seed, name);
	disk->device = chance_between(&disk->chance, 16, 4000);
	disk->last_number = chance_between(&disk->chance, 2, 1000000);
	disk->listing_salt = chance_next(&disk->chance);
	disk->wall_ns = wall_ns;
	disk->arg = arg;
	disk->root = node_new(disk, S_IFDIR | 0755, 0);
	disk->root->links = 1;
	disk->root->parent = disk->root;
	return disk;
}

static void drop_unsynced(struct node *node)
{
	for (size_t i = 0; i < node->n_unsynced; i++)
		free(node->unsynced[i].bytes);
	free(node->unsynced);
	node->unsynced = NULL;
	node->n_unsynced = 0;
}

static void free_content(struct node *node)
{
	for (size_t i = 0; i < node->n_entries; i++)
		free(node->entries[i].name);
	free(node->entries);
	node->entries = NULL;
	node->n_entries = 0;
	free(node->data);
	node->data = NULL;
	free(node->synced);
	node->synced = NULL;
	drop_unsynced(node);
	node->size = node->cap = 0;
}

void disk_free(struct disk *disk)
{
	if (!disk)
		return;
	for (size_t i = 0; i < disk->n_nodes; i++) {
		free_content(disk->nodes[i]);
		free(disk->nodes[i]);
	}
	free(disk->nodes);
	free(disk);
}

struct node *disk_root(struct disk *disk)
{
	return disk->root;
}

uint64_t disk_device(const struct disk *disk)
{
	return disk->device;
}

void node_release(struct node *node)
{
	if (!node->links && !node->opened)
		free_content(node);
}

void node_touch(struct node *node)
{
	node->mtime_ns = node->ctime_ns = node->disk->wall_ns(node->disk->arg);
}

void node_touch_status(struct node *node)
{
	node->ctime_ns = node->disk->wall_ns(node->disk->arg);
}

static struct node_entry *entry_of(const struct node *folder, const char *name, size_t n)
{
	for (size_t i = 0; i < folder->n_entries; i++)
		if (strncmp(folder->entries[i].name, name, n) == 0 && !folder->entries[i].name[n])
			return &folder->entries[i];
	return NULL;
}

/* Takes one component of a path. */
static int step(struct node *at, const char *name, size_t n, struct node **ret)
{
	if (!S_ISDIR(at->mode))
		return -ENOTDIR;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	if (n == 1 && name[0] == '.') {
		*ret = at;
		return 0;
	}
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		*ret = at->parent;
		return 0;
	}
	const struct node_entry *entry = entry_of(at, name, n);
	if (!entry)
		return -ENOENT;
	*ret = entry->node;
	return 0;
}

static int find(struct disk *disk, struct node *from, const char *path, int flags, unsigned depth,
	struct node **ret)
{
	struct node *at = *path == '/' ? disk->root : from;
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	while (*path) {
		const size_t slashes = strspn(path, "/");
		path += slashes;
		const size_t n = strcspn(path, "/");
		if (!n) { /* a slash at the end */
			if (!S_ISDIR(at->mode))
				return -ENOTDIR;
			break;
		}
		struct node *folder = at;
		const int error = step(at, path, n, &at);
		if (error)
			return error;
		path += n;
		if (!S_ISLNK(at->mode))
			continue;
		if (flags & LOOKUP_NO_LINKS || depth == 8)
			return -ELOOP;
		if (!*path && !(flags & LOOKUP_FOLLOW))
			break;
		const int followed = find(disk, folder, (const char *)at->data,
			flags | LOOKUP_FOLLOW, depth + 1, &at);
		if (followed)
			return followed;
	}
	*ret = at;
	return 0;
}

int disk_find(struct disk *disk, struct node *from, const char *path, int flags, struct node **ret)
{
	return find(disk, from, path, flags, 0, ret);
}

int disk_find_parent(struct disk *disk, struct node *from, const char *path, struct node **ret,
	const char **ret_name)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	*ret_name = slash ? slash + 1 : path;
	if (!**ret_name)
		return *path ? -EEXIST : -ENOENT;
	if (!slash) {
		*ret = from;
		return 0;
	}
	const size_t n = slash == path ? 1 : (size_t)(slash - path);
	if (n >= sizeof folder)
		return -ENAMETOOLONG;
	memcpy(folder, path, n);
	folder[n] = 0;
	const int error = disk_find(disk, from, folder, LOOKUP_FOLLOW, ret);
	return error ? error : S_ISDIR((*ret)->mode) ? 0 : -ENOTDIR;
}

static void add_entry(struct node *folder, const char *name, struct node *node)
{
	if (folder->n_entries == folder->cap_entries) {
		folder->cap_entries = 2 * folder->cap_entries + 8;
		folder->entries = must(
			realloc(folder->entries, folder->cap_entries * sizeof *folder->entries));
	}
	folder->entries[folder->n_entries++] = (struct node_entry){must(strdup(name)), node};
	node->links++;
	if (S_ISDIR(node->mode))
		node->parent = folder;
	node_touch(folder);
}

static void take_entry(struct node *folder, struct node_entry *entry)
{
	struct node *node = entry->node;
	free(entry->name);
	const size_t at = (size_t)(entry - folder->entries);
	memmove(entry, entry + 1, (folder->n_entries - at - 1) * sizeof *entry);
	folder->n_entries--;
	node->links--;
	node->ctime_ns = node->disk->wall_ns(node->disk->arg);
	node_touch(folder);
	node_release(node);
}

int disk_make(struct disk *disk, struct node *folder, const char *name, mode_t mode, uid_t uid,
	struct node **ret)
{
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (entry_of(folder, name, strlen(name)))
		return -EEXIST;
	struct node *node = node_new(disk, mode, uid);
	add_entry(folder, name, node);
	*ret = node;
	return 0;
}

int disk_remove(struct node *folder, const char *name, bool is_folder)
{
	struct node_entry *entry = entry_of(folder, name, strlen(name));
	if (!entry)
		return -ENOENT;
	if (S_ISDIR(entry->node->mode) != is_folder)
		return is_folder ? -ENOTDIR : -EISDIR;
	if (is_folder && entry->node->n_entries)
		return -ENOTEMPTY;
	take_entry(folder, entry);
	return 0;
}

int disk_link(struct node *folder, const char *name, struct node *node)
{
	if (entry_of(folder, name, strlen(name)))
		return -EEXIST;
	add_entry(folder, name, node);
	node->ctime_ns = node->disk->wall_ns(node->disk->arg);
	return 0;
}

int disk_rename(struct node *from, const char *from_name, struct node *to, const char *to_name,
	bool may_replace)
{
	struct node_entry *source = entry_of(from, from_name, strlen(from_name));
	struct node_entry *target = entry_of(to, to_name, strlen(to_name));
	if (!source)
		return -ENOENT;
	if (target && !may_replace)
		return -EEXIST;
	struct node *node = source->node;
	if (target && target->node == node)
		return 0;
	if (target) {
		if (S_ISDIR(target->node->mode))
			return S_ISDIR(node->mode) ? -ENOTEMPTY : -EISDIR;
		take_entry(to, target);
	}
	node->opened++;
	take_entry(from, entry_of(from, from_name, strlen(from_name)));
	add_entry(to, to_name, node);
	node->ctime_ns = node->disk->wall_ns(node->disk->arg);
	node->opened--;
	return 0;
}

char *disk_path(const struct node *node)
{
	if (node->parent == node)
		return must(strdup("/"));
	char *above = disk_path(node->parent), *ret = NULL;
	for (size_t i = 0; i < node->parent->n_entries; i++)
		if (node->parent->entries[i].node == node &&
			asprintf(&ret, "%s/%s", strcmp(above, "/") == 0 ? "" : above,
				node->parent->entries[i].name) < 0)
			must(NULL);
	free(above);
	return ret ? ret : must(strdup("(removed)"));
}

struct ranked {
	uint64_t rank;
	const char *name;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : strcmp(x->name, y->name);
}

char **disk_listing(const struct node *folder)
{
	const size_t n = folder->n_entries;
	struct ranked *ranked = must(calloc(n + 1, sizeof *ranked));
	char **ret = must(calloc(n + 1, sizeof *ret));
	for (size_t i = 0; i < n; i++) {
		struct chance chance = {folder->disk->listing_salt ^ folder->number ^
					(folder->entries[i].node->number << 20)};
		ranked[i] = (struct ranked){chance_next(&chance), folder->entries[i].name};
	}
	qsort(ranked, n, sizeof *ranked, compare_ranked);
	for (size_t i = 0; i < n; i++)
		ret[i] = must(strdup(ranked[i].name));
	free(ranked);
	return ret;
}

long node_read(struct node *node, void *buf, size_t n, uint64_t offset)
{
	if (S_ISDIR(node->mode))
		return -EISDIR;
	if (offset >= node->size)
		return 0;
	if (n > node->size - offset)
		n = (size_t)(node->size - offset);
	memcpy(buf, node->data + offset, n);
	return (long)n;
}

static void reserve(struct node *node, uint64_t size)
{
	if (size <= node->cap)
		return;
	node->cap = size > 2 * node->cap ? size : 2 * node->cap;
	node->data = must(realloc(node->data, node->cap));
}

static void note_unsynced(struct node *node, const struct unsynced *unsynced)
{
	if (!node->waits_for_sync)
		return;
	if (!node->n_unsynced)
		node->unsynced_ns = world_now_ns();
	node->unsynced =
		must(realloc(node->unsynced, (node->n_unsynced + 1) * sizeof *node->unsynced));
	struct unsynced *to = &node->unsynced[node->n_unsynced++];
	*to = *unsynced;
	to->bytes = NULL;
	if (unsynced->n) {
		to->bytes = must(malloc(unsynced->n));
		memcpy(to->bytes, unsynced->bytes, unsynced->n);
	}
}

static void apply(struct node *node, const struct unsynced *write)
{
	const uint64_t end = write->offset + write->n;
	if (end > node->size) {
		reserve(node, end);
		memset(node->data + node->size, 0, (size_t)(end - node->size));
		node->size = end;
	}
	if (write->n)
		memcpy(node->data + write->offset, write->bytes, write->n);
	if (write->is_truncation)
		node->size = write->offset;
}

int node_write(struct node *node, const void *bytes, size_t n, uint64_t offset)
{
	struct unsynced write = {
		.offset = offset, .n = n, .bytes = (unsigned char *)(uintptr_t)bytes};
	apply(node, &write);
	note_unsynced(node, &write);
	node_touch(node);
	return 0;
}

int node_truncate(struct node *node, uint64_t size)
{
	struct unsynced write = {.offset = size, .is_truncation = true};
	apply(node, &write);
	note_unsynced(node, &write);
	node_touch(node);
	return 0;
}

void node_stat(const struct node *node, struct stat *ret)
{
	const int64_t s = 1000000000;
	*ret = (struct stat){.st_dev = node->disk->device,
		.st_ino = node->number,
		.st_mode = node->mode,
		.st_nlink = node->links + (S_ISDIR(node->mode) ? 1 : 0),
		.st_uid = node->uid,
		.st_gid = node->uid,
		.st_size = (off_t)node->size,
		.st_blksize = 4096,
		.st_blocks = (blkcnt_t)((node->size + 511) / 512)};
	ret->st_mtim = (struct timespec){node->mtime_ns / s, node->mtime_ns % s};
	ret->st_ctim = (struct timespec){node->ctime_ns / s, node->ctime_ns % s};
	ret->st_atim = (struct timespec){node->atime_ns / s, node->atime_ns % s};
}

void disk_keep_unsynced(struct node *node)
{
	if (node->waits_for_sync)
		return;
	node->waits_for_sync = true;
	node_sync(node);
}

void node_sync(struct node *node)
{
	if (!node->waits_for_sync)
		return;
	drop_unsynced(node);
	free(node->synced);
	node->synced = must(malloc(node->size + 1));
	if (node->size)
		memcpy(node->synced, node->data, (size_t)node->size);
	node->synced_size = node->size;
}

static void lose_writes(struct node *node, struct chance *chance)
{
	struct unsynced *writes = node->unsynced;
	const size_t n = node->n_unsynced;
	/* Writes before `whole` reach the disk. Of each later one a sector may, or none. */
	const size_t whole = chance_below(chance, n + 1);
	const bool scatters = chance_hits(chance, 300);
	node->unsynced = NULL;
	node->n_unsynced = 0;
	reserve(node, node->synced_size);
	if (node->synced_size)
		memcpy(node->data, node->synced, (size_t)node->synced_size);
	node->size = node->synced_size;
	for (size_t i = 0; i < n; i++) {
		struct unsynced *write = &writes[i];
		if (i < whole || (scatters && chance_hits(chance, 500))) {
			if (i >= whole && write->n > 512) /* torn */
				write->n = 512 * chance_below(chance, write->n / 512);
			apply(node, write);
		}
		free(write->bytes);
	}
	free(writes);
	node_sync(node);
}

void disk_lose_power(struct disk *disk, struct chance *chance)
{
	for (size_t i = 0; i < disk->n_nodes; i++) {
		struct node *node = disk->nodes[i];
		node->opened = node->writers = 0;
		node->flocked_by = 0;
		if (node->links && node->n_unsynced)
			lose_writes(node, chance);
		node_release(node);
	}
}

static void copy_node(const struct node *from, struct node *to)
{
	for (size_t i = 0; i < from->n_entries; i++) {
		const struct node *inner = from->entries[i].node;
		const char *name = from->entries[i].name;
		struct node *copy;
		if (step(to, name, strlen(name), &copy) &&
			disk_make(to->disk, to, name, inner->mode, inner->uid, &copy))
			abort();
		copy_node(inner, copy);
	}
	if (S_ISREG(from->mode)) {
		node_truncate(to, 0);
		node_write(to, from->data, from->size, 0);
	}
	to->number = from->number;
	to->mode = from->mode;
	to->uid = from->uid;
	to->log = from->log;
	to->born_ns = from->born_ns;
	to->mtime_ns = from->mtime_ns;
	to->ctime_ns = from->ctime_ns;
}

void disk_copy(struct disk *from, const char *path, struct disk *to)
{
	char keep[64];
	snprintf(keep, sizeof keep, "%s/.keep", path);
	disk_put(to, keep, "", 0);
	disk_remove(disk_get(to, path), ".keep", false);
	copy_node(disk_get(from, path), disk_get(to, path));
	to->device = from->device;
	if (to->last_number < from->last_number)
		to->last_number = from->last_number;
}

int disk_put(struct disk *disk, const char *path, const void *bytes, size_t n)
{
	struct node *at = disk->root, *node;
	char *copy = must(strdup(path)), *rest = copy + 1, *slash;
	int error = 0;
	while ((slash = strchr(rest, '/')) && !error) {
		*slash = 0;
		struct node *next;
		if (step(at, rest, strlen(rest), &next))
			error = disk_make(disk, at, rest, S_IFDIR | 0755, 0, &next);
		at = next;
		rest = slash + 1;
	}
	if (!error && step(at, rest, strlen(rest), &node))
		error = disk_make(disk, at, rest, S_IFREG | 0644, 0, &node);
	free(copy);
	if (error)
		return error;
	node_truncate(node, 0);
	return node_write(node, bytes, n, 0);
}

struct node *disk_get(struct disk *disk, const char *path)
{
	struct node *node;
	return disk_find(disk, disk->root, path, LOOKUP_FOLLOW, &node) ? NULL : node;
}
