/* Opening files below a directory and never outside of it, and finding out whether another process
 * has a file open. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Opens a relative path below the directory as openat() does, with O_CLOEXEC and O_NOFOLLOW added,
 * never through a symlink and never out of the directory. It uses openat2(2) where the kernel has
 * that call, and otherwise opens component by component. flags must not contain O_CREAT. Returns
 * the descriptor, -ELOOP for a symlink anywhere in the path, -EXDEV for an absolute path or "..",
 * or another -errno. Thread-safe. */
int open_beneath(int directory_fd, const char *relative, int flags);
/* As open_beneath(), always component by component. With O_CREAT, the path is one of folders, and
 * missing folders are made for this user alone. */
int open_beneath_by_components(int directory_fd, const char *relative, int flags);
/* Whether a path is absolute or contains "..". Pure. */
bool path_leads_out(const char *path);
/* Returns the part of an absolute path that is below the directory, without a slash before it; ""
 * for the directory itself, NULL for a path elsewhere. Neither path has symlinks in it. Borrowed
 * from the path. Pure. */
const char *path_below(const char *directory, const char *path);
/* As open_beneath(), but if `follow` is set, as openat(): links are followed wherever they
 * point. */
int open_beneath_or_follow(int directory_fd, const char *relative, int flags, bool follow);
/* Returns whether this -errno ends the scan, and if so sets the sentence. The scan ends after
 * -ECANCELED, since the run is over, and for lack of memory or descriptors, which does not depend
 * on the file. After any other error, it continues. */
struct problem;
bool open_explain_fatal(int error, struct problem *ret_problem);
/* Sets the sentence "cannot be …" of a file. `cannot_be` is the participle of the failed action
 * ("read", for instance), and `error` its -errno. */
void open_explain(int error, const char *cannot_be, struct problem *ret);
/* Explains why a file cannot be opened or read. If the scan continues after this error, sets *why,
 * unless it has a sentence already, and returns 0. Otherwise sets ret_problem, and returns the
 * error. */
int open_explain_unread(int error, struct problem *why, struct problem *ret_problem);

/* A read lease on an open file (fcntl(2)). It is refused if another process has the file open for
 * writing. While this process holds it, a process that opens the file for writing has to wait until
 * it is given back, and F_GETLEASE shows that one waits. */
enum write_lease {
	LEASE_HELD,
	LEASE_REFUSED, /* the file is open for writing */
	LEASE_UNKNOWN, /* this user (neither the owner nor with CAP_LEASE), or this file system,
			  gets no leases */
};
enum write_lease write_lease_take(int fd);
void write_lease_drop(int fd, enum write_lease lease);
/* Whether another process has this file open for writing, as far as this process may know. */
bool file_is_being_written(int fd);
/* Makes sure, if possible, that size and times of the open file show each change of its content
 * from now on, and returns whether they do. They do not where a file system caches or makes them up
 * (FUSE), and where another process may write through a shared mapping (mmap): a store into a page
 * that is dirty already changes no time. So the pages of such a file are written back, after which
 * the next store is noticed, except in memory (tmpfs). On overlayfs it is unknown whether there is
 * a mapping, and whether pages are written back, so false is returned for a file that was modified
 * in the last ten minutes. Nor do the times show a change within one step of their clock, if a file
 * system keeps whole seconds.
 *
 * `ctime_ns` is from the state that the caller has read before. The content is read afterwards. */
bool file_times_show_changes(int fd, int64_t ctime_ns);
