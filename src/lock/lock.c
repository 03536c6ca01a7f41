/* The functions of a lock's handle: renewing the lock, asking about it, setting its data and
 * releasing it. Also reporting errors, and closing a client with all of its locks. lock_acquire.c
 * acquires locks. */
#include "base/clock.h"
#include "base/pool.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lock_error(struct s3once_lock_error *ret, int r, const char *format, ...)
{
	if (!ret)
		return r;
	va_list ap;
	*ret = (struct s3once_lock_error){0};
	va_start(ap, format);
	vsnprintf(ret->text, sizeof ret->text, format, ap);
	va_end(ap);
	return r;
}

/* Whether the keys of the table have other names or types than those of these locks. The first two
 * are DynamoDB's messages about the key of a request. */
static bool has_other_keys(const struct problem *problem)
{
	static const char *const messages[] = {
		"does not match the schema", "Type mismatch for key", DYNAMODB_HAS_OTHER_KEYS};
	bool is_found = false;
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		is_found |= strstr(problem->text, messages[i]) != NULL;
	return is_found;
}

/* The options by which `s3once lock init` makes a table with the keys of these locks. */
struct key_options {
	char text[800];
};
static struct key_options options_of_keys(const struct s3once_locks *locks)
{
	const struct dialect *dialect = locks->dialect;
	const char *usual_sk = dialect->sk_name ? dialect->sk_name : "";
	struct key_options ret;
	struct text t = TEXT(sizeof ret.text - 1);
	if (dialect != dialect_of(S3ONCE_LOCK_JAVA)) /* the default */
		text_addf(&t, " --dialect %s", dialect->name);
	if (strcmp(locks->pk_name, dialect->pk_name) != 0)
		text_addf(&t, " --key-name '%s'", quote(locks->pk_name).text);
	if (strcmp(locks->sk_name, usual_sk) != 0)
		text_addf(&t, " --sort-name '%s'", quote(locks->sk_name).text);
	snprintf(ret.text, sizeof ret.text, "%s", text_string(&t));
	text_clear(&t);
	return ret;
}

int lock_error_of(const struct s3once_locks *locks, struct s3once_lock_error *ret, int r,
	const struct problem *problem)
{
	const char *sort_type = locks->dialect->sk_is_slot ? " (N)" : " (S)";
	const bool has_sort = *locks->sk_name != '\0';
	if (has_other_keys(problem))
		lock_error(ret, r,
			"table %s has other keys: these locks need the partition key %s (S) and "
			"%s%s%s: give another table, or the dialect, key name and sort name that "
			"it has",
			quote(locks->table_name).text, quote(locks->pk_name).text,
			has_sort ? "the sort key " : "no sort key",
			has_sort ? quote(locks->sk_name).text : "", has_sort ? sort_type : "");
	else if (strcmp(problem->code, "ResourceNotFoundException") == 0)
		lock_error(ret, r,
			"the table %s does not exist: make it with `s3once lock init --locks "
			"dynamodb:%s%s`, or check its name and the region",
			quote(locks->table_name).text, quote(locks->table_name).text,
			options_of_keys(locks).text);
	else
		lock_error(ret, r, "%s", problem->text);
	if (ret) {
		snprintf(ret->code, sizeof ret->code, "%s", problem->code);
		snprintf(ret->request_id, sizeof ret->request_id, "%s", problem->request_id);
	}
	return r;
}

int lock_request_failed(const struct s3once_locks *locks, struct s3once_lock_error *ret,
	const struct problem *problem)
{
	return atomic_load(&locks->closed) ? lock_error(ret, -ECANCELED, "the client was closed")
					   : lock_error_of(locks, ret, -EIO, problem);
}

int lock_error_held(
	struct s3once_lock_error *ret, int r, const char *key, const struct lock_row *row)
{
	lock_error(ret, r, "%s: %sheld by %s%s%s", quote(key).text, r == -ESTALE ? "lost: " : "",
		*row->owner ? quote(row->owner).text : "someone who gives no name",
		row->state == ROW_UNREADABLE ? "; its row cannot be understood: " : "", row->why);
	if (ret)
		snprintf(ret->holder, sizeof ret->holder, "%s", row->owner);
	return r;
}

