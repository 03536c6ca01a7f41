/* Observations of the rows of other owners: since when this host has seen a row unchanged. They are
 * kept in files, so that the next process does not have to wait for a whole lease again. */
#include "base/checksum.h"
#include "base/clock.h"
#include "base/text.h"
#include "lock/lock_client.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S (24 * 3600)
/* The file of an observation that is older is removed. The time is long enough for a weekly job. */
#define OLD_S        (30 * DAY_S)
#define SWEPT        "swept" /* a file whose modification time is the time of the last sweep */
#define NAME_LETTERS "0123456789abcdef"
#define PATH_CHARS   4200 /* length of the path of an observation's file */

/* Makes a name of fixed length from n strings: half of the SHA-256 of the strings, each with its
 * NUL. It is "" if it cannot be computed. */
static void hash_strings(const char *const *strings, size_t n, char ret[static ID_CHARS + 1])
{
	struct text bytes = TEXT(SIZE_MAX);
	struct sums sums;
	for (size_t i = 0; i < n; i++)
		text_add_bytes(&bytes, strings[i], strlen(strings[i]) + 1);
	*ret = 0;
	if (!bytes.error && !digest_bytes(DIGEST_SHA256, bytes.data, bytes.len, &sums))
		hex_encode(sums.sha256, ID_CHARS / 2, ret);
	text_clear(&bytes);
}

/* Makes the name of a row in observations, and the path of its file. Each row has a file of its
 * own, so that a process never overwrites another process's observation of a different row. */
static void make_observation_name(const struct s3once_locks *locks, struct item_key key,
	char ret[static ID_CHARS + 1], char ret_path[static PATH_CHARS])
{
	/* Tables of the same name differ if their endpoints or their files do. */
	const char *place = locks->is_s3 ? locks->aws->s3_endpoint
			    : locks->aws ? locks->aws->dynamodb_endpoint
					 : locks->files.path;
	const char *const words[] = {locks->is_s3 ? locks->s3_place : locks->table_name,
		place ? place : "", key.pk, key.sk ? key.sk : ""};
	hash_strings(words, sizeof words / sizeof *words, ret);
	snprintf(ret_path, PATH_CHARS, "%s/%s", locks->observations, ret);
}

uint64_t lock_observe(
	struct s3once_locks *locks, struct item_key key, const char *version, uint64_t now_ns)
{
	char row[ID_CHARS + 1], version_hash[ID_CHARS + 1], path[PATH_CHARS];
	struct observer kept = {0}; /* the content of this row's file: one observation */
	make_observation_name(locks, key, row, path);
	hash_strings(&version, 1, version_hash); /* the version of another client may be too long */
	if (!*row || !*version_hash)
		return 0; /* no memory: the row counts as new, so it is not stale */
	uv_mutex_lock(&locks->mutex);
	struct observation *seen = observer_find_or_add(&locks->locked.observer, row);
	const bool is_first_look = !*seen->version; /* of this process */
	if (is_first_look && *locks->observations) {
		observer_load(&kept, path); /* an earlier process may have kept its observation */
		if (kept.n && strcmp(kept.list[0].row, row) == 0)
			*seen = kept.list[0];
	}
	const bool is_new = strcmp(seen->version, version_hash) != 0;
	const uint64_t unchanged_ns = observer_note(seen, version_hash, now_ns);
	seen->asked_ns = now_ns;
	if (is_new && *locks->observations) {
		kept.n = 1;
		kept.list[0] = *seen;
		if (observer_save(&kept, path))
			atomic_store(&locks->loses_observations, true);
	}
	uv_mutex_unlock(&locks->mutex);
	return unchanged_ns;
}

/* An observer removes no entry. One without a version counts as not seen, and a full observer uses
 * it for another row. */
void lock_observe_forget(struct s3once_locks *locks, struct item_key key)
{
	char row[ID_CHARS + 1], path[PATH_CHARS];
	make_observation_name(locks, key, row, path);
	uv_mutex_lock(&locks->mutex);
	*observer_find_or_add(&locks->locked.observer, row) = (struct observation){0};
	uv_mutex_unlock(&locks->mutex);
	if (*locks->observations && *row)
		unlink(path);
}

/* Whether a file in the folder of observations is one of ours: "NAME", or "NAME.XXXXXX", which is
 * the unfinished file of a process that was killed. */
static bool is_observation_name(const char *name)
{
	const size_t n = strspn(name, NAME_LETTERS);
	return n == ID_CHARS && (name[n] == '\0' || name[n] == '.');
}

/* Returns whether the folder was not swept today, and notes that it is swept now, as the time of
 * the file SWEPT. Also false if that cannot be noted: each process would sweep the folder. */
static bool begin_sweep(int folder_fd, time_t now)
{
	struct stat st;
	const bool was_swept = fstatat(folder_fd, SWEPT, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       st.st_mtime <= now && now - st.st_mtime < DAY_S;
	if (was_swept)
		return false;
	const int fd = openat(folder_fd, SWEPT, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	const bool is_noted = futimens(fd, NULL) == 0;
	close(fd);
	return is_noted;
}

void lock_observe_sweep(const struct s3once_locks *locks)
{
	struct stat st;
	const time_t now = (time_t)clock_wall_s();
	DIR *folder = opendir(locks->observations);
	if (!folder)
		return;
	const int fd = dirfd(folder);
	const bool may_sweep = begin_sweep(fd, now);
	const struct dirent *entry;
	/* The age of a file is by the wall clock. If the clock is wrong, an observation may be
	 * removed too early, and its next reader only waits for a whole lease again. */
	while (may_sweep && (entry = readdir(folder))) {
		const char *name = entry->d_name;
		if (!is_observation_name(name) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode) && now - st.st_mtime > OLD_S)
			unlinkat(fd, name, 0);
	}
	closedir(folder);
}
