/* The files that this run keeps its marks in: never opened as files to be uploaded. Closing any
 * descriptor of an SQLite file drops the POSIX locks that SQLite holds on it in the same process,
 * and then another process damages it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct own_files {
	struct {
		dev_t dev;
		ino_t ino;
	} files[3];
	size_t n;
};

/* Those of an SQLite file that is open: itself, its log and its index, as far as they are there. */
void own_files_find(const char *sqlite_path, struct own_files *ret);
bool own_files_hold(const struct own_files *own, dev_t dev, ino_t ino);