int lock_key_check(const struct s3once_locks *locks, const char *key, const char *sort,
	struct s3once_lock_error *ret)
{
	const bool has_sort = sort && *sort;
	if (!key || !*key || strlen(key) > LOCK_KEY_MAX)
		return lock_error(ret, -EINVAL, "a key has 1 to %d bytes", LOCK_KEY_MAX);
	if (has_sort && strlen(sort) > LOCK_KEY_MAX)
		return lock_error(ret, -EINVAL, "a sort key has at most %d bytes", LOCK_KEY_MAX);
	if (!utf8_valid(key, strlen(key)) || (has_sort && !utf8_valid(sort, strlen(sort))))
		return lock_error(ret, -EINVAL, "'%s': keys are UTF-8", quote(key).text);
	if (locks->is_file_or_bucket && strstr(key, LOCK_SORT_SEPARATOR))
		return lock_error(ret, -EINVAL, "'%s': no byte 1 in the keys of a file or bucket",
			quote(key).text);
	if (!locks->is_file_or_bucket &&
		strncmp(key, LOCK_COUNTER_PREFIX, strlen(LOCK_COUNTER_PREFIX)) == 0)
		return lock_error(ret, -EINVAL,
			"'%s': keys that begin with " LOCK_COUNTER_PREFIX
			" are those of token counters",
			quote(key).text);
	const bool takes_sort = locks->table.sk_name && !locks->dialect->sk_is_slot;
	if (has_sort && !takes_sort)
		return lock_error(ret, -EINVAL, "the rows of this table have no sort key of locks");
	/* In a table a sort key is never "". If it is not given (NULL), the dialect's default is
	 * taken. A lock elsewhere may have none. */
	const bool has_default = !sort && *locks->dialect->sk_default;
	if (takes_sort && !locks->is_file_or_bucket && !has_sort && !has_default)
		return lock_error(ret, -EINVAL, "a lock of this table needs a sort key");
	return 0;
}

static bool is_client_closed(void *locks)
{
	return atomic_load(&((struct s3once_locks *)locks)->closed);
}

struct call_limits lock_limits(struct s3once_locks *locks, uint64_t deadline_ns)
{
	return (struct call_limits){
		.deadline_ns = deadline_ns, .abandon = is_client_closed, .abandon_arg = locks};
}

#define RELEASE_MAX_NS (10 * NS_PER_S)       /* the time for s3once_lock_release() */
#define ENSURE_MAX_MS  (LOCK_DAY_MS / 8 * 7) /* with an eighth of it and 1 s more, below a day */

struct s3once_lock *lock_new(struct s3once_locks *locks, const char *key, const char *sort,
	unsigned slot, const char *id, uint64_t lease_ns)
{
	struct s3once_lock *lock = calloc(1, sizeof *lock);
	if (!lock)
		return NULL;
	lock->locks = locks;
	lock->slot = slot;
	lock->count = 1;
	snprintf(lock->id, sizeof lock->id, "%s", id);
	snprintf(lock->key, sizeof lock->key, "%s", key);
	snprintf(lock->sort, sizeof lock->sort, "%s", sort);
	snprintf(lock->owner, sizeof lock->owner, "%s", locks->owner);
	lock_key_of(locks, key, sort, slot, &lock->row_key);
	/* The heartbeat and suspect times of the options are for the usual lease. For a lease of
	 * another length they are the same parts of that length as the defaults in fill_times(). A
	 * client without heartbeats (0) has none for any length. */
	const bool is_usual = lease_ns == locks->lease_ns;
	const struct lease_options options = {
		.ops = &lock_lease_ops,
		.arg = lock,
		.id = lock->id,
		.version_is_fixed = locks->dialect->version_is_fixed,
		.lease_ns = lease_ns,
		.heartbeat_ns =
			is_usual || !locks->heartbeat_ns ? locks->heartbeat_ns : lease_ns / 4,
		.suspect_ns = is_usual ? locks->suspect_ns : lease_ns * 3 / 8,
	};
	if (lease_new(locks->keeper, &options, &lock->lease)) {
		free(lock);
		return NULL;
	}
	return lock;
}

