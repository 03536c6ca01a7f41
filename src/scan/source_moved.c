#include "base/text.h"
#include "scan/open.h"
#include "scan/source_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES_MAX (256UL * 1024)

static DIR *open_folder(const struct source *source, const char *folder)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	int fd = source->directory_fd < 0 ? open(source->directory, flags | O_CLOEXEC)
					  : open_below(source->directory_fd, *folder ? folder : ".",
						    flags, source->options->follow);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* The name in the folder with this inode, as a relative path. */
static int find_inode(DIR *dir, const char *folder, ino_t ino, struct text *ret)
{
	const struct dirent *each;
	while ((each = readdir(dir)) != NULL) {
		if (each->d_ino != ino)
			continue;
		text_reset(ret);
		text_add(ret, folder);
		text_add(ret, each->d_name);
		return ret->error;
	}
	return -ENOENT;
}

int source_open_moved(const struct source *source, const char *relative,
	const struct file_state *version, struct file_state *ret_state)
{
	struct text folder = TEXT(PATH_BYTES_MAX), found = TEXT(PATH_BYTES_MAX);
	const char *slash = strrchr(relative, '/');
	text_add_bytes(&folder, relative, slash ? (size_t)(slash + 1 - relative) : 0);
	DIR *dir = folder.error ? NULL : open_folder(source, text_string(&folder));
	int fd = dir ? find_inode(dir, text_string(&folder), version->ino, &found) : -ENOENT;
	if (fd == 0)
		fd = source_open_file(source, text_string(&found), ret_state);
	if (fd >= 0 && !file_state_is_version(ret_state, version)) {
		close(fd);
		fd = -ENOENT;
	}
	if (dir)
		closedir(dir);
	text_clear(&folder);
	text_clear(&found);
	return fd;
}
