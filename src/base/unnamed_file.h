/* Temporary files without a name: what they contain is gone when they are closed. */
#pragma once

/* Makes such a file in the folder, which only this user may read and write. Where the file system
 * makes none without a name, it has one for an instant. Returns its descriptor, which the caller
 * closes, or -errno. Thread-safe. */
int unnamed_file(const char *folder);
