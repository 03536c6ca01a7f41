/* The row of a lock that is held: its key, its heartbeat and its release, each one conditional
 * write in the dialect's attributes. lock.c and lock_acquire.c decide; nothing here waits or tries
 * again. */
#include "base/clock.h"
#include "base/quote.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

void lock_key_of(const struct s3once_locks *locks, const char *key, const char *sort, unsigned slot,
	struct lock_key *ret)
{
	char number[16] = "";
	const bool slot_in_key = slot && !locks->dialect->sk_is_slot;
	if (slot_in_key)
		snprintf(number, sizeof number, "#%u", slot);
	if (locks->is_sqlite) {
		snprintf(ret->pk, sizeof ret->pk, "lock");
		snprintf(ret->sk, sizeof ret->sk, "%s%s%s%s", key, number, *sort ? "\x01" : "",
			sort);
	} else {
		snprintf(ret->pk, sizeof ret->pk, "%s%s", key, number);
		if (locks->dialect->sk_is_slot)
			snprintf(ret->sk, sizeof ret->sk, "%u", slot);
		else
			snprintf(ret->sk, sizeof ret->sk, "%s", sort);
	}
	const bool has_sk = locks->is_sqlite || locks->table.sk_name;
	ret->key = (struct item_key){ret->pk, has_sk ? ret->sk : NULL};
}

bool lock_version_is_of(const char *version, const char *id)
{
	const size_t n = strlen(id);
	return strncmp(version, id, n) == 0 && (version[n] == '.' || !version[n]);
}

static enum outcome give_version(struct store_conn *conn, const struct lock_giving *giving,
	const char *version, const struct call_limits *limits, struct item *ret_present,
	struct problem *ret_problem)
{
	const struct s3once_locks *locks = giving->locks;
	const struct condition as_seen = {
		locks->dialect->version, CONDITION_EQUALS, VALUE_STRING, version};
	struct lock_changes changes = {0};
	if (locks->by_mark)
		dialect_release(locks->dialect, &changes);
	return conn->store->ops->write(conn, giving->key,
		&(struct item_write){.removes = !locks->by_mark,
			.changes = changes.list,
			.n_changes = changes.n,
			.conditions = &as_seen,
			.n_conditions = 1},
		limits, ret_present, ret_problem);
}

enum outcome lock_row_give(struct store_conn *conn, const struct lock_giving *giving,
	const struct call_limits *limits, struct item *ret_present, struct problem *ret_problem)
{
	enum outcome o =
		give_version(conn, giving, giving->version, limits, ret_present, ret_problem);
	if (o != OUTCOME_REFUSED)
		return o;
	/* Gone, or free with our version: an earlier try of ours did it. */
	struct lock_row row = dialect_read(giving->locks->dialect, ret_present);
	if (item_is_empty(ret_present) || (row.state == ROW_FREE && giving->id &&
						  lock_version_is_of(row.version, giving->id)))
		return OUTCOME_OK;
	if (!*giving->or_version || strcmp(row.version, giving->or_version) != 0)
		return o;
	item_clear(ret_present);
	return give_version(conn, giving, giving->or_version, limits, ret_present, ret_problem);
}

/* The heartbeat of a handle. */

static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const struct s3once_lock *lock = arg;
	const struct s3once_locks *locks = lock->locks;
	const struct lock_write write = {
		.version = try->next,
		.lease_ms = try->lease_ns / NS_PER_MS,
		.now_s = store_time_s(locks->store),
	};
	struct lock_changes changes;
	dialect_renew(locks->dialect, &write, &changes);
	for (size_t i = 0; i < try->n_changes; i++)
		lock_change(&changes, try->changes[i].name, try->changes[i].type,
			try->changes[i].value, try->changes[i].n);
	/* Where the version stays, one that comes late must not bring the end nearer. */
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
	if (o == OUTCOME_OK && !own_files_are_there(&locks->files))
		o = OUTCOME_REFUSED;
	return o;
}

static const char *whose(void *arg, const struct item *item, char ret_why[static LEASE_TEXT_MAX],
	char ret_owner[static LEASE_TEXT_MAX])
{
	const struct s3once_lock *lock = arg;
	const struct lock_row row = dialect_read(lock->locks->dialect, item);
	const bool ours = lock_version_is_of(row.version, lock->id) && row.state != ROW_FREE;
	const char *why = "another took it over: its row had not changed for a whole lease";
	if (!own_files_are_there(&lock->locks->files))
		why = LOCK_FILE_GONE;
	else if (item_is_empty(item))
		why = "its row was deleted";
	else if (row.state == ROW_FREE)
		why = "another released it";
	else if (ours)
		why = "another process goes on with this lock";
	else
		snprintf(ret_owner, LEASE_TEXT_MAX, "%s", row.owner);
	snprintf(ret_why, LEASE_TEXT_MAX, "%s", why);
	return ours ? row.version : NULL;
}

const struct lease_ops lock_lease_ops = {.renew = renew, .whose = whose, .tell = lock_events_tell};
