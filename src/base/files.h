/* File functions that several rooms use. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Files that a user has named, such as configuration, rules, keys and tokens. The functions
 * named_file_*() never wait for another program, as opening a FIFO would.
 *
 * Returns 0 for a regular file, and for /dev/null, which counts as an empty file; -EISDIR for a
 * directory; -ENOTSUP for anything else. */
int named_file_kind(const struct stat *st);
/* Reads a whole file, and adds its bytes to ret, whose cap is the limit. *ret_status, if not NULL,
 * is the status of the file that was read, so that its owner and mode can be judged.
 *
 * Returns 0, -EFBIG for a file that is larger than the cap, or another -errno. After an error, ret
 * may have a part of the file. ret has the only copy of the bytes, since they may be secret. */
int named_file_read(const char *path, struct text *ret, struct stat *ret_status);
/* Returns an error of these functions in words. Borrowed, until the next call of strerror(3) at
 * most. */
const char *named_file_error(int error);

/* Whether two paths end in the same name and point to the same existing file. The file system is
 * asked only if the names are the same. */
bool same_file(const char *a, const char *b);

/* Temporary files without a name: their content is gone when they are closed.
 *
 * Makes such a file in this folder. Only this user may read and write the file. If the file system
 * cannot make a file without a name, the file has one for an instant. Returns its descriptor, which
 * the caller closes, or -errno. Thread-safe. */
int make_unnamed_file(const char *folder);
/* Returns the folder for temporary files that may be large: SQLITE_TMPDIR, TMPDIR or /var/tmp.
 * Borrowed from the environment. */
const char *temporary_folder(void);

/* Sets ret to the target of the symbolic link, cut to fit and always terminated; "" if the link
 * cannot be read. */
void read_link(const char *path, char *ret, size_t size);

/* Returns the creation time of the open file, by the clock of its file system; 0 if that does not
 * record it. */
int64_t file_creation_ns(int fd);

/* Reading and writing whole buffers.
 *
 * Reads as pread(2), but all of the n bytes. Returns n, -ESTALE if the file ends before that, or
 * another -errno. Thread-safe. */
long read_at(int fd, void *buffer, size_t n, uint64_t offset);
/* Writes n bytes to the descriptor, even if signals interrupt it. Returns 0 or -errno; after an
 * error some of the bytes may be written. Thread-safe. */
int write_all(int fd, const void *bytes, size_t n);

enum replacement { REPLACE_UNSYNCED, REPLACE_SYNCED };
/* Replaces a file, or makes it, with this mode. The new file is written beside its place, under a
 * name with another ending, and then renamed, so that no reader sees a file that is half written.
 * With REPLACE_SYNCED the file is whole after a power cut, too. Returns 0 or -errno. */
int replace_file(
	const char *path, const void *bytes, size_t n, mode_t mode, enum replacement replacement);

/* The two halves of a path, around its last slash.
 *
 * Returns the part behind the last slash, or the whole path if it has no slash. Borrowed from the
 * path. */
const char *path_name(const char *path);
/* Returns the folder of a path: the part before its last slash, "/" for a name in the root, or "."
 * for a path without a slash. The caller frees it. NULL if memory ran out. */
char *path_folder(const char *path);
/* Returns the absolute path without links that a path would have if it existed. If "/logs" is a
 * link to "/var/log" and has no folder "a", "/logs/a/b/" becomes "/var/log/a/b": the part that
 * exists is resolved, and the rest stays byte for byte, except that slashes at its end are dropped.
 * The caller frees the result. NULL if memory ran out. */
char *path_resolve_existing(const char *path);
