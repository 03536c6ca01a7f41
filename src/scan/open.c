/* Opens files below a directory and never outside of it, by openat2(2) or component by component,
 * and makes sentences about failures. Everything that opens files or folders of a SOURCE uses these
 * functions, since a run as root works in folders that others may write to. */
#include "scan/open.h"
#include "base/clock.h"
#include "base/problem.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* The kernel writes a page back once it has been dirty for 30 s (vm.dirty_expire_centisecs), or
 * somewhat later if the disk is busy. */
#define WRITTEN_BACK_NS (600 * (int64_t)NS_PER_S)
/* The time for which a file may get the same times by its next change, where a file system keeps
 * whole seconds (ext3), or every other one (FAT). */
#define SECONDS_STEP_NS (2 * (int64_t)NS_PER_S)

bool path_leads_out(const char *path)
{
	if (*path == '/')
		return true;
	for (const char *component = path;;) {
		const size_t n = strcspn(component, "/");
		if (n == 2 && strncmp(component, "..", 2) == 0)
			return true;
		if (!component[n])
			return false;
		component += n + 1;
	}
}

const char *path_below(const char *directory, const char *path)
{
	size_t n = strlen(directory);
	if (n && directory[n - 1] == '/') /* the root, whose path alone ends in a slash */
		n--;
	if (strncmp(path, directory, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n + (path[n] == '/');
}

/* Opens one component of a path. With O_CREAT the component is a folder, which is made if it is
 * missing. A symlink is -ELOOP, even where the kernel returns ENOTDIR because of O_DIRECTORY. */
static int open_component(int fd, const char *name, int flags)
{
	if ((flags & O_CREAT) && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int opened = openat(fd, name, (flags & ~O_CREAT) | O_NOFOLLOW | O_CLOEXEC);
	if (opened >= 0)
		return opened;
	int error = errno;
	struct stat st;
	if (error == ENOTDIR && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(st.st_mode))
		return -ELOOP;
	return -error;
}

int open_beneath_by_components(int directory_fd, const char *relative, int flags)
{
	char path[PATH_MAX];
	size_t len = strlen(relative);
	if (len == 0)
		return -ENOENT;
	if (len >= sizeof path)
		return -ENAMETOOLONG;
	if (path_leads_out(relative))
		return -EXDEV;
	memcpy(path, relative, len + 1);

	int fd = directory_fd;
	/* strsep() sets `rest` to NULL at the last component, which alone is opened with the flags
	 * of the caller. Two slashes in a row make an empty name. */
	for (char *rest = path, *name; (name = strsep(&rest, "/"));) {
		const int how = rest ? O_PATH | O_DIRECTORY | (flags & O_CREAT) : flags;
		const int next = open_component(fd, *name ? name : ".", how);
		if (fd != directory_fd)
			close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	return fd;
}

int open_beneath(int directory_fd, const char *relative, int flags)
{
#ifdef SYS_openat2
	struct open_how how = {.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	/* With openat2(2), a kernel of 32 bits refuses files of 2 GiB and more unless it is asked
	 * for them, as glibc's open() does. O_PATH does not go with that. */
	if (!(flags & O_PATH))
		how.flags |= O_LARGEFILE;
	if (path_leads_out(relative))
		return -EXDEV;
	long fd = syscall(SYS_openat2, directory_fd, relative, &how, sizeof how);
	if (fd >= 0)
		return (int)fd;
	/* An old kernel returns ENOSYS, and an old sandbox EPERM. EAGAIN is a race with a rename,
	 * and ENOTDIR may hide a symlink. */
	const bool may_work_by_components =
		errno == ENOSYS || errno == EPERM || errno == EAGAIN || errno == ENOTDIR;
	if (!may_work_by_components)
		return -errno;
#endif
	return open_beneath_by_components(directory_fd, relative, flags);
}

int open_beneath_or_follow(int directory_fd, const char *relative, int flags, bool follow)
{
	if (!follow)
		return open_beneath(directory_fd, relative, flags);
	int fd = openat(directory_fd, relative, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool open_explain_fatal(int error, struct problem *ret_problem)
{
	if (error == -ECANCELED)
		problem_set(ret_problem, "stopped while the files were listed");
	else if (error == -ENOMEM)
		problem_set(ret_problem, "out of memory while the files were listed");
	else if (error == -EMFILE || error == -ENFILE)
		problem_set(ret_problem,
			"out of file descriptors while the files were listed (%s); raise the limit "
			"with ulimit -n or LimitNOFILE=, or lower --concurrency",
			strerror(-error));
	else
		return false;
	return true;
}

void open_explain(int error, const char *cannot_be, struct problem *ret)
{
	const bool lacks_access = error == -EACCES || error == -EPERM;
	problem_set(ret, "cannot be %s: %s%s", cannot_be, strerror(-error),
		lacks_access ? "; give this user access, or exclude it" : "");
}

int open_explain_unread(int error, struct problem *why, struct problem *ret_problem)
{
	if (open_explain_fatal(error, ret_problem))
		return error;
	if (!*why->text)
		open_explain(error, "read", why);
	return 0;
}

enum write_lease write_lease_take(int fd)
{
	/* The kernel sends a signal when another process wants to open the file for writing. The
	 * default, SIGIO, would end this process; SIGURG is ignored unless the program handles
	 * it. */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return LEASE_UNKNOWN;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
		return LEASE_HELD;
	return errno == EAGAIN ? LEASE_REFUSED : LEASE_UNKNOWN;
}

void write_lease_drop(int fd, enum write_lease lease)
{
	if (lease == LEASE_HELD)
		fcntl(fd, F_SETLEASE, F_UNLCK);
}

bool file_is_being_written(int fd)
{
	const enum write_lease lease = write_lease_take(fd);
	write_lease_drop(fd, lease);
	return lease == LEASE_REFUSED;
}

bool file_times_show_changes(int fd, int64_t ctime_ns)
{
	struct statfs fs = {0};
	const bool is_known = fstatfs(fd, &fs) == 0;
	const int64_t now_ns = clock_wall_ns();
	/* Whether the next change gives the file other times. */
	const bool next_differs =
		ctime_ns % (int64_t)NS_PER_S != 0 || ctime_ns <= now_ns - SECONDS_STEP_NS;
	if (is_known && fs.f_type == FUSE_SUPER_MAGIC)
		return false;
	/* The mappings and pages of a file are those of the layer below, which neither a lease nor
	 * sync_file_range() reaches. fsync() does, unless the mount is volatile, so that the times
	 * show later stores to the next run. */
	if (is_known && fs.f_type == OVERLAYFS_SUPER_MAGIC) {
		if (ctime_ns < now_ns - WRITTEN_BACK_NS)
			return true;
		fsync(fd);
		return false;
	}
	/* A mapping keeps the file open for writing, even after close(2). */
	const enum write_lease lease = write_lease_take(fd);
	write_lease_drop(fd, lease);
	if (lease == LEASE_HELD)
		return next_differs;
	if (is_known && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return false;
	/* If nothing is known, as with files of other users, only the pages are written back:
	 * fsync() would also flush the disk, even for a file without dirty pages. */
	const unsigned write_back =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	const int error =
		lease == LEASE_REFUSED ? fsync(fd) : sync_file_range(fd, 0, 0, write_back);
	return error ? false : next_differs;
}
