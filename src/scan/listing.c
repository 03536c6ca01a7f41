#include "scan/listing.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tag_by_stat(int fd, const char *name, bool follow)
{
	struct stat st;
	if (follow && fstatat(fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return NAMES_DIRECTORY;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return LISTING_OTHER; /* gone again: looking at the entry itself will say so */
	if (S_ISDIR(st.st_mode))
		return NAMES_DIRECTORY;
	if (S_ISLNK(st.st_mode))
		return LISTING_LINK;
	return LISTING_OTHER;
}

static char tag_of(int fd, const struct dirent *entry, bool follow)
{
	switch (entry->d_type) {
	case DT_DIR:
		return NAMES_DIRECTORY;
	case DT_LNK:
		return follow ? tag_by_stat(fd, entry->d_name, true) : LISTING_LINK;
	case DT_UNKNOWN:
		return tag_by_stat(fd, entry->d_name, follow);
	default:
		return LISTING_OTHER;
	}
}

static int read_directory(DIR *dir, bool follow, struct names *ret)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return -errno;
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		int r = names_add(ret, tag_of(dirfd(dir), entry, follow), name, strlen(name));
		if (r < 0)
			return r;
	}
}

int listing_read(int fd, bool follow, struct names *ret)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	DIR *dir = fdopendir(copy);
	if (!dir) {
		int r = -errno;
		close(copy);
		return r;
	}
	int r = read_directory(dir, follow, ret);
	closedir(dir);
	if (r < 0) {
		names_clear(ret);
		return r;
	}
	/* A name that is removed and made again meanwhile may be listed twice. */
	names_sort(ret);
	names_unique(ret);
	return 0;
}
