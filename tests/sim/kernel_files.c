/* Descriptors and their files. See kernel.h. */
#include "kernel.h"
#include "kernel_fd.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#define FD_FIRST 1000 /* no number of a real descriptor */

int kernel_fail(int error)
{
	errno = error < 0 ? -error : error;
	return -1;
}

struct open_file *kernel_file(int fd)
{
	struct machine_process *process = task_process();
	const int i = fd - FD_FIRST;
	struct open_file *file = process && i >= 0 && i < FDS_MAX ? process->files[i] : NULL;
	if (!file)
		errno = EBADF;
	return file;
}

int kernel_base(int fd, struct node **ret)
{
	if (fd == AT_FDCWD) {
		*ret = disk_root(task_process()->machine->disk);
		return 0;
	}
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return -EBADF;
	*ret = file->node;
	return 0;
}

const char *kernel_own_path(const char *path, char *ret)
{
	static const char self[] = "/proc/self/";
	if (strncmp(path, self, strlen(self)) != 0)
		return path;
	snprintf(ret, PATH_MAX, "/proc/%d/%s", task_process()->pid, path + strlen(self));
	return ret;
}

static int number_for(struct open_file *file)
{
	struct machine_process *process = task_process();
	for (int i = 0; i < FDS_MAX; i++)
		if (!process->files[i]) {
			process->files[i] = file;
			file->links++;
			return FD_FIRST + i;
		}
	return kernel_fail(EMFILE);
}

static bool may_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

int kernel_open_node(struct node *node, int flags)
{
	struct open_file *file = calloc(1, sizeof *file);
	if (!file)
		return kernel_fail(ENOMEM);
	*file = (struct open_file){.node = node, .flags = flags};
	const int fd = number_for(file);
	if (fd < 0) {
		free(file);
		return fd;
	}
	if (node) {
		node->opened++;
		node->writers += may_write(flags);
	}
	return fd;
}

/* A file without these bits is unreadable: src runs as an ordinary user here. */
static bool is_denied(const struct node *node, int flags)
{
	if (flags & O_PATH)
		return false;
	return (!may_write(flags) && !(node->mode & 0444)) ||
	       (may_write(flags) && !(node->mode & 0222));
}

static int make_for_open(struct disk *disk, struct node *base, const char *path, int flags,
	mode_t mode, struct node **ret)
{
	struct node *folder;
	const char *name;
	int error = disk_find_parent(disk, base, path, &folder, &name);
	if (!error)
		error = disk_make(disk, folder, name, S_IFREG | (mode & 07777), 1000, ret);
	return error;
}

static int open_unnamed(struct disk *disk, struct node *folder, int flags)
{
	struct node *node;
	const char name[] = "#unnamed";
	int error = disk_make(disk, folder, name, S_IFREG | 0600, 1000, &node);
	if (error)
		return kernel_fail(error);
	disk_keep_unsynced(node);
	const int fd = kernel_open_node(node, flags & ~O_TMPFILE);
	disk_remove(folder, name, false);
	return fd;
}

int kernel_openat2(int fd, const char *path, int flags, mode_t mode, int lookup)
{
	char own[PATH_MAX];
	struct machine_process *process = task_process();
	struct disk *disk = process->machine->disk;
	struct node *base, *node;
	kernel_point();
	int error = kernel_base(fd, &base);
	if (error)
		return kernel_fail(error);
	if (!(flags & O_NOFOLLOW))
		lookup |= LOOKUP_FOLLOW;
	path = kernel_own_path(path, own);
	error = disk_find(disk, base, path, lookup, &node);
	if (error == -ENOENT && flags & O_CREAT)
		error = make_for_open(disk, base, path, flags, mode, &node);
	else if (!error && flags & O_CREAT && flags & O_EXCL)
		error = -EEXIST;
	if (error)
		return kernel_fail(error);
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return open_unnamed(disk, node, flags);
	if (S_ISLNK(node->mode) && !(flags & O_PATH))
		return kernel_fail(ELOOP);
	if (flags & O_DIRECTORY && !S_ISDIR(node->mode))
		return kernel_fail(ENOTDIR);
	if (is_denied(node, flags))
		return kernel_fail(EACCES);
	const int opened = kernel_open_node(node, flags);
	if (opened >= 0 && flags & O_TRUNC && S_ISREG(node->mode))
		node_truncate(node, 0);
	return opened;
}

