#include "base/checksum.h"
#include "base/clock.h"
#include "base/text.h"
#include "lock/lock_client.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S        (24 * 3600)
#define OLD_S        (30 * DAY_S) /* whoever looks once a week has still taken it over */
#define SWEPT        "swept"      /* the file whose time says when the folder was swept */
#define NAME_LETTERS "0123456789abcdef"

/* The name of an observation of whatever n strings name: half of the SHA-256 of the strings, each
 * with its NUL. */
static void name_of(const char *const *strings, size_t n, char ret[static ID_CHARS + 1])
{
	struct digest digest;
	struct sums sums;
	*ret = 0;
	if (digest_init(&digest, DIGEST_SHA256))
		return;
	for (size_t i = 0; i < n; i++)
		digest_update(&digest, strings[i], strlen(strings[i]) + 1);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	hex_encode(sums.sha256, ID_CHARS / 2, ret);
}

static void row_name(
	const struct s3once_locks *locks, struct item_key key, char ret[static ID_CHARS + 1])
{
	const char *place = locks->aws ? locks->aws->dynamodb_endpoint : locks->files.path;
	const char *const words[] = {
		locks->table_name, place ? place : "", key.pk, key.sk ? key.sk : ""};
	name_of(words, sizeof words / sizeof *words, ret);
}

/* Each row has a file of its own, so that a process never overwrites what another has seen of a
 * different row. */
static void file_of(const struct s3once_locks *locks, const char *row, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%s", locks->observations, row);
}

static void load_observation(const struct s3once_locks *locks, struct observation *seen)
{
	char path[4200];
	struct observer kept = {0};
	file_of(locks, seen->session, path, sizeof path);
	observer_load(&kept, path);
	if (kept.n && strcmp(kept.list[0].session, seen->session) == 0)
		*seen = kept.list[0];
}

static void save(const struct s3once_locks *locks, const struct observation *seen)
{
	char path[4200];
	struct observer kept = {.n = 1};
	file_of(locks, seen->session, path, sizeof path);
	kept.list[0] = *seen;
	observer_save(&kept, path);
}

uint64_t lock_observe(
	struct s3once_locks *locks, struct item_key key, const char *version, uint64_t now_ns)
{
	char row[ID_CHARS + 1], now[ID_CHARS + 1];
	row_name(locks, key, row);
	name_of(&version, 1, now);
	if (!*row || !*now)
		return 0;
	uv_mutex_lock(&locks->mutex);
	struct observation *seen = observer_of(&locks->locked.observer, row);
	if (!*seen->version && *locks->observations)
		load_observation(locks, seen);
	const bool is_new = strcmp(seen->version, now) != 0;
	const uint64_t unchanged_ns = observer_note(seen, now, now_ns);
	seen->asked_ns = now_ns;
	if (is_new && *locks->observations)
		save(locks, seen);
	uv_mutex_unlock(&locks->mutex);
	return unchanged_ns;
}

void lock_unobserve(struct s3once_locks *locks, struct item_key key)
{
	char row[ID_CHARS + 1], path[4200];
	row_name(locks, key, row);
	uv_mutex_lock(&locks->mutex);
	*observer_of(&locks->locked.observer, row)->version = 0;
	uv_mutex_unlock(&locks->mutex);
	if (*locks->observations && *row) {
		file_of(locks, row, path, sizeof path);
		unlink(path);
	}
}

/* The wall clock decides. If it is wrong, an observation that was of use is gone, and somebody
 * waits for a whole lease again. */
static void remove_if_old(int folder, const char *name, time_t now)
{
	struct stat st;
	const size_t n = strspn(name, NAME_LETTERS);
	/* "NAME.PID" is what a process was writing when it was killed. */
	if (n == ID_CHARS && (!name[n] || name[n] == '.') &&
		!fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		now - st.st_mtime > OLD_S)
		unlinkat(folder, name, 0);
}

void lock_observe_sweep(const struct s3once_locks *locks)
{
	struct stat st;
	const time_t now = (time_t)(clock_wall_ns() / (int64_t)NS_PER_S);
	DIR *folder = opendir(locks->observations);
	if (!folder)
		return;
	const int fd = dirfd(folder);
	const bool is_swept = !fstatat(fd, SWEPT, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime <= now &&
			      now - st.st_mtime < DAY_S;
	const int mark =
		is_swept ? -1
			 : openat(fd, SWEPT, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (mark >= 0 && !futimens(mark, NULL))
		for (const struct dirent *entry; (entry = readdir(folder));)
			remove_if_old(fd, entry->d_name, now);
	if (mark >= 0)
		close(mark);
	closedir(folder);
}
