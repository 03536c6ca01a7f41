#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handle as text: these fields, each with its NUL, in base64 of URLs without padding. */
enum handle_field { ID, SLOT, TOKEN, LEASE_MS, OWNER, KEY, SORT, FIELDS };
#define BYTES_MAX (2 * LOCK_KEY_MAX + 400)

static void swap(char *s, const char *from, const char *to)
{
	for (; *s; s++) {
		const char *at = strchr(from, *s);
		if (at)
			*s = to[at - from];
	}
}

int s3once_lock_handle(const struct s3once_lock *lock, char *ret, size_t size)
{
	char encoded[4 * ((BYTES_MAX + 2) / 3) + 1];
	struct text bytes = TEXT(BYTES_MAX);
	text_addf(&bytes, "%s%c%u%c%llu%c%llu%c%s%c%s%c%s%c", lock->id, 0, lock->slot, 0,
		(unsigned long long)lock->token, 0,
		(unsigned long long)(lease_length_ns(lock->lease) / NS_PER_MS), 0, lock->owner, 0,
		lock->key, 0, lock->sort, 0);
	int r = bytes.error;
	if (!r) {
		base64_encode((const unsigned char *)bytes.data, bytes.len, encoded);
		encoded[strcspn(encoded, "=")] = 0;
		swap(encoded, "+/", "-_");
		if (size)
			snprintf(ret, size, "%s", encoded);
		r = strlen(encoded) < size ? 0 : -ENOSPC;
	}
	text_clear(&bytes);
	return r;
}

/* Splits what was decoded; the fields point into it. */
static bool split(char *bytes, size_t n, const char *ret_fields[static FIELDS])
{
	size_t at = 0;
	for (int i = 0; i < FIELDS; i++) {
		ret_fields[i] = bytes + at;
		at += strnlen(bytes + at, n - at) + 1;
		if (at > n)
			return false;
	}
	return at == n;
}

static bool read_decimal(const char *s, uint64_t most, uint64_t *ret)
{
	char *end;
	if (!*s || s[strspn(s, "0123456789")])
		return false;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	return !errno && *ret <= most;
}

static bool decode_bytes(
	const char *handle, char bytes[static BYTES_MAX + 8], const char *ret_fields[static FIELDS])
{
	char encoded[4 * ((BYTES_MAX + 2) / 3) + 8];
	const size_t n = strlen(handle);
	if (!n || n > 4 * (size_t)BYTES_MAX / 3)
		return false;
	snprintf(encoded, sizeof encoded, "%s%.*s", handle, (int)(3 - (n + 3) % 4), "===");
	swap(encoded, "-_", "+/");
	int decoded = base64_decode(encoded, (unsigned char *)bytes);
	return decoded > 0 && split(bytes, (size_t)decoded, ret_fields) &&
	       strlen(ret_fields[ID]) == ID_CHARS;
}

/* Looks whether the row is still what the handle says. */
static int find_version(struct s3once_lock *lock, char ret_version[static LEASE_VERSION_MAX],
	struct s3once_lock_error *ret)
{
	struct s3once_locks *locks = lock->locks;
	struct store_conn *conn = lock_conn_get(locks);
	struct lock_key key;
	struct item item = {0};
	struct problem problem = {0};
	if (!conn)
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	lock_key_of(locks, lock->key, lock->sort, lock->slot, &key);
	const struct call_limits limits =
		lock_limits(locks, clock_boot_ns() + lease_length_ns(lock->lease));
	enum outcome o = conn->store->ops->get(conn, key.key, true, &limits, &item, &problem);
	lock_conn_put(locks, conn);
	const struct lock_row row = dialect_read(locks->dialect, &item);
	int r = 0;
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		r = lock_failed(ret, -EIO, &problem);
	else if (row.state == ROW_HELD && lock_version_is_of(row.version, lock->id))
		snprintf(ret_version, LEASE_VERSION_MAX, "%s", row.version);
	else if (lock_version_is_of(row.version, lock->id) && row.state == ROW_UNREADABLE)
		r = lock_error(ret, -EINVAL, "its row is not of this dialect: %s", row.why);
	else if (item_is_empty(&item))
		r = lock_error(ret, -ESTALE,
			"the lock '%s' has no row in %s: it was released, or is kept in another "
			"place",
			quote(lock->key).text,
			quote(locks->files.path ? locks->files.path : locks->table_name).text);
	else if (row.state == ROW_FREE)
		r = lock_error(ret, -ESTALE, "the lock was released");
	else
		r = lock_held(ret, -ESTALE, &row);
	if (!r && lock_keep_row(lock, &item))
		r = lock_error(ret, -ENOMEM, "out of memory");
	item_clear(&item);
	return r;
}

int s3once_lock_resume(struct s3once_locks *locks, const char *handle,
	struct s3once_lock **ret_lock, struct s3once_lock_error *ret)
{
	char bytes[BYTES_MAX + 8], version[LEASE_VERSION_MAX];
	const char *fields[FIELDS];
	uint64_t slot, token, lease_ms;
	if (!decode_bytes(handle, bytes, fields) || !read_decimal(fields[SLOT], 999, &slot) ||
		!read_decimal(fields[TOKEN], UINT64_MAX, &token) ||
		!read_decimal(fields[LEASE_MS], 200000000, &lease_ms) || lease_ms < 1000 ||
		lock_key_check(locks, fields[KEY],
			locks->dialect->sk_default &&
					strcmp(fields[SORT], locks->dialect->sk_default) == 0
				? NULL
				: fields[SORT],
			ret))
		return lock_error(ret, -EINVAL, "this is not the handle of a lock in this place");
	struct s3once_lock *lock = lock_new(
		locks, fields[KEY], fields[SORT], (unsigned)slot, fields[ID], lease_ms * NS_PER_MS);
	if (!lock)
		return lock_error(ret, -ENOMEM, "out of memory");
	snprintf(lock->owner, sizeof lock->owner, "%.200s", fields[OWNER]);
	lock->token = token;
	int r = find_version(lock, version, ret);
	if (!r && lease_start(lock->lease, version, 0))
		r = lock_error(ret, -ENOMEM, "no thread for the heartbeats");
	if (!r)
		r = lock_link(lock, ret);
	if (r)
		s3once_lock_free(lock);
	else
		*ret_lock = lock;
	return r;
}