int __wrap_openat64(int fd, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	const mode_t mode =
		flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return kernel_openat2(fd, path, flags, mode, 0);
}

int __wrap___openat64_2(int fd, const char *path, int flags)
{
	return kernel_openat2(fd, path, flags, 0, 0);
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	const mode_t mode =
		flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return kernel_openat2(AT_FDCWD, path, flags, mode, 0);
}

int __wrap___open64_2(const char *path, int flags)
{
	return kernel_openat2(AT_FDCWD, path, flags, 0, 0);
}

static void let_go(struct machine_process *process, struct open_file *file)
{
	if (--file->links)
		return;
	struct node *node = file->node;
	if (node && node->opened) {
		node->opened--;
		node->writers -= may_write(file->flags) && node->writers;
		if (node->flocked_by == (uint64_t)process->pid)
			node->flocked_by = 0;
		node_release(node);
	}
	free(file);
}

int __wrap_close(int fd)
{
	struct machine_process *process = task_process();
	struct open_file *file = kernel_file(fd);
	if (!file)
		return -1;
	process->files[fd - FD_FIRST] = NULL;
	let_go(process, file);
	return 0;
}

void kernel_close_all(struct machine_process *process)
{
	for (size_t i = 0; i < FDS_MAX; i++)
		if (process->files[i]) {
			let_go(process, process->files[i]);
			process->files[i] = NULL;
		}
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset)
{
	kernel_point();
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	if (S_ISREG(file->node->mode) &&
		chance_hits(&task_process()->machine->chance, kernel_hooks.read_fails_per_mille)) {
		task_process()->reads_failed++;
		return kernel_fail(EIO);
	}
	const long got = node_read(file->node, buf, n, (uint64_t)offset);
	return got < 0 ? kernel_fail((int)got) : got;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	struct open_file *file = kernel_file(fd);
	if (!file)
		return -1;
	const ssize_t got = __wrap_pread64(fd, buf, n, (off_t)file->offset);
	if (got > 0)
		file->offset += (uint64_t)got;
	return got;
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset)
{
	kernel_point();
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node || !may_write(file->flags))
		return kernel_fail(EBADF);
	const int error = node_write(file->node, buf, n, (uint64_t)offset);
	return error ? kernel_fail(error) : (ssize_t)n;
}

ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
	if (fd == STDERR_FILENO || fd == STDOUT_FILENO)
		return (ssize_t)n; /* standard error is dropped: the story has events instead */
	struct open_file *file = kernel_file(fd);
	if (!file)
		return -1;
	if (file->flags & O_APPEND)
		file->offset = file->node->size;
	const ssize_t done = __wrap_pwrite64(fd, buf, n, (off_t)file->offset);
	if (done > 0)
		file->offset += (uint64_t)done;
	return done;
}

off_t __wrap_lseek64(int fd, off_t offset, int from)
{
	struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	const off_t base = from == SEEK_SET   ? 0
			   : from == SEEK_CUR ? (off_t)file->offset
					      : (off_t)file->node->size;
	if (base + offset < 0)
		return kernel_fail(EINVAL);
	file->offset = (uint64_t)(base + offset);
	return base + offset;
}

int __wrap_fsync(int fd)
{
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	task_sleep_until(world_now_ns() + chance_below(&task_process()->machine->chance, 5000000));
	node_sync(file->node);
	return 0;
}

int __wrap_ftruncate64(int fd, off_t size)
{
	const struct open_file *file = kernel_file(fd);
	if (!file || !may_write(file->flags))
		return kernel_fail(EBADF);
	return node_truncate(file->node, (uint64_t)size);
}

int __wrap_fstat64(int fd, struct stat *ret)
{
	kernel_point();
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	node_stat(file->node, ret);
	return 0;
}

int __wrap_fstatat64(int fd, const char *path, struct stat *ret, int flags)
{
	char own[PATH_MAX];
	struct node *base, *node;
	if (!*path && flags & AT_EMPTY_PATH)
		return __wrap_fstat64(fd, ret);
	kernel_point();
	int error = kernel_base(fd, &base);
	if (!error)
		error = disk_find(task_process()->machine->disk, base, kernel_own_path(path, own),
			flags & AT_SYMLINK_NOFOLLOW ? 0 : LOOKUP_FOLLOW, &node);
	if (error)
		return kernel_fail(error);
	node_stat(node, ret);
	return 0;
}

int __wrap_sync_file_range(int fd, off_t offset, off_t n, unsigned flags)
{
	return kernel_file(fd) ? 0 : -1;
}

