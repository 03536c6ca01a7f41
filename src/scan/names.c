/* A compact list of names, and the reading of a folder into one. The walk keeps such a list for
 * each folder on its way, files_from.c keeps its paths in one, and removal.c reads its own folder
 * into one. scan_entry.c judges the file behind a name. */
#include "scan/names.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void names_clear(struct names *names)
{
	free(names->bytes);
	free(names->at);
	*names = (struct names){0};
}

int names_add(struct names *names, char tag, const char *name, size_t len)
{
	const size_t more = len + 2; /* a tag before the name, and a NUL behind it */
	if (names->len + more > UINT32_MAX)
		return -EOVERFLOW;
	if (names->len + more > names->cap) {
		const size_t cap = 2 * (names->len + more) + 512;
		char *bytes = realloc(names->bytes, cap);
		if (!bytes)
			return -ENOMEM;
		names->bytes = bytes;
		names->cap = cap;
	}
	if (names->n == names->at_cap) {
		const size_t cap = 2 * names->at_cap + 16;
		uint32_t *at = realloc(names->at, cap * sizeof *at);
		if (!at)
			return -ENOMEM;
		names->at = at;
		names->at_cap = cap;
	}
	names->at[names->n++] = (uint32_t)names->len;
	char *to = names->bytes + names->len;
	to[0] = tag;
	memcpy(to + 1, name, len);
	to[len + 1] = '\0';
	names->len += more;
	return 0;
}

/* Returns the i-th byte of a name for comparison. A directory's name ends in '/', like the paths of
 * its contents. Any other name ends in a NUL, which is below every byte. */
static int byte_at(const char *tagged, size_t i)
{
	unsigned char c = (unsigned char)tagged[1 + i];
	return c == '\0' && tagged[0] == NAMES_DIRECTORY ? '/' : c;
}

/* Compares two names, which begin behind their tags. a and b point to elements of names.at. */
static int compare_names(const void *a, const void *b, void *bytes)
{
	const char *x = (const char *)bytes + *(const uint32_t *)a;
	const char *y = (const char *)bytes + *(const uint32_t *)b;
	size_t i = 1;
	while (x[i] != '\0' && x[i] == y[i])
		i++;
	return byte_at(x, i - 1) - byte_at(y, i - 1);
}

void names_sort(struct names *names)
{
	size_t kept = 0;
	if (names->n > 1)
		qsort_r(names->at, names->n, sizeof *names->at, compare_names, names->bytes);
	for (size_t i = 0; i < names->n; i++)
		if (!kept || strcmp(names_get(names, kept - 1), names_get(names, i)) != 0)
			names->at[kept++] = names->at[i];
	names->n = kept;
}

const char *names_get(const struct names *names, size_t i)
{
	return names->bytes + names->at[i] + 1;
}

char names_tag(const struct names *names, size_t i)
{
	return names->bytes[names->at[i]];
}

/* Returns the tag of a name in the folder by a stat(2), or NAMES_OTHER with errno if that fails. */
static char look_for_tag(int fd, const char *name, bool follow)
{
	struct stat st;
	errno = 0;
	if (follow && fstatat(fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return NAMES_DIRECTORY;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NAMES_OTHER;
	errno = 0;
	if (S_ISDIR(st.st_mode))
		return NAMES_DIRECTORY;
	return S_ISLNK(st.st_mode) ? NAMES_LINK : NAMES_OTHER;
}

/* Returns the tag of a name in the folder. The type in `entry` mostly determines the tag, so that
 * most names cost no stat(2). entry_look() notices if the name is gone by then. */
static char tag_of(int fd, const struct dirent *entry, bool follow)
{
	if (entry->d_type == DT_DIR)
		return NAMES_DIRECTORY;
	if (entry->d_type == DT_LNK && !follow)
		return NAMES_LINK;
	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return NAMES_OTHER;
	return look_for_tag(fd, entry->d_name, follow);
}

int names_add_found(struct names *names, int fd, bool follow, const char *name, size_t len)
{
	char copy[NAME_MAX + 1];
	if (len > NAME_MAX)
		return 0;
	memcpy(copy, name, len);
	copy[len] = '\0';
	const char tag = look_for_tag(fd, copy, follow);
	return errno == ENOENT ? 0 : names_add(names, tag, name, len);
}

int names_read(int fd, bool follow, struct names *ret)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	int r = dir ? 0 : -errno;
	if (!dir && copy >= 0)
		close(copy);
	while (dir && r == 0) {
		errno = 0; /* at the end of the folder readdir() returns NULL and leaves errno */
		const struct dirent *entry = readdir(dir);
		r = entry ? 0 : -errno;
		if (!entry)
			break;
		const char *name = entry->d_name;
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			r = names_add(ret, tag_of(copy, entry, follow), name, strlen(name));
	}
	if (dir)
		closedir(dir);
	/* A name that is removed and made again meanwhile may be listed twice. names_sort() drops
	 * the second one. */
	if (r == 0)
		names_sort(ret);
	else
		names_clear(ret);
	return r;
}
