/* The two halves of a path, around its last slash. */
#pragma once

/* What is behind the last slash, or all of it. It is part of the path. */
const char *path_name(const char *path);
/* The folder that the name is in, as "/" or "." where that is it. The caller frees it. NULL if
 * memory ran out. */
char *path_folder(const char *path);
