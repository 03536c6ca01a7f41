/* Names and folders. See kernel.h. */
#include "kernel.h"
#include "kernel_fd.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct disk *disk_here(void)
{
	return task_process()->machine->disk;
}

static int find_at(int fd, const char *path, int flags, struct node **ret)
{
	char own[PATH_MAX];
	struct node *base;
	kernel_point();
	const int error = kernel_base(fd, &base);
	return error ? error : disk_find(disk_here(), base, kernel_own_path(path, own), flags, ret);
}

static int find_parent_at(int fd, const char *path, struct node **ret, const char **ret_name)
{
	struct node *base;
	kernel_point();
	const int error = kernel_base(fd, &base);
	return error ? error : disk_find_parent(disk_here(), base, path, ret, ret_name);
}

static int done(int error)
{
	return error ? kernel_fail(error) : 0;
}

int __wrap_access(const char *path, int mode)
{
	struct node *node;
	int error = find_at(AT_FDCWD, path, LOOKUP_FOLLOW, &node);
	if (!error && mode & R_OK && !(node->mode & 0444))
		error = -EACCES;
	return done(error);
}

static int set_mode(struct node *node, mode_t mode)
{
	node->mode = (node->mode & S_IFMT) | (mode & 07777);
	node->ctime_ns = machine_wall_ns(task_process()->machine);
	return 0;
}

int __wrap_fchmodat(int fd, const char *path, mode_t mode, int flags)
{
	struct node *node;
	const int error = find_at(fd, path, LOOKUP_FOLLOW, &node);
	return error ? kernel_fail(error) : set_mode(node, mode);
}

int __wrap_chmod(const char *path, mode_t mode)
{
	return __wrap_fchmodat(AT_FDCWD, path, mode, 0);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	const struct open_file *file = kernel_file(fd);
	return file && file->node ? set_mode(file->node, mode) : kernel_fail(EBADF);
}

static int make_at(int fd, const char *path, mode_t mode)
{
	struct node *folder, *node;
	const char *name;
	int error = find_parent_at(fd, path, &folder, &name);
	if (!error)
		error = disk_make(disk_here(), folder, name, mode, 1000, &node);
	return done(error);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return make_at(AT_FDCWD, path, S_IFDIR | (mode & 0755));
}

int __wrap_mkdirat(int fd, const char *path, mode_t mode)
{
	return make_at(fd, path, S_IFDIR | (mode & 0755));
}

int __wrap_mknodat(int fd, const char *path, mode_t mode, dev_t device)
{
	return make_at(fd, path, mode);
}

int __wrap_mkostemp64(char *path, int flags)
{
	char *at = path + strlen(path) - 6;
	for (int i = 0; i < 6; i++)
		at[i] = (char)('a' + chance_below(&task_process()->machine->chance, 26));
	return __wrap_open64(path, flags | O_CREAT | O_EXCL | O_RDWR, (mode_t)0600);
}

int __wrap_unlinkat(int fd, const char *path, int flags)
{
	struct node *folder, *node;
	const char *name;
	int error = find_parent_at(fd, path, &folder, &name);
	if (!error)
		error = disk_find(disk_here(), folder, name, 0, &node);
	if (error)
		return kernel_fail(error);
	if (kernel_hooks.removes && S_ISREG(node->mode) && node->links == 1) {
		char *above = disk_path(folder), whole[PATH_MAX];
		snprintf(whole, sizeof whole, "%s/%s", above, name);
		free(above);
		kernel_hooks.removes(task_process(), node, whole);
	}
	return done(disk_remove(folder, name, flags & AT_REMOVEDIR));
}

/* src links only files without a name, given by their descriptor. */
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	int fd;
	struct node *folder;
	const char *name;
	const int error = find_parent_at(to_fd, to, &folder, &name);
	const struct open_file *file =
		sscanf(from, "/proc/self/fd/%d", &fd) == 1 ? kernel_file(fd) : NULL;
	if (error || !file || !file->node)
		return kernel_fail(error ? error : ENOENT);
	return done(disk_link(folder, name, file->node));
}

int __wrap_unlink(const char *path)
{
	return __wrap_unlinkat(AT_FDCWD, path, 0);
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	struct node *from_folder, *to_folder;
	const char *from_name, *to_name;
	int error = find_parent_at(from_fd, from, &from_folder, &from_name);
	if (!error)
		error = find_parent_at(to_fd, to, &to_folder, &to_name);
	if (!error)
		error = disk_rename(
			from_folder, from_name, to_folder, to_name, !(flags & RENAME_NOREPLACE));
	return done(error);
}

