/* Keeps SQLite's files on the disks of simulated machines, by SQLite's VFS interface
 * (https://www.sqlite.org/vfs.html). A power cut undoes writes that were not synced, and locks end
 * with their process. */
#include "kernel.h"
#include "machines.h"
#include "story.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS_MAX 64

/* The index of a write-ahead log, in memory that the connections of a machine share. */
struct index {
	struct node *node; /* node of the database */
	void *regions[REGIONS_MAX];
	int region_bytes;
	struct index *next;
};

struct vfs_file {
	sqlite3_file base;
	struct node *node;
	struct machine_process *process;
	int level; /* SQLITE_LOCK_… */
	struct index *index;
	unsigned shared_slots, exclusive_slots;
	bool deletes_on_close;
	uint64_t unsynced_ns;  /* time of the first write not synced; 0: none */
	uint64_t suspended_ns; /* suspended_ns of the process at that time */
	char path[600];
	struct vfs_file *next; /* in the list of open files */
};

static struct {
	struct vfs_file *files;
	struct index *indexes;
	struct chance chance;
	unsigned temporary; /* number of files without a name so far */
} vfs;

static struct disk *disk_here(void)
{
	return task_process()->machine->disk;
}

static void unlink_file(struct vfs_file *file)
{
	for (struct vfs_file **at = &vfs.files; *at; at = &(*at)->next)
		if (*at == file) {
			*at = file->next;
			return;
		}
}

static void let_go(struct vfs_file *file)
{
	unlink_file(file);
	if (file->node->opened)
		file->node->opened--;
	node_release(file->node);
}

void vfs_forget_process(struct machine_process *process)
{
	for (struct vfs_file *next, *file = vfs.files; file; file = next) {
		next = file->next;
		if (file->process == process)
			let_go(file);
	}
}

static bool has_index(const struct node *node)
{
	for (const struct vfs_file *file = vfs.files; file; file = file->next)
		if (file->node == node && file->index)
			return true;
	return false;
}

static int vfs_close(sqlite3_file *base)
{
	struct vfs_file *file = (struct vfs_file *)base;
	let_go(file);
	if (file->deletes_on_close)
		__wrap_unlink(file->path);
	return SQLITE_OK;
}

static int vfs_read(sqlite3_file *base, void *buf, int n, sqlite3_int64 offset)
{
	struct vfs_file *file = (struct vfs_file *)base;
	const long got = node_read(file->node, buf, (size_t)n, (uint64_t)offset);
	if (got == n)
		return SQLITE_OK;
	memset((char *)buf + got, 0, (size_t)(n - got));
	return SQLITE_IOERR_SHORT_READ;
}

/* A mark is on the disk within a second (docs/guarantees.md), unless its process or machine was
 * stopped meanwhile. Marks are written to SQLite's log first. */
#define UNSYNCED_MOST_NS 3000000000U
#define SWEEP_NS         1000000000U

static void judge_unsynced(const struct vfs_file *file)
{
	if (file->unsynced_ns && strstr(file->path, "/marks.db-wal") &&
		!file->process->is_stopped && file->process->continued_ns < file->unsynced_ns &&
		file->process->suspended_ns == file->suspended_ns &&
		world_now_ns() - file->unsynced_ns > UNSYNCED_MOST_NS)
		story_break("%s: a failure of power would lose marks of %llu ms ago",
			file->process->name,
			(unsigned long long)(world_now_ns() - file->unsynced_ns) / 1000000);
}

void vfs_power_fails(const struct machine *machine)
{
	for (const struct vfs_file *file = vfs.files; file; file = file->next)
		if (file->process->machine == machine)
			judge_unsynced(file);
}

static int vfs_write(sqlite3_file *base, const void *bytes, int n, sqlite3_int64 offset)
{
	struct vfs_file *file = (struct vfs_file *)base;
	task_point();
	node_write(file->node, bytes, (size_t)n, (uint64_t)offset);
	judge_unsynced(file);
	/* The sweep of old sessions at the start of a process is not synced. The process may have
	 * been stopped just before it. */
	const struct machine_process *process = file->process;
	const uint64_t began_ns = process->began_ns > process->continued_ns ? process->began_ns
									    : process->continued_ns;
	if (!file->unsynced_ns && world_now_ns() - began_ns > SWEEP_NS) {
		file->unsynced_ns = world_now_ns();
		file->suspended_ns = process->suspended_ns;
	}
	return SQLITE_OK;
}