void s3once_lock_free(struct s3once_lock *lock)
{
	if (!lock)
		return;
	struct s3once_lock **at = &lock->locks->locked.first;
	lease_stop(lock->lease);
	uv_mutex_lock(&lock->locks->mutex);
	while (*at && *at != lock)
		at = &(*at)->next;
	if (*at) /* otherwise lock_start() has not added it */
		*at = lock->next;
	uv_mutex_unlock(&lock->locks->mutex);
	lock_events_forget(&lock->locks->events, lock);
	lease_free(lock->lease);
	item_clear(&lock->row);
	free(lock);
}

int lock_start(struct s3once_lock *lock, struct item *item, const char *version, uint64_t sent_ns,
	struct s3once_lock_error *ret)
{
	struct s3once_locks *locks = lock->locks;
	item_clear(&lock->row);
	lock->row = *item;
	*item = (struct item){0};
	if (lease_start(lock->lease, version, sent_ns))
		return lock_error(ret, -ENOMEM, "no thread for the heartbeats");
	uv_mutex_lock(&locks->mutex);
	const bool is_closed = atomic_load(&locks->closed);
	if (!is_closed) {
		lock->next = locks->locked.first;
		locks->locked.first = lock;
	}
	uv_mutex_unlock(&locks->mutex);
	return is_closed ? lock_error(ret, -ECANCELED, "the client was closed") : 0;
}

int lock_data_check(const struct s3once_locks *locks, size_t bytes, struct s3once_lock_error *ret)
{
	if (!locks->dialect->data)
		return lock_error(ret, -EINVAL, "the rows of this dialect have no data");
	return bytes <= LOCK_DATA_MAX ? 0 : lock_error(ret, -EINVAL, "data has at most 256 KiB");
}

bool lock_reserves_attribute(const struct s3once_locks *locks, const char *name)
{
	const char *sk = locks->table.sk_name;
	return dialect_owns(locks->dialect, name) || strcmp(name, locks->pk_name) == 0 ||
	       (sk && strcmp(name, sk) == 0);
}

const char *s3once_lock_extra(const struct s3once_lock *lock, const char *name)
{
	return lock_reserves_attribute(lock->locks, name) ? NULL : item_string(&lock->row, name);
}

/* Reports why the lock was lost, and its new owner. Returns -ESTALE. */
static int report_loss(const struct s3once_lock *lock, struct s3once_lock_error *ret)
{
	lock_error(ret, -ESTALE, "the lock is lost: %s", lease_loss(lock->lease));
	if (ret)
		snprintf(ret->holder, sizeof ret->holder, "%s", lease_new_owner(lock->lease));
	return -ESTALE;
}

/* Reports the reason why a handle is no longer valid. Returns -ESTALE if the lock was released or
 * lost, so that another client may have it. Otherwise closing the client has stopped its
 * heartbeats: returns -ECANCELED. */
static int report_stale_handle(const struct s3once_lock *lock, struct s3once_lock_error *ret)
{
	if (atomic_load(&lock->release_begun))
		return lock_error(ret, -ESTALE, "the lock was released");
	if (!lease_is_lost(lock->lease))
		return lock_error(ret, -ECANCELED, "the client was closed");
	return report_loss(lock, ret);
}

/* Whether the lease of the lock has not ended. The end is not known (0) if the lock was resumed and
 * not renewed since. Such a lock counts as ours, since its row was ours when it was resumed. */
static bool counts_as_ours(const struct s3once_lock *lock)
{
	const uint64_t ends_ns = lease_ends_ns(lock->lease);
	return !ends_ns || clock_boot_ns() < ends_ns;
}

