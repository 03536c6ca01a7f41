/* Reads the rows of locks, one or all of a table, and breaks a lock. Also writes a lock's handle as
 * a text, from which another process resumes the lock. */
#include "base/clock.h"
#include "base/text.h"
#include "lock/lock_client.h"
#include "store/item_pack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The text of a handle is these fields, each followed by a NUL, in URL-safe base64 without padding.
 */
enum handle_field { ID, SLOT, TOKEN, LEASE_MS, OWNER, KEY, SORT, FIELDS };
#define BYTES_MAX                                                                                  \
	(2 * LOCK_KEY_MAX +                                                                        \
		400) /* the most bytes of all fields; 400 are for those other than KEY and SORT */

/* Replaces each character of `s` that is in `from` by the one at the same place of `to`. */
static void replace_characters(char *s, const char *from, const char *to)
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
	/* Each %c writes the NUL after a field. */
	text_addf(&bytes, "%s%c%u%c%llu%c%llu%c%s%c%s%c%s%c", lock->id, 0, lock->slot, 0,
		(unsigned long long)lock->token, 0,
		(unsigned long long)(lease_length_ns(lock->lease) / NS_PER_MS), 0, lock->owner, 0,
		lock->key, 0, lock->sort, 0);
	int r = bytes.error;
	if (!r) {
		base64_encode((const unsigned char *)bytes.data, bytes.len, encoded);
		encoded[strcspn(encoded, "=")] = 0;
		replace_characters(encoded, "+/", "-_");
		if (size)
			snprintf(ret, size, "%s", encoded);
		r = strlen(encoded) < size ? 0 : -ENOSPC;
	}
	text_clear(&bytes);
	return r;
}

/* Decodes the text of a handle into fields, which point into `bytes`. Returns false if the text is
 * not a handle. */
static bool decode_handle(
	const char *handle, char bytes[static BYTES_MAX + 8], const char *ret_fields[static FIELDS])
{
	char encoded[4 * ((BYTES_MAX + 2) / 3) + 8];
	const size_t n = strlen(handle);
	if (!n || n > 4 * (size_t)BYTES_MAX / 3)
		return false;
	/* base64_decode() needs padding, which a handle omits: '=' up to a multiple of 4
	 * characters. */
	snprintf(encoded, sizeof encoded, "%s%.*s", handle, (int)(3 - (n + 3) % 4), "===");
	replace_characters(encoded, "-_", "+/");
	const int decoded = base64_decode(encoded, (unsigned char *)bytes);
	if (decoded <= 0)
		return false;
	const char *field = bytes, *end = bytes + decoded;
	for (int i = 0; i < FIELDS; i++) {
		const char *nul = memchr(field, 0, (size_t)(end - field));
		if (!nul)
			return false;
		ret_fields[i] = field;
		field = nul + 1;
	}
	const bool has_more = field != end;
	return !has_more && strlen(ret_fields[ID]) == ID_CHARS;
}