static int vfs_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	node_truncate(((struct vfs_file *)base)->node, (uint64_t)size);
	return SQLITE_OK;
}

static int vfs_sync(sqlite3_file *base, int flags)
{
	struct vfs_file *file = (struct vfs_file *)base;
	task_sleep_until(world_now_ns() + chance_below(&vfs.chance, 5000000));
	node_sync(file->node);
	for (struct vfs_file *other = vfs.files; other; other = other->next)
		if (other->node == file->node)
			other->unsynced_ns = 0;
	return SQLITE_OK;
}

static int vfs_size(sqlite3_file *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct vfs_file *)base)->node->size;
	return SQLITE_OK;
}

/* Returns the highest lock level of the other connections. */
static int others_level(const struct vfs_file *self)
{
	int level = SQLITE_LOCK_NONE;
	for (const struct vfs_file *file = vfs.files; file; file = file->next)
		if (file != self && file->node == self->node && file->level > level)
			level = file->level;
	return level;
}

static int vfs_lock(sqlite3_file *base, int level)
{
	struct vfs_file *file = (struct vfs_file *)base;
	task_point();
	const int others = others_level(file);
	if (level <= file->level)
		return SQLITE_OK;
	if (level == SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_PENDING)
		return SQLITE_BUSY;
	if (level == SQLITE_LOCK_RESERVED && others >= SQLITE_LOCK_RESERVED)
		return SQLITE_BUSY;
	if (level == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
		if (others < SQLITE_LOCK_PENDING)
			file->level = SQLITE_LOCK_PENDING;
		return SQLITE_BUSY;
	}
	file->level = level;
	return SQLITE_OK;
}

static int vfs_unlock(sqlite3_file *base, int level)
{
	struct vfs_file *file = (struct vfs_file *)base;
	if (level < file->level)
		file->level = level;
	return SQLITE_OK;
}

static int vfs_is_reserved(sqlite3_file *base, int *ret)
{
	const struct vfs_file *file = (struct vfs_file *)base;
	*ret = file->level >= SQLITE_LOCK_RESERVED || others_level(file) >= SQLITE_LOCK_RESERVED;
	return SQLITE_OK;
}

