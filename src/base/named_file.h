/* Files that a user named: of the configuration, of rules, of keys, of tokens. Nothing here waits
 * for another program, as opening a FIFO would. */
#pragma once
#include <stdio.h>
#include <sys/stat.h>

/* 0 for a regular file and for /dev/null, which stands for an empty one; -EISDIR for a directory,
 * and -ENOTSUP for anything else. */
int named_file_kind(const struct stat *st);
/* Opens such a file for reading. Returns the descriptor, which the caller closes, or -errno. */
int named_file_open(const char *path);
/* The same as a stream, which the caller closes. 0 or -errno. */
int named_file_stream(const char *path, FILE **ret);
/* Such an error in words. Borrowed, until the next call of strerror(3) at most. */
const char *named_file_error(int error);
