/* Small things about files that the rooms share. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Files that a user named: of the configuration, of rules, of keys, of tokens. Nothing here waits
 * for another program, as opening a FIFO would.
 *
 * 0 for a regular file and for /dev/null, which stands for an empty one; -EISDIR for a directory,
 * and -ENOTSUP for anything else. */
int named_file_kind(const struct stat *st);
/* Reads such a file whole: adds its bytes to ret, which caps them. *ret_status, if not NULL, is
 * what was read, so that its owner and mode can be judged. 0, -EFBIG for a file that is larger than
 * the cap, or another -errno; then ret may have part of it. Leaves no copy of a secret but in ret.
 */
int named_file_read(const char *path, struct text *ret, struct stat *ret_status);
/* Such an error in words. Borrowed, until the next call of strerror(3) at most. */
const char *named_file_error(int error);

/* Whether two paths lead to one file.
 *
 * Both exist, end in the same name, and are one file at this moment. Only where the names are the
 * same is the file system asked. */
bool same_file(const char *a, const char *b);

/* Temporary files without a name: what they contain is gone when they are closed.
 *
 * Makes such a file in the folder, which only this user may read and write. Where the file system
 * makes none without a name, it has one for an instant. Returns its descriptor, which the caller
 * closes, or -errno. Thread-safe. */
int unnamed_file(const char *folder);
/* Where such files go that may be large: SQLITE_TMPDIR, TMPDIR or /var/tmp. Borrowed from the
 * environment. */
const char *temporary_folder(void);

/* What the symbolic link leads to, cut to fit and always terminated; "" if it cannot be read. */
void read_link(const char *path, char *ret, size_t size);

/* Reading and writing what may take several calls.
 *
 * As pread(2), but reads all of n. n, -ESTALE where the file has ended before, or another -errno.
 * Thread-safe. */
long read_at(int fd, void *buffer, size_t n, uint64_t offset);
/* Writes n bytes to the descriptor, also if signals interrupt it. Returns 0 or -errno; after an
 * error some of the bytes may be written. Thread-safe. */
int write_all(int fd, const void *bytes, size_t n);

/* Replaces a file, or makes it, with this mode. It is written beside its place, in a file whose
 * name has another ending, and then renamed, so that nobody reads a file that is half written. With
 * `is_durable` that holds after a power cut, too. Returns 0 or -errno. */
int replace_file(const char *path, const void *bytes, size_t n, mode_t mode, bool is_durable);

/* The two halves of a path, around its last slash.
 *
 * What is behind the last slash, or all of it. It is part of the path. */
const char *path_name(const char *path);
/* The folder that the name is in, as "/" or "." where that is it. The caller frees it. NULL if
 * memory ran out. */
char *path_folder(const char *path);
