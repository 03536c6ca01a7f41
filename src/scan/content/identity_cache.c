/* The identity of an open file, which does not depend on its name, and a cache of content ids by
 * that identity. The scan asks the cache before it reads a file for its key. The cache only saves
 * reading: a database that cannot be written or has lost its rows is no error. */
#include "scan/content/identity_cache.h"
#include "base/clock.h"
#include "base/statements.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DAY_S           86400
#define BUSY_TIMEOUT_MS 10000
/* A file system may count modification times in steps of two seconds. */
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

int file_identity_of(int fd, struct file_identity *ret)
{
	static const __fsid_t none;
	struct statfs fs;
	union {
		struct file_handle handle;
		unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount;
	_Static_assert(
		sizeof fs.f_type + sizeof fs.f_fsid + sizeof u.handle.handle_type + MAX_HANDLE_SZ <=
			FILE_IDENTITY_BYTES_MAX,
		"an identity has room for every handle");
	if (fstatfs(fd, &fs) < 0)
		return -ENOTSUP;
	/* Without an id, two file systems cannot be distinguished. */
	const bool has_id = memcmp(&fs.f_fsid, &none, sizeof none) != 0;
	/* After the next mount, handles of FUSE may be those of other files. */
	const bool has_lasting_handles = fs.f_type != FUSE_SUPER_MAGIC;
	if (!has_id || !has_lasting_handles ||
		name_to_handle_at(fd, "", &u.handle, &mount, AT_EMPTY_PATH) < 0)
		return -ENOTSUP;
	unsigned char *end = mempcpy(ret->bytes, &fs.f_type, sizeof fs.f_type);
	end = mempcpy(end, &fs.f_fsid, sizeof fs.f_fsid);
	end = mempcpy(end, &u.handle.handle_type, sizeof u.handle.handle_type);
	end = mempcpy(end, u.handle.f_handle, u.handle.handle_bytes);
	ret->n = (size_t)(end - ret->bytes);
	return 0;
}

enum statement { FIND, SEEN, KEEP, EARLIER, STATEMENTS };

/* `seen` is the last day on which a run looked the file up. Days rather than times make a file cost
 * one write a day, not one in each run. */
static const char *const statements[STATEMENTS] = {
	[FIND] =
		"SELECT id, seen <> ?4 FROM identities WHERE file = ?1 AND size = ?2 AND mtime = ?3",
	[SEEN] = "UPDATE identities SET seen = ?4 WHERE file = ?1",
	[KEEP] = ("INSERT OR REPLACE INTO identities (file, size, mtime, seen, id) "
		  "VALUES (?1, ?2, ?3, ?4, ?5)"),
	[EARLIER] = "SELECT id, size FROM identities WHERE file = ?1 AND size < ?2",
};

struct identity_cache {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	int64_t today;
};

/* Makes the file with mode 0600 if it is missing. SQLite would use a mode that depends on the
 * umask. Returns 0 or -errno. */
static int make_private_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int identity_cache_open(
	const char *path, int64_t now_s, struct identity_cache **ret, struct problem *ret_problem)
{
	char script[400];
	struct identity_cache *cache = calloc(1, sizeof *cache);
	const int error = cache ? make_private_file(path) : -ENOMEM;
	if (error) {
		free(cache);
		return problem_error(ret_problem, error, "%s cannot be opened: %s",
			quote(path).text, strerror(-error));
	}
	cache->today = now_s / DAY_S;
	int rc = sqlite3_open_v2(
		path, &cache->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	sqlite3_snprintf(sizeof script, script,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
		"CREATE TABLE IF NOT EXISTS identities (file BLOB PRIMARY KEY, size INTEGER, "
		"mtime INTEGER, id TEXT, seen INTEGER) WITHOUT ROWID; "
		"DELETE FROM identities WHERE seen < %lld",
		(long long)(cache->today - IDENTITY_CACHE_DAYS));
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(cache->db, BUSY_TIMEOUT_MS);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(cache->db, script, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = statements_prepare(cache->db, statements, STATEMENTS, cache->statements);
	if (rc == SQLITE_OK) {
		*ret = cache;
		return 0;
	}
	problem_set(ret_problem, "%s cannot be used: %s; remove the file if it is damaged",
		quote(path).text, cache->db ? sqlite3_errmsg(cache->db) : sqlite3_errstr(rc));
	identity_cache_close(cache);
	return rc == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

void identity_cache_close(struct identity_cache *cache)
{
	if (!cache)
		return;
	statements_finalize(cache->statements, STATEMENTS);
	sqlite3_close(cache->db);
	free(cache);
}

/* Binds the parameters that all statements have, which are this version and today, and returns the
 * statement. */
static sqlite3_stmt *bind_file(const struct identity_file *file, enum statement statement)
{
	sqlite3_stmt *s = file->cache->statements[statement];
	sqlite3_bind_blob(s, 1, file->identity.bytes, (int)file->identity.n, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, (int64_t)file->size);
	sqlite3_bind_int64(s, 3, file->mtime_ns);
	sqlite3_bind_int64(s, 4, file->cache->today);
	return s;
}

bool identity_file_find(const struct identity_file *file, char ret_id[static CONTENT_ID_CHARS + 1])
{
	if (!file->cache)
		return false;
	sqlite3_stmt *s = bind_file(file, FIND);
	/* After an error of SQLite, the file counts as unknown, and is read. */
	const bool found =
		sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == CONTENT_ID_CHARS;
	const bool is_first_today = found && sqlite3_column_int(s, 1);
	if (found)
		memcpy(ret_id, sqlite3_column_text(s, 0), CONTENT_ID_CHARS + 1);
	sqlite3_reset(s);
	if (is_first_today) {
		s = bind_file(file, SEEN);
		sqlite3_step(s);
		sqlite3_reset(s);
	}
	return found;
}

bool identity_file_earlier(const struct identity_file *file, uint64_t *ret_size,
	char ret_id[static CONTENT_ID_CHARS + 1])
{
	if (!file->cache)
		return false;
	sqlite3_stmt *s = bind_file(file, EARLIER);
	const bool found =
		sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == CONTENT_ID_CHARS;
	if (found) {
		memcpy(ret_id, sqlite3_column_text(s, 0), CONTENT_ID_CHARS + 1);
		*ret_size = (uint64_t)sqlite3_column_int64(s, 1);
	}
	sqlite3_reset(s);
	return found;
}

void identity_file_keep(const struct identity_file *file, const char *id)
{
	const bool may_change_unseen = file->mtime_ns >= clock_wall_ns() - TOO_FRESH_NS;
	if (!file->cache || may_change_unseen)
		return;
	sqlite3_stmt *s = bind_file(file, KEEP);
	sqlite3_bind_text(s, 5, id, -1, SQLITE_STATIC);
	sqlite3_step(s);
	sqlite3_reset(s);
}
