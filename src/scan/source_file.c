#include "scan/source_file.h"
#include "scan/open.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *source_given(const struct source *source)
{
	return source->options->sources[source->index];
}

static int open_in(const struct source *source, const char *relative)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	if (source->error)
		return source->error;
	if (source->directory_fd >= 0)
		return open_below(source->directory_fd, relative, flags, source->options->follow);
	/* No descriptor is kept for each SOURCE file: there may be many thousands. */
	int directory_fd = open(source->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0)
		return -errno;
	int fd = open_beneath(directory_fd, relative, flags);
	close(directory_fd);
	return fd;
}

int source_open_file(
	const struct source *source, const char *relative, struct file_state *ret_state)
{
	int fd = open_in(source, relative);
	if (fd < 0)
		return fd == -ENXIO || fd == -ENODEV ? -EINVAL : fd;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (r == 0) {
		file_state_from(&st, ret_state);
		return fd;
	}
	close(fd);
	return r;
}
