/* A token in a file. */
#pragma once
#include "base/text.h"

/* Adds the file's content to ret, which caps it, without the white space at its end. 0 or -errno as
 * named_file_open() returns it; an empty file is -EIO. Wipe ret in any case. */
int secret_file_read(const char *path, struct text *ret);