int __wrap_posix_fadvise64(int fd, off_t offset, off_t n, int advice)
{
	return kernel_file(fd) ? 0 : EBADF;
}

/* src uses it only for the creation time of an open file, and to make a file server refresh
 * attributes, which does nothing here. */
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
	kernel_point();
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	if (*path || !(flags & AT_EMPTY_PATH) ||
		(mask != STATX_BTIME && !(flags & AT_STATX_FORCE_SYNC)))
		return kernel_fail(EINVAL);
	*ret = (struct statx){.stx_mask = mask,
		.stx_btime = {.tv_sec = file->node->born_ns / 1000000000,
			.tv_nsec = (uint32_t)(file->node->born_ns % 1000000000)}};
	return 0;
}

int __wrap_stat64(const char *path, struct stat *ret)
{
	return __wrap_fstatat64(AT_FDCWD, path, ret, 0);
}

int __wrap_lstat64(const char *path, struct stat *ret)
{
	return __wrap_fstatat64(AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW);
}

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
	const struct open_file *file = kernel_file(fd);
	if (!file)
		return -1;
	*ret = (struct statfs){.f_type = 0xef53,
		.f_fsid = {{file->node ? (int)disk_device(file->node->disk) : 0}},
		.f_bsize = 4096,
		.f_bfree = 1 << 20,
		.f_bavail = 1 << 20,
		.f_blocks = 1 << 21};
	return 0;
}

/* A read lease is refused while a program has the file open for writing. */
static int set_lease(struct open_file *file, int kind)
{
	if (kind == F_RDLCK && file->node->writers)
		return kernel_fail(EAGAIN);
	file->has_lease = kind == F_RDLCK;
	return 0;
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	const int arg = va_arg(ap, int);
	va_end(ap);
	struct open_file *file = kernel_file(fd);
	if (!file)
		return -1;
	switch (command) {
	case F_DUPFD_CLOEXEC:
	case F_DUPFD:
		return number_for(file);
	case F_GETFL:
		return file->flags;
	case F_SETFD:
	case F_SETFL:
	case F_SETSIG:
		return 0;
	case F_SETLEASE:
		return set_lease(file, arg);
	case F_GETLEASE: /* an opening for writing has to wait, and breaks the lease */
		return file->has_lease && !file->node->writers ? F_RDLCK : F_UNLCK;
	default:
		abort();
	}
}

int __wrap_flock(int fd, int how)
{
	struct open_file *file = kernel_file(fd);
	struct machine_process *process = task_process();
	const uint64_t self = (uint64_t)process->pid;
	if (!file || !file->node)
		return kernel_fail(EBADF);
	kernel_point();
	if ((how & ~LOCK_NB) == LOCK_UN) {
		if (file->node->flocked_by == self)
			file->node->flocked_by = 0;
		return 0;
	}
	/* Shared locks are exclusive here, like LOCK_EX. */
	if (file->node->flocked_by && file->node->flocked_by != self)
		return kernel_fail(EWOULDBLOCK);
	file->node->flocked_by = self;
	return 0;
}

int __wrap_futimens(int fd, const struct timespec times[2])
{
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	node_touch(file->node);
	if (times && times[1].tv_nsec != UTIME_NOW)
		file->node->mtime_ns = times[1].tv_sec * 1000000000 + times[1].tv_nsec;
	return 0;
}

int __wrap_pipe2(int ret[2], int flags)
{
	ret[0] = kernel_open_node(NULL, O_RDONLY);
	ret[1] = ret[0] < 0 ? -1 : kernel_open_node(NULL, O_WRONLY);
	if (ret[0] >= 0 && ret[1] < 0)
		__wrap_close(ret[0]);
	return ret[1] < 0 ? -1 : 0;
}

/* The handle has the file's number and creation time. Numbers are never reused here. */
int __wrap_name_to_handle_at(
	int fd, const char *path, struct file_handle *ret, int *ret_mount, int flags)
{
	const struct open_file *file = kernel_file(fd);
	if (!file || !file->node)
		return kernel_fail(EBADF);
	if (ret->handle_bytes < 8) {
		ret->handle_bytes = 8;
		return kernel_fail(EOVERFLOW);
	}
	ret->handle_bytes = 8;
	ret->handle_type = 1;
	memcpy(ret->f_handle, &file->node->number, 8);
	*ret_mount = 1;
	return 0;
}
