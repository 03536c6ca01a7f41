/* The folder of this host's own marks and notes, and the SQLite files that this process has open. A
 * run compares a found file with these before it opens it (src/upload/run_files.c). Nothing here
 * reads or writes marks. */
#include "store/state_folder.h"
#include "base/random.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int state_make_folders(const char *path)
{
	char *copy = strdup(path);
	int r = copy ? 0 : -ENOMEM;
	char *slash = copy && *copy ? strchr(copy + 1, '/') : NULL;

	for (; slash && !r; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700))
			r = errno == EEXIST ? 0 : -errno;
		else if (chmod(copy, 0700)) /* the umask may have removed bits */
			r = -errno;
		*slash = '/';
	}
	free(copy);
	return r;
}

int state_path(const char *name, enum state_folder folder, char *ret, size_t size)
{
	/* systemd puts colons between the folders of STATE_DIRECTORY if there are several, and the
	 * first one is used. In the other variables a colon is part of the name. */
	const char *directory = getenv("STATE_DIRECTORY"), *below = "", *separator = ":";
	if (!directory || *directory != '/') {
		directory = getenv("XDG_STATE_HOME");
		below = "/s3once";
		separator = "";
	}
	if (!directory || *directory != '/') { /* XDG ignores a relative path */
		directory = getenv("HOME");
		below = "/.local/state/s3once";
	}
	if (!directory || *directory != '/')
		/* Because of a relative path, each working directory would have marks of its
		 * own. */
		return -ENOENT;
	const int directory_bytes = (int)strcspn(directory, separator);
	int n = snprintf(ret, size, "%.*s%s/%s", directory_bytes, directory, below, name);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	return folder == FOLDER_MADE ? state_make_folders(ret) : 0;
}

/* Whether it is a name of one of our files. Behind the names of SQLite's files there may be -wal,
 * -shm or -journal ("marks.db-wal"). */
static bool is_own_name(const char *name)
{
	static const char *const names[] = {
		STATE_MARKS, STATE_IDENTITIES, STATE_SESSIONS, STATE_BANDWIDTH};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const size_t n = strlen(names[i]);
		if (strncmp(name, names[i], n) == 0 && (!name[n] || name[n] == '-'))
			return true;
	}
	return false;
}

bool state_contains(const char *name, dev_t dev, ino_t ino)
{
	char below[64], path[4096];
	struct stat st;
	const bool is_of_lock = strspn(name, "0123456789abcdef") == ID_CHARS && !name[ID_CHARS];
	if (!is_of_lock && !is_own_name(name))
		return false; /* as most files, which thus cost no stat(2) */
	const int n =
		snprintf(below, sizeof below, "%s%s", is_of_lock ? STATE_LOCKS "/" : "", name);
	if ((size_t)n >= sizeof below)
		return false;
	return state_path(below, FOLDER_NOT_MADE, path, sizeof path) == 0 && stat(path, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

/* Finds the files of own->path. Returns 0, or -errno if one of them can neither be found nor be
 * known to be missing. */
static int find_files(struct own_files *own)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	int r = 0;

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char path[PATH_MAX + 8];
		struct stat st;
		snprintf(path, sizeof path, "%s%s", own->path, suffixes[i]);
		if (stat(path, &st) < 0) {
			r = errno == ENOENT || errno == ENOTDIR ? r : -errno;
			continue;
		}
		own->files[own->n].dev = st.st_dev;
		own->files[own->n++].ino = st.st_ino;
	}
	return r;
}

void own_files_find(char *sqlite_path, struct own_files *ret)
{
	*ret = (struct own_files){.path = sqlite_path};
	(void)find_files(ret);
}

void own_files_clear(struct own_files *own)
{
	free(own->path);
	*own = (struct own_files){0};
}

int own_files_check(const struct own_files *own)
{
	struct own_files now = {.path = own->path}; /* borrowed, so it is not cleared */
	if (!own->path)
		return 0;
	const int r = find_files(&now);
	if (r < 0)
		return r;
	for (size_t i = 0; i < own->n; i++)
		if (!own_files_contain(&now, own->files[i].dev, own->files[i].ino))
			return -ESTALE;
	return own->n > 0 ? 0 : -ESTALE; /* n is 0 if the SQLite file was gone from the start */
}

bool own_files_contain(const struct own_files *own, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < own->n; i++)
		if (own->files[i].ino == ino && own->files[i].dev == dev)
			return true;
	return false;
}