/* Sends the release of the row. Also OK if an earlier request has released it; then another owner
 * may have the row by now. REFUSED: the row is not ours, and *ret_present is the present one. */
static enum outcome send_release(struct s3once_lock *lock, struct store_conn *conn,
	uint64_t deadline_ns, struct item *ret_present, struct problem *ret_problem)
{
	bool maybe_applied = false;
	struct lock_release_target target = {
		.locks = lock->locks, .key = lock->row_key.key, .id = lock->id};
	target.version = lease_row_version(lock->lease, &target.or_version);
	const struct call_limits limits = {
		.deadline_ns = deadline_ns, .maybe_applied = &maybe_applied};
	const bool was_ours = counts_as_ours(lock); /* before the request is sent */
	target.is_late = !was_ours;
	const enum outcome o = lock_row_release(conn, &target, &limits, ret_present, ret_problem);
	if (was_ours && (maybe_applied || outcome_is_ambiguous(o)))
		atomic_store(&lock->maybe_released, true);
	/* Another owner may have the row because we released it by a request whose reply was lost.
	 */
	if (o == OUTCOME_REFUSED && atomic_load(&lock->maybe_released))
		return OUTCOME_OK;
	return o;
}

/* Releases the row if it is still ours, with the results of s3once_lock_release(). Sets
 * release_done unless it returns -EIO or -ENOMEM, after which the release may be tried again. */
