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

/* Opens the name in the folder of relative that has this inode now. */
static int open_by_inode(
	const struct source *source, const char *relative, ino_t ino, struct file_state *ret_state)
{
	struct text folder = TEXT(PATH_BYTES_MAX), found = TEXT(PATH_BYTES_MAX);
	const char *slash = strrchr(relative, '/');
	text_add_bytes(&folder, relative, slash ? (size_t)(slash + 1 - relative) : 0);
	DIR *dir = folder.error ? NULL : open_folder(source, text_string(&folder));
	int fd = dir ? find_inode(dir, text_string(&folder), ino, &found) : -ENOENT;
	if (fd == 0)
		fd = source_open_file(source, text_string(&found), ret_state);
	if (dir)
		closedir(dir);
	text_clear(&folder);
	text_clear(&found);
	return fd;
}

int source_open_moved(const struct source *source, const char *relative,
	const struct file_state *version, struct file_state *ret_state)
{
	int fd = open_by_inode(source, relative, version->ino, ret_state);
	if (fd >= 0 && !file_state_is_version(ret_state, version)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

static bool is_inode(const struct file_state *state, dev_t dev, ino_t ino)
{
	return state->dev == dev && state->ino == ino;
}

int source_open_inode(
	const struct source *source, const struct scan_entry *found, struct file_state *ret_state)
{
	int fd = source_open_file(source, found->relative, ret_state);
	if (fd >= 0 && !is_inode(ret_state, found->dev, found->ino)) {
		close(fd);
		fd = -ENOENT;
	}
	if (fd == -ENOENT)
		fd = open_by_inode(source, found->relative, found->ino, ret_state);
	if (fd >= 0 && !is_inode(ret_state, found->dev, found->ino)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}