static int vfs_control(sqlite3_file *base, int operation, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int vfs_sector_bytes(sqlite3_file *base)
{
	return 4096;
}

static int vfs_characteristics(sqlite3_file *base)
{
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static struct index *index_of(struct vfs_file *file)
{
	struct index *index = vfs.indexes;
	while (index && index->node != file->node)
		index = index->next;
	if (!index) {
		index = calloc(1, sizeof *index);
		if (!index)
			abort();
		index->node = file->node;
		index->next = vfs.indexes;
		vfs.indexes = index;
	}
	/* The first connection finds the index of killed processes, and clears it. */
	for (int i = 0; i < REGIONS_MAX && !has_index(file->node); i++)
		if (index->regions[i])
			memset(index->regions[i], 0, (size_t)index->region_bytes);
	return index;
}

static int vfs_map(sqlite3_file *base, int region, int bytes, int extends, void volatile **ret)
{
	struct vfs_file *file = (struct vfs_file *)base;
	if (!file->index) {
		char path[640];
		file->index = index_of(file);
		snprintf(path, sizeof path, "%s-shm", file->path);
		if (!disk_get(file->node->disk, path)) {
			disk_put(file->node->disk, path, "", 0);
			disk_get(file->node->disk, path)->uid = 1000;
		}
	}
	struct index *index = file->index;
	if (region >= REGIONS_MAX)
		return SQLITE_IOERR_SHMMAP;
	if (!index->regions[region] && extends) {
		index->region_bytes = bytes;
		index->regions[region] = calloc(1, (size_t)bytes);
	}
	*ret = index->regions[region];
	return SQLITE_OK;
}

static int vfs_lock_slots(sqlite3_file *base, int first, int n, int flags)
{
	struct vfs_file *self = (struct vfs_file *)base;
	const unsigned slots = ((1U << n) - 1) << first;
	task_point();
	if (flags & SQLITE_SHM_UNLOCK) {
		self->shared_slots &= ~slots;
		self->exclusive_slots &= ~slots;
		return SQLITE_OK;
	}
	for (const struct vfs_file *file = vfs.files; file; file = file->next) {
		if (file == self || file->node != self->node)
			continue;
		if (file->exclusive_slots & slots ||
			(flags & SQLITE_SHM_EXCLUSIVE && file->shared_slots & slots))
			return SQLITE_BUSY;
	}
	if (flags & SQLITE_SHM_EXCLUSIVE)
		self->exclusive_slots |= slots;
	else
		self->shared_slots |= slots;
	return SQLITE_OK;
}

static void vfs_barrier(sqlite3_file *base)
{
}

static int vfs_unmap(sqlite3_file *base, int deletes)
{
	struct vfs_file *file = (struct vfs_file *)base;
	file->index = NULL;
	file->shared_slots = file->exclusive_slots = 0;
	if (deletes && !has_index(file->node)) {
		char path[640];
		snprintf(path, sizeof path, "%s-shm", file->path);
		__wrap_unlink(path);
	}
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {.iVersion = 2,
	.xClose = vfs_close,
	.xRead = vfs_read,
	.xWrite = vfs_write,
	.xTruncate = vfs_truncate,
	.xSync = vfs_sync,
	.xFileSize = vfs_size,
	.xLock = vfs_lock,
	.xUnlock = vfs_unlock,
	.xCheckReservedLock = vfs_is_reserved,
	.xFileControl = vfs_control,
	.xSectorSize = vfs_sector_bytes,
	.xDeviceCharacteristics = vfs_characteristics,
	.xShmMap = vfs_map,
	.xShmLock = vfs_lock_slots,
	.xShmBarrier = vfs_barrier,
	.xShmUnmap = vfs_unmap};

static int vfs_open(
	sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
	struct vfs_file *file = (struct vfs_file *)base;
	struct disk *disk = disk_here();
	*file = (struct vfs_file){.process = task_process()};
	if (name)
		snprintf(file->path, sizeof file->path, "%s", name);
	else
		snprintf(file->path, sizeof file->path, "/tmp/sqlite-%u", ++vfs.temporary);
	file->deletes_on_close = !name || flags & SQLITE_OPEN_DELETEONCLOSE;
	task_point();
	file->node = disk_get(disk, file->path);
	if (!file->node) {
		if (!(flags & SQLITE_OPEN_CREATE) || disk_put(disk, file->path, "", 0))
			return SQLITE_CANTOPEN;
		file->node = disk_get(disk, file->path);
		file->node->uid = 1000;
		file->node->mode = S_IFREG | 0600;
	}
	disk_keep_unsynced(file->node);
	file->node->opened++;
	file->next = vfs.files;
	vfs.files = file;
	base->pMethods = &methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *self, const char *name, int syncs)
{
	task_point();
	if (__wrap_unlink(name))
		return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
	return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *ret)
{
	const struct node *node = disk_get(disk_here(), name);
	/* As in SQLite's own VFS, an empty file does not exist. */
	*ret = node && (flags != SQLITE_ACCESS_EXISTS || node->size > 0);
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *self, const char *name, int size, char *ret)
{
	snprintf(ret, (size_t)size, "%s%s", *name == '/' ? "" : "/", name);
	return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *self, int n, char *ret)
{
	chance_fill(&vfs.chance, ret, (uint64_t)n);
	return n;
}

static int vfs_sleep(sqlite3_vfs *self, int us)
{
	__wrap_usleep((useconds_t)us);
	return us;
}

static int vfs_now(sqlite3_vfs *self, double *ret)
{
	*ret = 2440587.5 + (double)__wrap_time(NULL) / 86400;
	return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *self, int n, char *ret)
{
	return 0;
}

void vfs_set_up(void)
{
	static sqlite3_vfs simulated = {.iVersion = 1,
		.szOsFile = sizeof(struct vfs_file),
		.mxPathname = 512,
		.zName = "simulated",
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_path,
		.xRandomness = vfs_randomness,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_now,
		.xGetLastError = vfs_last_error};
	/* SQLite's mutexes do not know our tasks. Only one task at a time uses a connection. */
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_initialize();
	sqlite3_vfs_register(&simulated, 1);
}

void vfs_begin(uint64_t seed)
{
	vfs.files = NULL;
	for (struct index *next, *index = vfs.indexes; index; index = next) {
		next = index->next;
		for (int i = 0; i < REGIONS_MAX; i++)
			free(index->regions[i]);
		free(index);
	}
	vfs.indexes = NULL;
	vfs.temporary = 0;
	vfs.chance = chance_of(seed, "sqlite");
	sqlite3_randomness(0, NULL); /* seeds it again */
}
