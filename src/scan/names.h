/* A compact list of names: one block of bytes, and four bytes for each name. The memory of a scan
 * is mostly such lists. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. */
struct names {
	char *bytes; /* for each name: its tag, the name, a NUL */
	size_t len, cap;
	uint32_t *at; /* the offset of each name's tag in bytes */
	size_t n, at_cap;
};

#define NAMES_DIRECTORY 'd' /* the tag that makes a name sort as "name/" */

void names_clear(struct names *names);
/* Adds a name of len bytes, which need not end in a NUL. Returns 0, -ENOMEM, or -EOVERFLOW if there
 * are more than 4 GiB of names. */
int names_add(struct names *names, char tag, const char *name, size_t len);
/* Sorts the names by bytes, and drops repeated ones. A directory sorts as "name/", so that a walk
 * in this order yields whole paths in byte order. */
void names_sort(struct names *names);
/* Borrowed until the list changes; i < n. */
const char *names_get(const struct names *names, size_t i);
char names_tag(const struct names *names, size_t i);

/* Tags of names that names_read found, beside NAMES_DIRECTORY. */
#define NAMES_LINK  'l' /* a symlink; with follow: one that does not point to a directory */
#define NAMES_OTHER 'f' /* anything else: a file, a socket and so on */

/* Reads all names of the directory that is open for reading at fd into an empty ret, sorted and
 * each once, without "." and "..". fd stays open, and its position moves. With follow, a link to a
 * directory gets the tag of a directory. Returns 0, or -errno with an empty ret. */
int names_read(int fd, bool follow, struct names *ret);
/* Adds a name of len bytes with the tag that names_read() would give it. A name that does not exist
 * in the directory is skipped. Returns 0 or -errno. */
int names_add_found(struct names *names, int fd, bool follow, const char *name, size_t len);
