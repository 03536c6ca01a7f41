/* The folder for this host's own state: $STATE_DIRECTORY, else $XDG_STATE_HOME/s3once, else
 * ~/.local/state/s3once. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The names of everything in this folder. state_contains() knows each of them, so that none of
 * these files is uploaded. */
#define STATE_MARKS      "marks.db"
#define STATE_IDENTITIES "identities.db"
#define STATE_SESSIONS   "sessions"
#define STATE_BANDWIDTH  "bandwidth"
#define STATE_LOCKS      "locks" /* a folder, with the observations of locks named by hashes */

/* Whether a missing folder is made, with mode 0700. */
enum state_folder { FOLDER_NOT_MADE, FOLDER_MADE };
/* Writes the path of a file in this folder. With the name "" it is the path of the folder, with a
 * slash after it. Returns 0, -ENOENT if the environment names no place, -ENAMETOOLONG, or the error
 * of making the folder. */
int state_path(const char *name, enum state_folder folder, char *ret, size_t size);

/* Makes the missing folders of a path, up to its last slash, with mode 0700 whatever the umask. 0
 * or -errno. */
int state_make_folders(const char *path);

/* Whether the file of this name, device and inode is one that s3once keeps in this folder. Anything
 * else in it is not s3once's: a unit may share its STATE_DIRECTORY with other programs. */
bool state_contains(const char *name, dev_t dev, ino_t ino);

/* The SQLite files that this process has open. They must never be opened as files to upload:
 * closing any descriptor of an SQLite file drops the POSIX locks that SQLite holds on it in the
 * same process, and then another process may damage it. */
struct own_files {
	char *path; /* path of the SQLite file; NULL: none */
	struct {
		dev_t dev;
		ino_t ino;
	} files[3];
	size_t n;
};

/* Finds the files of an open SQLite file: itself, its log and its index, if they exist. *ret keeps
 * the path, which own_files_clear() frees. */
void own_files_find(char *sqlite_path, struct own_files *ret);
void own_files_clear(struct own_files *own);
/* Checks whether the path still points to the files that own_files_find() has found. Returns 0 if
 * it does or there is no path, or -ESTALE if the SQLite file was removed or replaced: the writes of
 * this process are lost to others, who use a different file. Returns -errno, such as -EACCES, if
 * the files cannot be looked at any more. */
int own_files_check(const struct own_files *own);
/* Whether the file with this device and inode is one of them. */
bool own_files_contain(const struct own_files *own, dev_t dev, ino_t ino);
