#include "store/own_files.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void find_own_files(struct own_files *ret)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char path[PATH_MAX + 8];
		struct stat st;
		snprintf(path, sizeof path, "%s%s", ret->path, suffixes[i]);
		if (stat(path, &st) < 0)
			continue;
		ret->files[ret->n].dev = st.st_dev;
		ret->files[ret->n++].ino = st.st_ino;
	}
}

void own_files_find(char *sqlite_path, struct own_files *ret)
{
	*ret = (struct own_files){.path = sqlite_path};
	find_own_files(ret);
}

void own_files_clear(struct own_files *own)
{
	free(own->path);
	*own = (struct own_files){0};
}

bool own_files_are_there(const struct own_files *own)
{
	struct own_files now = {.path = own->path};
	if (!own->path)
		return true;
	find_own_files(&now);
	for (size_t i = 0; i < own->n; i++)
		if (!own_files_hold(&now, own->files[i].dev, own->files[i].ino))
			return false;
	return own->n > 0;
}

bool own_files_hold(const struct own_files *own, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < own->n; i++)
		if (own->files[i].ino == ino && own->files[i].dev == dev)
			return true;
	return false;
}
