/* A token in a file. */
#pragma once
#include "base/text.h"

/* Adds the file's content to ret, which caps it, without the white space at its end. 0 or -errno;
 * an empty file is -EIO; anything but a regular file, which might be waited for without end, is
 * -ENOTSUP. Wipe ret in any case. */
int secret_file_read(const char *path, struct text *ret);
/* Such an error in words. Borrowed, until the next call of strerror(3) at most. */
const char *secret_file_error(int error);