int __wrap_rename(const char *from, const char *to)
{
	return __wrap_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

static ssize_t tell_link(const char *text, char *ret, size_t size)
{
	const size_t n = strlen(text) < size ? strlen(text) : size;
	memcpy(ret, text, n);
	return (ssize_t)n;
}

ssize_t __wrap_readlink(const char *path, char *ret, size_t size)
{
	char text[32];
	struct node *node;
	if (strcmp(path, "/proc/self") == 0) {
		snprintf(text, sizeof text, "%d", task_process()->pid);
		return tell_link(text, ret, size);
	}
	if (strcmp(path, "/proc/self/ns/pid") == 0)
		return tell_link("pid:[4026531836]", ret, size);
	if (strcmp(path, "/proc/self/ns/time") == 0)
		return tell_link("time:[4026531834]", ret, size);
	const int error = find_at(AT_FDCWD, path, 0, &node);
	if (error || !S_ISLNK(node->mode))
		return kernel_fail(error ? error : EINVAL);
	return tell_link((const char *)node->data, ret, size);
}

char *__wrap_realpath(const char *path, char *ret)
{
	struct node *node, *folder;
	const char *name;
	int error = find_at(AT_FDCWD, path, LOOKUP_FOLLOW, &node);
	if (error) {
		kernel_fail(error);
		return NULL;
	}
	char *real;
	if (S_ISDIR(node->mode)) {
		real = disk_path(node);
	} else { /* src makes no hard links to named files */
		error = find_parent_at(AT_FDCWD, path, &folder, &name);
		char *above = error ? NULL : disk_path(folder);
		if (error || asprintf(&real, "%s/%s", above, name) < 0)
			abort();
		free(above);
	}
	if (!ret)
		return real;
	strcpy(ret, real);
	free(real);
	return ret;
}

/* The struct behind a DIR of src. */
struct listing {
	int fd;
	struct node *node;
	char **names;
	size_t next;
	struct dirent entry;
};

DIR *__wrap_fdopendir(int fd)
{
	const struct open_file *file = kernel_file(fd);
	struct listing *listing = calloc(1, sizeof *listing);
	if (!file || !file->node || !S_ISDIR(file->node->mode) || !listing) {
		free(listing);
		kernel_fail(file ? ENOTDIR : EBADF);
		return NULL;
	}
	listing->fd = fd;
	listing->node = file->node;
	listing->names = disk_listing(file->node);
	return (DIR *)listing;
}

DIR *__wrap_opendir(const char *path)
{
	const int fd = kernel_openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, 0);
	return fd < 0 ? NULL : __wrap_fdopendir(fd);
}

/* A simulated host has no fstab, so no file system is missing from its mount point. */
FILE *__wrap_setmntent(const char *table, const char *mode)
{
	kernel_fail(ENOENT);
	return NULL;
}

struct mntent *__wrap_getmntent_r(FILE *file, struct mntent *ret, char *buffer, int n)
{
	abort();
}

int __wrap_endmntent(FILE *file)
{
	abort();
}

static unsigned char type_of(const struct node *node)
{
	return S_ISDIR(node->mode) ? DT_DIR : S_ISLNK(node->mode) ? DT_LNK : DT_REG;
}

/* As on a real disk, a name that is removed or made during the listing may be listed or not. */
struct dirent *__wrap_readdir64(DIR *dir)
{
	struct listing *listing = (struct listing *)dir;
	struct node *node;
	kernel_point();
	const char *name;
	do {
		name = listing->names[listing->next];
		if (!name)
			return NULL;
		listing->next++;
	} while (disk_find(disk_here(), listing->node, name, 0, &node));
	listing->entry = (struct dirent){.d_ino = node->number, .d_type = type_of(node)};
	snprintf(listing->entry.d_name, sizeof listing->entry.d_name, "%s", name);
	return &listing->entry;
}

int __wrap_closedir(DIR *dir)
{
	struct listing *listing = (struct listing *)dir;
	const int fd = listing->fd;
	for (size_t i = 0; listing->names[i]; i++)
		free(listing->names[i]);
	free(listing->names);
	free(listing);
	return __wrap_close(fd);
}

int __wrap_dirfd(DIR *dir)
{
	return ((struct listing *)dir)->fd;
}

int __wrap_scandir64(const char *path, struct dirent ***ret,
	int (*wanted)(const struct dirent *entry),
	int (*compare)(const struct dirent **a, const struct dirent **b))
{
	return kernel_fail(ENOENT); /* src lists network cards with it; there are none */
}

static ssize_t stream_read(void *cookie, char *buf, size_t n)
{
	return __wrap_read((int)(intptr_t)cookie, buf, n);
}

static ssize_t stream_write(void *cookie, const char *buf, size_t n)
{
	return __wrap_write((int)(intptr_t)cookie, buf, n);
}

static int stream_seek(void *cookie, off64_t *offset, int from)
{
	const off_t at = __wrap_lseek64((int)(intptr_t)cookie, *offset, from);
	*offset = at;
	return at < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
	return __wrap_close((int)(intptr_t)cookie);
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	const cookie_io_functions_t functions = {
		stream_read, stream_write, stream_seek, stream_close};
	return fopencookie((void *)(intptr_t)fd, mode, functions);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	const int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
	const int fd = kernel_openat2(AT_FDCWD, path, flags, 0644, 0);
	return fd < 0 ? NULL : __wrap_fdopen(fd, *mode == 'r' ? "r" : "w");
}
