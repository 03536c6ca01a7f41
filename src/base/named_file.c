#include "base/named_file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int named_file_kind(const struct stat *st)
{
	if (S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3)))
		return 0;
	return S_ISDIR(st->st_mode) ? -EISDIR : -ENOTSUP;
}

int named_file_open(const char *path)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENXIO ? -ENOTSUP : -errno; /* of a socket */
	const int error = fstat(fd, &st) ? -errno : named_file_kind(&st);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int named_file_stream(const char *path, FILE **ret)
{
	const int fd = named_file_open(path);
	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "r");
	if (*ret)
		return 0;
	const int error = -errno;
	close(fd);
	return error;
}

const char *named_file_error(int error)
{
	return error == -ENOTSUP ? "it is not a regular file" : strerror(-error);
}