static int release_row(
	struct s3once_lock *lock, uint64_t deadline_ns, struct s3once_lock_error *ret)
{
	struct item present = {0};
	struct problem problem = {0};
	atomic_store(&lock->release_begun, true);
	lease_stop(lock->lease);
	if (lease_is_lost(lock->lease)) {
		atomic_store(&lock->release_done, true);
		return report_loss(lock, ret);
	}
	struct store_conn *conn;
	if (store_conn_new(lock->locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	const enum outcome o = send_release(lock, conn, deadline_ns, &present, &problem);
	store_conn_free(conn);
	int r = 0;
	if (o == OUTCOME_REFUSED) {
		struct lock_row row = dialect_read(lock->locks->dialect, &present);
		r = lock_error(ret, -ESTALE, "the lock was lost: its row is %s%s%s",
			item_is_empty(&present) ? "gone" : "another's", *row.owner ? ", " : "",
			quote(row.owner).text);
		if (ret)
			snprintf(ret->holder, sizeof ret->holder, "%s", row.owner);
	} else if (o != OUTCOME_OK) {
		r = lock_error_of(lock->locks, ret, -EIO, &problem);
	} else if (own_files_check(&lock->locks->files) < 0) {
		r = lock_error(ret, -ESTALE, "the lock was lost: " LOCK_FILE_GONE);
	}
	const bool may_try_again = r == -EIO; /* -ENOMEM has returned above */
	atomic_store(&lock->release_done, !may_try_again);
	item_clear(&present);
	return r;
}

int s3once_lock_release(struct s3once_lock *lock, struct s3once_lock_error *ret)
{
	uv_mutex_lock(&lock->locks->mutex);
	/* A lock that was acquired several times (reentrant) is held until the last release. */
	const bool is_last = lock->count <= 1;
	if (is_last)
		atomic_store(&lock->release_begun, true); /* acquire_again() no longer finds it */
	else
		lock->count--;
	uv_mutex_unlock(&lock->locks->mutex);
	if (!is_last)
		return 0;
	if (atomic_load(&lock->release_done))
		return lock_error(ret, -ESTALE, "the lock was released, or lost, before");
	return release_row(lock, clock_boot_ns() + RELEASE_MAX_NS, ret);
}

uint64_t s3once_lock_remaining_ms(const struct s3once_lock *lock)
{
	const uint64_t now_ns = clock_boot_ns(), ends_ns = lease_ends_ns(lock->lease);
	if (lease_is_lost(lock->lease) || atomic_load(&lock->release_begun) || ends_ns <= now_ns)
		return 0;
	return (ends_ns - now_ns) / NS_PER_MS;
}

int s3once_lock_is_lost(const struct s3once_lock *lock)
{
	return lease_is_lost(lock->lease);
}

uint64_t s3once_lock_token(const struct s3once_lock *lock)
{
	return lock->token;
}

const char *s3once_lock_key(const struct s3once_lock *lock)
{
	return lock->key;
}

const char *s3once_lock_owner(const struct s3once_lock *lock)
{
	return lock->owner;
}

unsigned s3once_lock_slot(const struct s3once_lock *lock)
{
	return lock->slot;
}

const void *s3once_lock_data(const struct s3once_lock *lock, size_t *ret_bytes)
{
	const struct attribute *data = dialect_read(lock->locks->dialect, &lock->row).data;
	*ret_bytes = data ? data->n : 0;
	return data ? data->value : NULL;
}

/* Renews the lease now, with the changes in *more. 0, -ENOMEM, or as lock_request_failed() or
 * report_stale_handle(). */
static int renew_lock(
	struct s3once_lock *lock, const struct lease_more *more, struct s3once_lock_error *ret)
{
	struct problem problem = {0};
	struct s3once_locks *locks = lock->locks;
	if (atomic_load(&lock->release_begun) || lease_is_lost(lock->lease))
		return report_stale_handle(lock, ret);
	struct store_conn *conn;
	if (store_conn_new(locks->store, &conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	/* The lease counts from when the request is sent, however late the answer comes. So the
	 * limit is only there for the caller, who learns of a failure after half of a lease, while
	 * some of the lease may be left. */
	const uint64_t until_ns = clock_boot_ns() + lease_length_ns(lock->lease) / 2;
	enum outcome o = lease_renew(lock->lease, conn, more, until_ns, &problem);
	store_conn_free(conn);
	if (o == OUTCOME_OK)
		return 0;
	return o == OUTCOME_REFUSED ? report_stale_handle(lock, ret)
				    : lock_request_failed(locks, ret, &problem);
}

int s3once_lock_heartbeat(struct s3once_lock *lock, struct s3once_lock_error *ret)
{
	return renew_lock(lock, NULL, ret);
}

int s3once_lock_ensure(struct s3once_lock *lock, uint64_t ms, struct s3once_lock_error *ret)
{
	const uint64_t left_ms = s3once_lock_remaining_ms(lock);
	if (left_ms && left_ms >= ms) /* 0 left: the lock may be lost, so even 0 ms are too many */
		return 0;
	if (ms > ENSURE_MAX_MS)
		return lock_error(ret, -EINVAL, "at most 21h can be ensured");
	/* The renewal itself uses up time of the lease. So a tenth of the lease is allowed for it,
	 * or if the lease becomes longer, an eighth of `ms` and 1 s. renew_lock() may wait for
	 * longer than that. Then less than `ms` are left, which is an error. */
	const bool needs_longer = ms * NS_PER_MS > lease_length_ns(lock->lease) * 9 / 10;
	const struct lease_more more = {
		.lease_ns = needs_longer ? (ms + ms / 8 + 1000) * NS_PER_MS : 0};
	int r = renew_lock(lock, &more, ret);
	if (!r && s3once_lock_remaining_ms(lock) < ms)
		r = lock_error(ret, -EIO, "the service is too slow to ensure so much");
	return r;
}

int s3once_lock_set_data(
	struct s3once_lock *lock, const void *data, size_t bytes, struct s3once_lock_error *ret)
{
	/* If `data` is NULL, this change removes the attribute. */
	const struct change change = {lock->locks->dialect->data, VALUE_BYTES, data, bytes};
	const struct lease_more more = {.changes = &change, .n_changes = 1};
	int r = lock_data_check(lock->locks, data ? bytes : 0, ret);
	if (!r)
		r = renew_lock(lock, &more, ret);
	if (!r && item_apply(&lock->row, &change, 1))
		return lock_error(ret, -ENOMEM, "out of memory; the row has the data");
	return r;
}

#define CLOSE_THREADS  16             /* the most releases at once */
#define RELEASE_MIN_NS (NS_PER_S / 2) /* the least limit of one release in the first round */

/* A round of releases: all locks of a client that is being closed. Several releases run at once, so
 * that one that hangs does not delay the others for long. */
struct round {
	struct pool pool;              /* a pool whose items are locks */
	uint64_t deadline_ns, each_ns; /* each_ns is the most time for one release */
	/* Guarded by the mutex of the client. */
	int result;
	struct s3once_lock_error error;
};

/* Releases one lock, in a thread of the round. It is no error if the lock was lost before. */
static void release_one(struct round *round, struct s3once_lock *lock)
{
	struct s3once_lock_error error = {0};
	const uint64_t until_ns = clock_boot_ns() + round->each_ns;
	const int r = release_row(
		lock, until_ns < round->deadline_ns ? until_ns : round->deadline_ns, &error);
	if (!r || r == -ESTALE)
		return;
	uv_mutex_lock(&lock->locks->mutex);
	round->result = r;
	round->error = error;
	uv_mutex_unlock(&lock->locks->mutex);
}

/* A thread of the round, which releases lock after lock. */
static void release_all(void *arg)
{
	struct round *round = arg;
	for (struct s3once_lock *lock; (lock = pool_take(&round->pool));)
		release_one(round, lock);
}

/* Releases all locks whose release is not done, and returns the error of one that failed. */
static int run_round(struct s3once_lock *first, uint64_t deadline_ns, uint64_t each_ns,
	struct s3once_lock_error *ret)
{
	struct round round = {.deadline_ns = deadline_ns, .each_ns = each_ns};
	if (pool_init(&round.pool, &(struct pool_options){.max_threads = CLOSE_THREADS, .room = 1}))
		return lock_error(ret, -ENOMEM, "out of memory");
	for (struct s3once_lock *lock = first; lock; lock = lock->next) {
		if (atomic_load(&lock->release_done))
			continue;
		const bool is_fed = pool_feed(&round.pool, release_all, &round, lock);
		if (!is_fed) /* no thread could be started */
			release_one(&round, lock);
	}
	pool_end(&round.pool);
	if (round.result && ret)
		*ret = round.error;
	return round.result;
}

int s3once_locks_close(
	struct s3once_locks *locks, int keep, uint64_t timeout_ms, struct s3once_lock_error *ret)
{
	const uint64_t max_ns =
		timeout_ms < LOCK_DAY_MS ? timeout_ms * NS_PER_MS : LOCK_DAY_MS * NS_PER_MS;
	const uint64_t deadline_ns = clock_boot_ns() + max_ns;
	uv_mutex_lock(&locks->mutex);
	atomic_store(&locks->closed, true);
	uv_cond_broadcast(&locks->closing);
	struct s3once_lock *first = locks->locked.first;
	uv_mutex_unlock(&locks->mutex);
	/* The list is read without the mutex. A handle leaves it only when the user frees the
	 * handle, and the user does not do that during this call. */
	if (keep) {
		for (struct s3once_lock *lock = first; lock; lock = lock->next)
			lease_stop(lock->lease);
		return 0;
	}
	/* In the first round one release takes at most a sixteenth of the time. So a thread whose
	 * release hangs soon goes on to other locks, and time is left to retry. The sixteenth is
	 * unrelated to CLOSE_THREADS. */
	const uint64_t each_ns = max_ns / 16 > RELEASE_MIN_NS ? max_ns / 16 : RELEASE_MIN_NS;
	const int r = run_round(first, deadline_ns, each_ns, ret);
	if (!r || clock_boot_ns() >= deadline_ns)
		return r;
	/* Failed releases are retried once, with all of the time that is left. */
	return run_round(first, deadline_ns, max_ns, ret);
}
