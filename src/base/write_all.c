#include "base/write_all.h"
#include <errno.h>
#include <unistd.h>

int write_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	while (n) {
		const ssize_t written = write(fd, at, n);
		if (written < 0 && errno != EINTR)
			return -errno;
		at += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}