/* Reads a row. Returns -ENOENT if there is none. The caller clears *ret_item in any case. */
static int read_row(struct s3once_locks *locks, struct item_key key, uint64_t within_ns,
	struct item *ret_item, struct s3once_lock_error *ret)
{
	struct problem problem = {0};
	struct store_conn *conn;
	if (store_conn_new(locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	const struct call_limits limits = lock_limits(locks, clock_boot_ns() + within_ns);
	const enum outcome o =
		conn->store->ops->get(conn, key, READ_CONSISTENT, &limits, ret_item, &problem);
	store_conn_free(conn);
	if (o == OUTCOME_ABSENT)
		return lock_error(ret, -ENOENT, "there is no such lock");
	return o == OUTCOME_OK ? 0 : lock_request_failed(locks, ret, &problem);
}

/* Takes over the lock, if its row is held and its version was written by the acquisition that the
 * handle names. Returns 0; -ESTALE if the row is missing, is free or belongs to another
 * acquisition; or another -errno. Errors have a sentence. */
static int resume_row(struct s3once_lock *lock, struct s3once_lock_error *ret)
{
	struct s3once_locks *locks = lock->locks;
	struct item item = {0};
	int r = read_row(locks, lock->row_key.key, lease_length_ns(lock->lease), &item, ret);
	if (r && r != -ENOENT) {
		item_clear(&item);
		return r;
	}
	const struct lock_row row = dialect_read(locks->dialect, &item);
	const bool is_same = lock_version_is_of(row.version, lock->id);
	const char *place = locks->files.path          ? locks->files.path
			    : locks->is_s3             ? locks->s3_place
			    : locks->is_file_or_bucket ? "the locks of this user"
						       : locks->table_name;
	if (r == -ENOENT || item_is_empty(&item))
		r = lock_error(ret, -ESTALE,
			"the lock '%s' has no row in %s: it was released, or is in another place",
			quote(lock->key).text, quote(place).text);
	else if (row.state == ROW_FREE)
		r = lock_error(ret, -ESTALE, "the lock was released");
	else if (!is_same)
		r = lock_error_held(ret, -ESTALE, lock->key, &row);
	else if (row.state == ROW_UNREADABLE)
		r = lock_error(ret, -EINVAL, "its row is not of this dialect: %s", row.why);
	else
		r = lock_start(lock, &item, row.version, /* sent_ns */ 0, ret);
	item_clear(&item);
	return r;
}

int s3once_lock_resume(struct s3once_locks *locks, const char *handle,
	struct s3once_lock **ret_lock, struct s3once_lock_error *ret)
{
	char bytes[BYTES_MAX + 8];
	const char *fields[FIELDS];
	uint64_t slot, token, lease_ms;
	const bool is_handle = handle && decode_handle(handle, bytes, fields);
	/* lock_key_check() expects NULL for the sort key of a lock whose request had none. */
	const bool has_default_sort =
		is_handle && strcmp(fields[SORT], locks->dialect->sk_default) == 0;
	/* Handles never exceed these limits: a slot is at most 999, and a lease at most a day. */
	const bool has_numbers = is_handle && decimal_read(fields[SLOT], 999, &slot) &&
				 decimal_read(fields[TOKEN], UINT64_MAX, &token) &&
				 decimal_read(fields[LEASE_MS], LOCK_DAY_MS, &lease_ms) &&
				 lease_ms >= 1000;
	if (!has_numbers ||
		lock_key_check(locks, fields[KEY], has_default_sort ? NULL : fields[SORT], ret))
		return lock_error(ret, -EINVAL, "this is not the handle of a lock in this place");
	struct s3once_lock *lock = lock_new(
		locks, fields[KEY], fields[SORT], (unsigned)slot, fields[ID], lease_ms * NS_PER_MS);
	if (!lock)
		return lock_error(ret, -ENOMEM, "out of memory");
	snprintf(lock->owner, sizeof lock->owner, "%.200s", fields[OWNER]);
	lock->token = token;
	const int r = resume_row(lock, ret);
	if (r)
		s3once_lock_free(lock);
	else
		*ret_lock = lock;
	return r;
}

/* Calls the visitor with the content of a row and with the user's own attributes of it. The caller
 * has set the keys and unchanged_ms in `info`. */
static int show_row(const struct s3once_locks *locks, struct s3once_lock_info info,
	const struct item *item, s3once_lock_visitor *visitor, void *arg)
{
	const struct lock_row row = dialect_read(locks->dialect, item);
	struct s3once_lock_attribute extras[ITEM_ATTRIBUTES_MAX]; /* no item has more */
	info.owner = row.owner;
	info.version = row.version;
	info.held = row.state != ROW_FREE;
	info.understood = row.state != ROW_UNREADABLE;
	info.why = row.why;
	info.lease_ms = row.state == ROW_HELD ? row.lease_ms : 0;
	info.token = row.token;
	info.expires_s = row.expires_s;
	info.data = row.data ? row.data->value : NULL;
	info.data_bytes = row.data ? row.data->n : 0;
	info.attributes = extras;
	for (size_t i = 0; i < item->count && info.n_attributes < ITEM_ATTRIBUTES_MAX; i++) {
		const struct attribute *a = &item->attributes[i];
		if (a->type == VALUE_STRING && !lock_reserves_attribute(locks, a->name))
			extras[info.n_attributes++] =
				(struct s3once_lock_attribute){a->name, a->value};
	}
	return visitor(arg, &info);
}

/* Makes the key of a row. For dlm, the user gives the number of the slot as sort key. 0, or -errno
 * with a sentence: -EINVAL, or -ECANCELED if the client was closed. */
static int make_row_key(const struct s3once_locks *locks, const char *key, const char *sort,
	struct lock_key *ret_key, struct s3once_lock_error *ret)
{
	uint64_t slot = 0;
	if (atomic_load(&locks->closed))
		return lock_error(ret, -ECANCELED, "the client was closed");
	if (locks->dialect->sk_is_slot && sort) {
		if (strlen(sort) > 3 || !decimal_read(sort, 999, &slot))
			return lock_error(ret, -EINVAL,
				"'%s': the sort key of a dlm lock is its slot, 0 to 999",
				quote(sort).text);
		sort = NULL;
	}
	int r = lock_key_check(locks, key, sort, ret);
	if (!r)
		lock_key_of(locks, key, sort ? sort : locks->dialect->sk_default, (unsigned)slot,
			ret_key);
	return r;
}

/* The time limit of a request about the row of any lock: a lease, but at least 10 s. */
static uint64_t row_timeout_ns(const struct s3once_locks *locks)
{
	return locks->lease_ns > 10 * NS_PER_S ? locks->lease_ns : 10 * NS_PER_S;
}

int s3once_lock_get(struct s3once_locks *locks, const char *key, const char *sort_key,
	s3once_lock_visitor *visitor, void *arg, struct s3once_lock_error *ret)
{
	struct lock_key row_key = {0};
	struct item item = {0};
	int r = make_row_key(locks, key, sort_key, &row_key, ret);
	if (!r)
		r = read_row(locks, row_key.key, row_timeout_ns(locks), &item, ret);
	const uint64_t now_ns = clock_boot_ns(); /* taken after the reply */
	if (!r) {
		const struct lock_row row = dialect_read(locks->dialect, &item);
		struct s3once_lock_info info = {
			.key = key, .sort_key = sort_key ? sort_key : locks->dialect->sk_default};
		if (row.state == ROW_HELD)
			info.unchanged_ms =
				lock_observe(locks, row_key.key, row.version, now_ns) / NS_PER_MS;
		r = show_row(locks, info, &item, visitor, arg);
	}
	item_clear(&item);
	return r;
}

/* One s3once_lock_list() that is under way. */
struct listing {
	const struct s3once_locks *locks;
	const char *prefix;
	s3once_lock_visitor *visitor;
	void *arg;
	int r;
	char after[2 * LOCK_KEY_MAX + 40]; /* the sort key of the last row that was read */
};

/* Shows one row of the place, if it is a lock's and its key has the prefix.
 * Returns the result of the user's visitor: any value but 0 ends the listing. */
static int list_row(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct listing *listing = arg;
	char key[2 * LOCK_KEY_MAX + 40];
	const char *sort = sk ? sk : "";
	snprintf(key, sizeof key, "%s", pk);
	snprintf(listing->after, sizeof listing->after, "%s", sort);
	/* The rows of token counters are skipped; those of a file or bucket have another partition
	 * key and do not appear here. */
	if (listing->locks->is_file_or_bucket) {
		snprintf(key, sizeof key, "%s", sort);
		const char *separator = strstr(sort, LOCK_SORT_SEPARATOR);
		sort = separator ? separator + strlen(LOCK_SORT_SEPARATOR) : "";
		key[strcspn(key, LOCK_SORT_SEPARATOR)] = 0;
	} else if (strncmp(pk, LOCK_COUNTER_PREFIX, strlen(LOCK_COUNTER_PREFIX)) == 0) {
		return 0;
	}
	if (strncmp(key, listing->prefix, strlen(listing->prefix)) != 0)
		return 0;
	const struct s3once_lock_info keys = {.key = key, .sort_key = sort};
	listing->r = show_row(listing->locks, keys, item, listing->visitor, listing->arg);
	return listing->r;
}

/* Lists the rows of a file or a bucket whose keys begin with the prefix, page by page. The first
 * page begins at the prefix, and each other one after the last row of the page before, which
 * list_row() has noted in listing->after. */
static enum outcome list_pages(struct store_conn *conn, struct listing *listing,
	const struct call_limits *limits, struct problem *ret_problem)
{
	char from[sizeof listing->after], to[sizeof from + 4];
	struct store_range range = {.pk = "lock", .from = from, .to = to, .consistent = true};
	struct item_visitor rows = {list_row, listing};
	enum outcome o = OUTCOME_OK;
	snprintf(listing->after, sizeof listing->after, "%s", listing->prefix);
	/* No key that begins with the prefix comes after the prefix and U+10FFFF, which is no
	 * character. */
	snprintf(to, sizeof to, "%s\xf4\x8f\xbf\xbf", listing->after);
	for (bool more = true; more && o == OUTCOME_OK; range.after = true) {
		memcpy(from, listing->after, sizeof from);
		o = conn->store->ops->query(
			conn, &range, limits, visit_unpacked, &rows, &more, ret_problem);
	}
	return o;
}

int s3once_lock_list(struct s3once_locks *locks, const char *prefix, s3once_lock_visitor *visitor,
	void *arg, struct s3once_lock_error *ret)
{
	struct listing listing = {
		.locks = locks, .prefix = prefix ? prefix : "", .visitor = visitor, .arg = arg};
	struct item_visitor rows = {list_row, &listing};
	struct problem problem = {0};
	if (atomic_load(&locks->closed))
		return lock_error(ret, -ECANCELED, "the client was closed");
	struct store_conn *conn;
	if (store_conn_new(locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	const struct call_limits limits = lock_limits(locks, 0);
	const enum outcome o =
		locks->is_file_or_bucket
			? list_pages(conn, &listing, &limits, &problem)
			: conn->store->ops->scan(conn, &limits, visit_unpacked, &rows, &problem);
	store_conn_free(conn);
	if (listing.r) /* the user's visitor has ended the listing; then the outcome is LOCAL */
		return listing.r;
	return o == OUTCOME_OK ? 0 : lock_request_failed(locks, ret, &problem);
}

/* Returns 0 if the row is held, or cannot be understood, -ENOENT if it is free or absent, or
 * another -errno. */
static int check_held(struct s3once_locks *locks, const char *key, struct item_key row_key,
	struct s3once_lock_error *ret)
{
	struct item item = {0};
	int r = read_row(locks, row_key, row_timeout_ns(locks), &item, ret);
	if (r == -ENOENT || (!r && dialect_read(locks->dialect, &item).state == ROW_FREE))
		r = lock_error(
			ret, -ENOENT, "%s: nobody holds it: nothing was broken", quote(key).text);
	item_clear(&item);
	return r;
}

int s3once_lock_break(struct s3once_locks *locks, const char *key, const char *sort_key,
	const char *if_version, struct s3once_lock_error *ret)
{
	struct lock_key row_key = {0};
	struct item present = {0};
	struct problem problem = {0};
	if (!if_version)
		return lock_error(ret, -EINVAL, "a lock is broken by the version of its row");
	int r = make_row_key(locks, key, sort_key, &row_key, ret);
	/* A released row may still have the version, and would be released again. */
	if (!r)
		r = check_held(locks, key, row_key.key, ret);
	if (r)
		return r;
	struct store_conn *conn;
	if (store_conn_new(locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	/* The row is another owner's. So only the version that the caller has named is released,
	 * and there is no id of an acquisition of ours. */
	const struct lock_release_target target = {
		.locks = locks, .key = row_key.key, .version = if_version, .or_version = ""};
	const struct call_limits limits =
		lock_limits(locks, clock_boot_ns() + row_timeout_ns(locks));
	enum outcome o = lock_row_release(conn, &target, &limits, &present, &problem);
	store_conn_free(conn);
	const struct lock_row row = dialect_read(locks->dialect, &present);
	/* That its holder has released it meanwhile is just as good. */
	const bool is_free = o == OUTCOME_OK || (o == OUTCOME_REFUSED && row.state == ROW_FREE);
	if (is_free)
		r = 0;
	else if (o != OUTCOME_REFUSED)
		r = lock_request_failed(locks, ret, &problem);
	else if (*row.version)
		r = lock_error(ret, -EAGAIN, "the row has another version now: %s",
			quote(row.version).text);
	else
		r = lock_error(ret, -EAGAIN,
			"the row has no version by which its holder could be meant: if nobody "
			"holds it, delete it in the table");
	item_clear(&present);
	return r;
}
