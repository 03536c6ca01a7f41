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
	const size_t more = len + 2; /* a tag before the name, and a NUL after it */
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

/* Returns the i-th byte of a name, as it sorts. A directory's name ends in '/', like the paths of
 * its contents. Any other name ends in a NUL, which is below every byte. */
static int sorting_byte(char tag, const char *name, size_t i)
{
	const unsigned char c = (unsigned char)name[i];
	return c == '\0' && tag == NAMES_DIRECTORY ? '/' : c;
}

/* Compares two names. a and b point to elements of names.at. */
static int compare_names(const void *a, const void *b, void *bytes)
{
	const char *tag_a = (const char *)bytes + *(const uint32_t *)a, *name_a = tag_a + 1;
	const char *tag_b = (const char *)bytes + *(const uint32_t *)b, *name_b = tag_b + 1;
	size_t i = 0;
	while (name_a[i] != '\0' && name_a[i] == name_b[i])
		i++;
	return sorting_byte(*tag_a, name_a, i) - sorting_byte(*tag_b, name_b, i);
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

/* Finds the tag of a name in the folder by stat(2). Returns 0 or -errno; then the tag is
 * NAMES_OTHER. */
static int stat_tag(int fd, const char *name, bool follow, char *ret_tag)
{
	struct stat st;
	*ret_tag = NAMES_OTHER;
	if (follow && fstatat(fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode)) {
		*ret_tag = NAMES_DIRECTORY;
		return 0;
	}
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		*ret_tag = NAMES_DIRECTORY;
	else if (S_ISLNK(st.st_mode))
		*ret_tag = NAMES_LINK;
	return 0;
}

/* Returns the tag of a name in the folder. The type in `entry` mostly determines the tag, so that
 * most names cost no stat(2). If the name is gone by now, entry_look() will notice. */
static char tag_of(int fd, const struct dirent *entry, bool follow)
{
	if (entry->d_type == DT_DIR)
		return NAMES_DIRECTORY;
	if (entry->d_type == DT_LNK && !follow)
		return NAMES_LINK;
	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return NAMES_OTHER;
	char tag;
	stat_tag(fd, entry->d_name, follow, &tag);
	return tag;
}

int names_add_found(struct names *names, int fd, bool follow, const char *name, size_t len)
{
	char copy[NAME_MAX + 1];
	if (len > NAME_MAX) /* no file can have this name */
		return 0;
	memcpy(copy, name, len);
	copy[len] = '\0';
	char tag;
	if (stat_tag(fd, copy, follow, &tag) == -ENOENT)
		return 0;
	return names_add(names, tag, name, len);
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
