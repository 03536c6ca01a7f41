/* Makes the key of a lock's row, renews the row and releases it, by conditional writes in the
 * dialect's attributes. lock.c and lock_acquire.c decide when. Nothing here waits. */
#include "base/clock.h"
#include "lock/lock_client.h"
#include <stdio.h>
#include <string.h>

void lock_key_of(const struct s3once_locks *locks, const char *key, const char *sort, unsigned slot,
	struct lock_key *ret)
{
	/* The number of the slot is the whole sort key if the dialect says so. Otherwise it is
	 * appended to the key as "#N", except for slot 0.
	 *
	 * In a file and in a bucket all locks have the partition key "lock", by which
	 * s3once_lock_list() finds them. The only dialect there is java, so sk_is_slot is false. */
	const bool sk_is_slot = locks->dialect->sk_is_slot;
	char number[16] = "";
	if (slot || sk_is_slot)
		snprintf(number, sizeof number, sk_is_slot ? "%u" : "#%u", slot);
	if (locks->is_file_or_bucket) {
		snprintf(ret->pk, sizeof ret->pk, "lock");
		snprintf(ret->sk, sizeof ret->sk, "%s%s%s%s", key, number,
			*sort ? LOCK_SORT_SEPARATOR : "", sort);
	} else {
		snprintf(ret->pk, sizeof ret->pk, "%s%s", key, sk_is_slot ? "" : number);
		snprintf(ret->sk, sizeof ret->sk, "%s", sk_is_slot ? number : sort);
	}
	ret->key = (struct item_key){.pk = ret->pk, .sk = locks->table.sk_name ? ret->sk : NULL};
}

bool lock_version_is_of(const char *version, const char *id)
{
	const size_t n = strlen(id);
	return strncmp(version, id, n) == 0 && (version[n] == '.' || !version[n]);
}

/* Whether an earlier try of ours has released the row that has refused the release now. A free row
 * shows this by a version of our acquisition. A missing row shows it as long as the lease lasts.
 * Later, another client may have acquired the lock and released it, so a missing row shows it only
 * if a request of this call may have been applied. */
static bool was_released_before(const struct lock_release_target *target,
	const struct call_limits *limits, const struct item *present)
{
	if (item_is_empty(present))
		return !target->is_late || *limits->maybe_applied;
	const struct lock_row row = dialect_read(target->locks->dialect, present);
	return row.state == ROW_FREE && target->id && lock_version_is_of(row.version, target->id);
}

/* Whether the row that has refused the release has target->or_version, which a heartbeat without an
 * answer has written. */
static bool has_other_version(const struct lock_release_target *target, const struct item *present)
{
	const struct lock_row row = dialect_read(target->locks->dialect, present);
	return *target->or_version && strcmp(row.version, target->or_version) == 0;
}

enum outcome lock_row_release(struct store_conn *conn, const struct lock_release_target *target,
	const struct call_limits *limits, struct item *ret_present, struct problem *ret_problem)
{
	const struct dialect *dialect = target->locks->dialect;
	const bool by_mark = target->locks->by_mark;
	struct condition as_seen = {
		dialect->version, CONDITION_EQUALS, VALUE_STRING, target->version};
	struct lock_changes changes = {0};
	if (by_mark)
		dialect_release_changes(dialect, &changes);
	const struct item_write write = {.removes = !by_mark,
		.changes = changes.list,
		.n_changes = changes.n,
		.conditions = &as_seen,
		.n_conditions = 1};
	enum outcome o = conn->store->ops->write(
		conn, target->key, &write, limits, ret_present, ret_problem);
	if (o == OUTCOME_REFUSED && !was_released_before(target, limits, ret_present) &&
		has_other_version(target, ret_present)) {
		as_seen.value = target->or_version;
		item_clear(ret_present);
		o = conn->store->ops->write(
			conn, target->key, &write, limits, ret_present, ret_problem);
	}
	if (o == OUTCOME_REFUSED && was_released_before(target, limits, ret_present))
		return OUTCOME_OK;
	return o;
}

/* lock_lease_ops: a heartbeat's write, and the judgement of a row that has refused one. */

static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const struct s3once_lock *lock = arg;
	const struct s3once_locks *locks = lock->locks;
	const struct lock_write write = {
		.version = try->next,
		.lease_ms = try->lease_ns / NS_PER_MS,
		.now_s = store_latest_time_s(locks->store),
	};
	struct lock_changes changes;
	dialect_hold_changes(locks->dialect, &write, &changes);
	for (size_t i = 0; i < try->n_changes; i++)
		lock_change(&changes, try->changes[i].name, try->changes[i].type,
			try->changes[i].value, try->changes[i].n);
	/* The row must have our version, and meet one more condition. In a dialect whose versions
	 * never change, a heartbeat that arrives late must not move `expires` back. One that is
	 * refused for this reason counts as successful (judge_refusing_row() in lease.c), since the
	 * row has a later `expires` already. In other dialects the row must not have been released;
	 * if the dialect has no attribute for that, there is no second condition. */
	const struct condition ours[] = {
		{locks->dialect->version, CONDITION_EQUALS, VALUE_STRING, try->version},
		locks->dialect->version_is_fixed
			? (struct condition){locks->dialect->expires, CONDITION_AT_MOST,
				  VALUE_NUMBER, changes.expires}
			: (struct condition){
				  locks->dialect->released, CONDITION_ABSENT, VALUE_STRING, NULL}};
	enum outcome o = conn->store->ops->write(conn, lock->row_key.key,
		&(struct item_write){.changes = changes.list,
			.n_changes = changes.n,
			.conditions = ours,
			.n_conditions = ours[1].name ? 2 : 1},
		try->limits, ret_row, ret_problem);
	if (o == OUTCOME_OK && own_files_check(&locks->files) < 0)
		o = OUTCOME_REFUSED; /* row_version() runs next, and names the file */
	return o;
}

static const char *own_row_version(void *arg, const struct item *item,
	char ret_why[static LEASE_TEXT_MAX], char ret_owner[static LEASE_TEXT_MAX])
{
	const struct s3once_lock *lock = arg;
	const struct lock_row row = dialect_read(lock->locks->dialect, item);
	const bool is_ours = lock_version_is_of(row.version, lock->id) && row.state != ROW_FREE;
	const bool has_expired = clock_boot_ns() >= lease_ends_ns(lock->lease);
	/* These reasons are used only if the lease is lost. The row of our acquisition is lost if
	 * it has a version that this process has not written. */
	const char *why;
	if (own_files_check(&lock->locks->files) < 0)
		why = LOCK_FILE_GONE;
	else if (item_is_empty(item))
		why = "its row was deleted";
	else if (row.state == ROW_FREE)
		why = "another released it";
	else if (is_ours)
		why = "another process goes on with this lock";
	else {
		why = has_expired
			      ? "another took it over: its row had not changed for a whole lease"
			      : "another holds it, although its lease had not ended: its row was "
				"deleted or overwritten";
		snprintf(ret_owner, LEASE_TEXT_MAX, "%s", row.owner);
	}
	snprintf(ret_why, LEASE_TEXT_MAX, "%s", why);
	return is_ours ? row.version : NULL;
}

const struct lease_ops lock_lease_ops = {
	.renew = renew, .row_version = own_row_version, .on_event = lock_events_add};
