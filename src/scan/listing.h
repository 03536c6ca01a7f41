/* The names in one directory, in key order. */
#pragma once
#include "scan/names.h"

/* Tags of the names; NAMES_DIRECTORY is one of them. */
#define LISTING_LINK  'l' /* a symlink; with follow: one that leads to no directory */
#define LISTING_OTHER 'f' /* a file, or what only stat tells */

/* Reads all names of the directory open for reading at fd (kept open, its position moves), "." and
 * ".." left out, each once, into an empty ret. With follow, a link that leads to a directory is a
 * directory. 0 or -errno, then ret is empty. */
int listing_read(int fd, bool follow, struct names *ret);
