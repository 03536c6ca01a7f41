/* Which file an open file is, and what the content ids of files were when they were read: an SQLite
 * file of this host, so that neither a log is read again because it was renamed, nor any file by
 * each run for {id} of --key. It only saves reading: what is not in it is read. */
#pragma once
#include "base/problem.h"
#include "scan/content/content.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_IDENTITY_BYTES_MAX 160

/* The file system's id and the file's handle (name_to_handle_at): its inode and generation, so that
 * an inode that is used again is another file. Compared as bytes. */
struct file_identity {
	unsigned char bytes[FILE_IDENTITY_BYTES_MAX];
	size_t n;
};
/* Of an open file. 0, or -ENOTSUP where the file system has no lasting handles or no id. */
int file_identity_of(int fd, struct file_identity *ret);

/* Entries that no run has asked for in this time are removed: their files are gone. */
#define IDENTITY_CACHE_DAYS 90

/* For one thread at a time; other processes may use the same file. */
struct identity_cache;
/* Opens or makes the file (0600). now_s is the wall clock's time. 0, or -errno with a sentence. */
int identity_cache_open(
	const char *path, int64_t now_s, struct identity_cache **ret, struct problem *ret_problem);
void identity_cache_close(struct identity_cache *cache);

/* The version of an open file, of which an id may be known. */
struct identity_file {
	struct identity_cache *cache; /* NULL: nothing is known or kept */
	struct file_identity identity;
	uint64_t size;
	int64_t mtime_ns;
};
/* Whether the id of exactly this version is known. */
bool identity_file_find(const struct identity_file *file, char ret_id[static CONTENT_ID_CHARS + 1]);
/* Keeps it in place of what is known of the file, unless the file was modified a moment ago: it may
 * be written to again within the granularity of its modification time. What cannot be kept is read
 * again next time. */
void identity_file_keep(const struct identity_file *file, const char *id);
