/* Where this host keeps what is its own: $STATE_DIRECTORY, else $XDG_STATE_HOME/s3once, else
 * ~/.local/state/s3once. */
#pragma once
#include <stddef.h>

/* The path of a file in it, or with the name "" its own with a slash behind it. 0, -ENOENT if the
 * environment names no place, or -ENAMETOOLONG. */
int state_path(const char *name, char *ret, size_t size);
/* The same; the directory is made (0700) if need be. Also the error of making it. */
int state_file(const char *name, char *ret, size_t size);

/* Makes every folder above the last slash of a path where it is missing, 0700 whatever the umask. 0
 * or -errno. */
int state_make_folders(const char *path);
