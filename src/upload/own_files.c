#include "upload/own_files.h"
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

void own_files_find(const char *sqlite_path, struct own_files *ret)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	*ret = (struct own_files){0};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char path[PATH_MAX + 8];
		struct stat st;
		snprintf(path, sizeof path, "%s%s", sqlite_path, suffixes[i]);
		if (stat(path, &st) < 0)
			continue;
		ret->files[ret->n].dev = st.st_dev;
		ret->files[ret->n++].ino = st.st_ino;
	}
}

bool own_files_hold(const struct own_files *own, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < own->n; i++)
		if (own->files[i].ino == ino && own->files[i].dev == dev)
			return true;
	return false;
}
