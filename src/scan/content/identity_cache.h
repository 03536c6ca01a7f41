/* What the content ids of files were when they were read: an SQLite file of this host, so that
 * neither a log is read again because it was renamed, nor any file by each run for {id} of --key.
 * It only saves reading: what is not in it is read.
 */
#pragma once
#include "base/problem.h"
#include "scan/content/content_id.h"
#include "scan/content/file_identity.h"
#include <stdint.h>

/* Entries that no run has asked for in this time are removed: their files are gone. */
#define IDENTITY_CACHE_DAYS 90

/* A version of a file. */
struct identity_version {
	const struct file_identity *identity;
	uint64_t size;
	int64_t mtime_ns;
};

/* For one thread at a time; other processes may use the same file. */
struct identity_cache;
/* Opens or makes the file (0600). now_s is the wall clock's time. 0, or -errno with a sentence. */
int identity_cache_open(
	const char *path, int64_t now_s, struct identity_cache **ret, struct problem *ret_problem);
void identity_cache_close(struct identity_cache *cache);
/* Whether the id of exactly this version is known. */
bool identity_cache_find(struct identity_cache *cache, const struct identity_version *version,
	char ret_id[static CONTENT_ID_CHARS + 1]);
/* Keeps it in place of what is known of the file. What cannot be kept is read again next time. */
void identity_cache_keep(
	struct identity_cache *cache, const struct identity_version *version, const char *id);

/* The version of an open file, of which an id may be known. */
struct identity_file {
	struct identity_cache *cache; /* NULL: nothing is known or kept */
	struct file_identity identity;
	uint64_t size;
	int64_t mtime_ns;
};
/* cache may be NULL. Where the file system has no lasting handles, nothing is known or kept. */
struct identity_file identity_file_of(
	struct identity_cache *cache, int fd, uint64_t size, int64_t mtime_ns);
bool identity_file_find(const struct identity_file *file, char ret_id[static CONTENT_ID_CHARS + 1]);
/* Keeps it, unless the file was modified a moment ago: it may be written to again within the
 * granularity of its modification time. */
void identity_file_keep(const struct identity_file *file, const char *id);
