/* Which file it is, whatever its name is now. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define FILE_IDENTITY_BYTES_MAX 160

/* The file system's id and the file's handle (name_to_handle_at): its inode and generation, so that
 * an inode that is used again is another file. Compared as bytes. */
struct file_identity {
	unsigned char bytes[FILE_IDENTITY_BYTES_MAX];
	size_t n;
};
/* Of an open file. 0, or -ENOTSUP where the file system has no lasting handles or no id. */
int file_identity_of(int fd, struct file_identity *ret);

/* Whether another process has the open file open for writing, as far as this process may know:
 * false where it may not ask (it is neither the owner nor has CAP_LEASE) or the file system cannot
 * tell. */
bool file_is_being_written(int fd);
