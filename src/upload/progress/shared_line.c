#include "upload/progress/shared_line.h"
#include "base/quote.h"
#include "upload/progress/token_bucket.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why the file is not ours alone to write to, or NULL. */
static const char *fault_of(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	return st->st_nlink > 1 ? "it is a hard link" : NULL;
}

/* Without O_NONBLOCK, a FIFO or a device that somebody put there might make us wait. */
static int open_line(const char *path, int *ret_fd, const char **ret_fault)
{
	struct stat st;
	const int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0) {
		*ret_fault = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
		return -errno;
	}
	int error = fstat(fd, &st) ? -errno : 0;
	if (!error && (*ret_fault = fault_of(&st)) != NULL)
		error = -EPERM;
	/* The umask may have taken bits. */
	if (!error && (st.st_mode & 07777) != 0600 && fchmod(fd, 0600))
		error = -errno;
	if (error)
		close(fd);
	else
		*ret_fd = fd;
	return error;
}

/* A file that is too short is one that was just made, or cut: the line is free. */
static int take(int fd, uint64_t now_ns, uint64_t bytes, uint64_t rate, uint64_t *ret_wait_ns)
{
	uint64_t free_ns = 0;
	if (flock(fd, LOCK_EX | LOCK_NB) || pread(fd, &free_ns, sizeof free_ns, 0) < 0)
		return -errno;
	const uint64_t wait_ns = token_bucket_take(&free_ns, now_ns, bytes, rate);
	if (!wait_ns) {
		errno = ENOSPC;
		if (pwrite(fd, &free_ns, sizeof free_ns, 0) != sizeof free_ns)
			return -errno;
	}
	*ret_wait_ns = wait_ns;
	return 0;
}

int shared_line_take(const char *path, uint64_t now_ns, uint64_t bytes, uint64_t rate,
	uint64_t *ret_wait_ns, struct problem *ret_problem)
{
	int fd = -1;
	const char *fault = NULL;
	int error = open_line(path, &fd, &fault);
	if (!error) {
		error = take(fd, now_ns, bytes, rate, ret_wait_ns);
		close(fd); /* ends the lock */
	}
	if (error && error != -EWOULDBLOCK)
		problem_set(ret_problem, "its file cannot be used: %s: %s; remove it",
			quote(path).text, fault ? fault : strerror(-error));
	return error;
}
