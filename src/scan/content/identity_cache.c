#include "scan/content/identity_cache.h"
#include "base/clock.h"
#include "base/quote.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY_S           86400
#define BUSY_TIMEOUT_MS 10000
#define TOO_FRESH_NS    ((int64_t)(2 * NS_PER_S))

enum statement { FIND, SEEN, KEEP, STATEMENTS };

/* `seen` is the day of the last run that asked: one write a day and file, not one a run. */
static const char *const statements[STATEMENTS] = {
	[FIND] = "SELECT id, seen FROM identities WHERE file = ?1 AND size = ?2 AND mtime = ?3",
	[SEEN] = "UPDATE identities SET seen = ?2 WHERE file = ?1",
	[KEEP] = ("INSERT OR REPLACE INTO identities (file, size, mtime, id, seen) "
		  "VALUES (?1, ?2, ?3, ?4, ?5)"),
};

struct identity_cache {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	int64_t today;
};

static int set_up(struct identity_cache *cache)
{
	char forget[100];
	sqlite3_busy_timeout(cache->db, BUSY_TIMEOUT_MS);
	sqlite3_snprintf(sizeof forget, forget, "DELETE FROM identities WHERE seen < %lld",
		(long long)(cache->today - IDENTITY_CACHE_DAYS));
	int rc = sqlite3_exec(cache->db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
		"CREATE TABLE IF NOT EXISTS identities (file BLOB PRIMARY KEY, size INTEGER, "
		"mtime INTEGER, id TEXT, seen INTEGER) WITHOUT ROWID",
		NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(cache->db, forget, NULL, NULL, NULL);
	for (unsigned i = 0; rc == SQLITE_OK && i < STATEMENTS; i++)
		rc = sqlite3_prepare_v3(cache->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
			&cache->statements[i], NULL);
	return rc;
}

/* SQLite would make it with whatever the umask leaves. */
static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int identity_cache_open(
	const char *path, int64_t now_s, struct identity_cache **ret, struct problem *ret_problem)
{
	struct identity_cache *cache = calloc(1, sizeof *cache);
	int r = cache ? make_file(path) : -ENOMEM;
	if (r < 0) {
		problem_set(ret_problem, "%s cannot be opened: %s", quote(path).text, strerror(-r));
		free(cache);
		return r;
	}
	cache->today = now_s / DAY_S;
	int rc = sqlite3_open_v2(
		path, &cache->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = set_up(cache);
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
	for (unsigned i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(cache->statements[i]);
	sqlite3_close(cache->db);
	free(cache);
}

static sqlite3_stmt *bind_version(struct identity_cache *cache, enum statement statement,
	const struct identity_version *version)
{
	sqlite3_stmt *s = cache->statements[statement];
	sqlite3_bind_blob(s, 1, version->identity->bytes, (int)version->identity->n, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, (int64_t)version->size);
	sqlite3_bind_int64(s, 3, version->mtime_ns);
	return s;
}

static void note_seen(struct identity_cache *cache, const struct file_identity *identity)
{
	sqlite3_stmt *s = cache->statements[SEEN];
	sqlite3_bind_blob(s, 1, identity->bytes, (int)identity->n, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, cache->today);
	sqlite3_step(s);
	sqlite3_reset(s);
}

bool identity_cache_find(struct identity_cache *cache, const struct identity_version *version,
	char ret_id[static CONTENT_ID_CHARS + 1])
{
	sqlite3_stmt *s = bind_version(cache, FIND, version);
	bool found =
		sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == CONTENT_ID_CHARS;
	const bool is_stale = found && sqlite3_column_int64(s, 1) != cache->today;
	if (found)
		memcpy(ret_id, sqlite3_column_text(s, 0), CONTENT_ID_CHARS + 1);
	sqlite3_reset(s);
	if (is_stale)
		note_seen(cache, version->identity);
	return found;
}

void identity_cache_keep(
	struct identity_cache *cache, const struct identity_version *version, const char *id)
{
	sqlite3_stmt *s = bind_version(cache, KEEP, version);
	sqlite3_bind_text(s, 4, id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 5, cache->today);
	sqlite3_step(s);
	sqlite3_reset(s);
}

struct identity_file identity_file_of(
	struct identity_cache *cache, int fd, uint64_t size, int64_t mtime_ns)
{
	struct identity_file file = {.cache = cache, .size = size, .mtime_ns = mtime_ns};
	if (cache && file_identity_of(fd, &file.identity))
		file.cache = NULL;
	return file;
}

bool identity_file_find(const struct identity_file *file, char ret_id[static CONTENT_ID_CHARS + 1])
{
	const struct identity_version version = {&file->identity, file->size, file->mtime_ns};
	return file->cache && identity_cache_find(file->cache, &version, ret_id);
}

void identity_file_keep(const struct identity_file *file, const char *id)
{
	const struct identity_version version = {&file->identity, file->size, file->mtime_ns};
	if (file->cache && file->mtime_ns < clock_wall_ns() - TOO_FRESH_NS)
		identity_cache_keep(file->cache, &version, id);
}
