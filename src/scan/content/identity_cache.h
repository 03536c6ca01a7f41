/* The identity of an open file, and a cache of content ids by identity, in an SQLite file of this
 * host. With it, a renamed log need not be read again, and runs with {id} in --key need not read
 * every file. The cache only saves reading: any other file is read. */
#pragma once
#include "base/problem.h"
#include "scan/content/content.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_IDENTITY_BYTES_MAX 160

/* The file system's id and the file's handle (name_to_handle_at): its inode and generation, so that
 * a reused inode is another file. Compared as bytes. */
struct file_identity {
	unsigned char bytes[FILE_IDENTITY_BYTES_MAX];
	size_t n;
};
/* Finds the identity of an open file. Returns 0, or -ENOTSUP if the file system has no id, or no
 * handles that stay valid when it is mounted again. */
int file_identity_of(int fd, struct file_identity *ret);

/* Entries that no run has looked up in this time are removed: their files are gone. */
#define IDENTITY_CACHE_DAYS 90

/* For one thread at a time; other processes may use the same file. */
struct identity_cache;
/* Opens the cache in this SQLite file, which is made with mode 0600 if it is missing. now_s is the
 * wall clock's time. Returns 0, or -errno with a sentence. */
int identity_cache_open(
	const char *path, int64_t now_s, struct identity_cache **ret, struct problem *ret_problem);
void identity_cache_close(struct identity_cache *cache);

/* A version of an open file. The cache knows at most one version of each identity, with the id of
 * its content. */
struct identity_file {
	struct identity_cache *cache; /* NULL: nothing is known or kept */
	struct file_identity identity;
	uint64_t size;
	int64_t mtime_ns;
};
/* Looks up the id of exactly this version. Returns whether it is known, and then sets ret_id. */
bool identity_file_find(const struct identity_file *file, char ret_id[static CONTENT_ID_CHARS + 1]);
/* Whether a shorter version of the file is known. If so, its size and the id of its content are
 * set.
 */
bool identity_file_earlier(const struct identity_file *file, uint64_t *ret_size,
	char ret_id[static CONTENT_ID_CHARS + 1]);
/* Keeps the id, in place of any earlier one of the file. The id is not kept if the file was
 * modified a moment ago: the file may be written to again without a change of its modification
 * time. A content whose id is not kept is read again next time. */
void identity_file_keep(const struct identity_file *file, const char *id);
