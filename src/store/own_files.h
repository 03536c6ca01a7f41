/* The SQLite files that this process has open: never opened as files to be uploaded. Closing any
 * descriptor of an SQLite file drops the POSIX locks that SQLite holds on it in the same process,
 * and then another process damages it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct own_files {
	char *path; /* of the SQLite file; NULL: none */
	struct {
		dev_t dev;
		ino_t ino;
	} files[3];
	size_t n;
};

/* Those of an SQLite file that is open: itself, its log and its index, as far as they are there. It
 * takes the path. */
void own_files_find(char *sqlite_path, struct own_files *ret);
void own_files_clear(struct own_files *own);
/* Whether they are still what the path leads to: otherwise nobody finds what was written, and
 * others write into another file. Without a path: true. */
bool own_files_are_there(const struct own_files *own);
bool own_files_hold(const struct own_files *own, dev_t dev, ino_t ino);
