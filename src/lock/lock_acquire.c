/* Acquires locks. The row of another owner is observed until it is stale or free, and then our own
 * row is written. Each write is conditional, in the dialect's attributes. */
#include "aws/progress_clock.h"
#include "aws/retry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/reserved.h"
#include "base/text.h"
#include "base/wait_until.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SLOTS_MAX    1000
#define FIRST_NAP_MS 25
#define YOUNG_NS     NS_PER_S       /* no lock is broken on purpose sooner than this */
#define PATIENCE_NS  (5 * NS_PER_S) /* a request may take this long even if the wait is over */
/* The times after which a wait is reported, for the holder and for the answer to a request. */
#define HELD_SAY_NS   NS_PER_S
#define ANSWER_SAY_NS (6 * NS_PER_S) /* more than PATIENCE_NS, after which there is an error */

/* One call of s3once_lock_acquire() that is under way. */
struct acquisition {
	struct s3once_locks *locks;
	const struct s3once_lock_request *request;
	const char *sort;
	uint64_t lease_ns, deadline_ns;
	struct store_conn *conn;
	struct progress_clock progress; /* knows the failures of the request that is under way */
	uint64_t sent_ns, give_up_ns;   /* when this request was sent, and its deadline */
	atomic_flag has_said_answer;    /* a wait for an answer was reported */
	bool has_said_held;             /* the holder was reported */
	/* The earliest time at which a row that was seen in this round is stale. 0: unknown. */
	uint64_t stale_ns;
	struct s3once_lock *lock; /* the lock that was acquired, or NULL */
	struct s3once_lock_error *error;
};

/* The next step for a row: waiting, writing ours over a free or absent one, or writing ours over a
 * stale one. */
enum next { NEXT_BUSY, NEXT_TAKE_FREE, NEXT_TAKE_OVER };

/* Decides the next step for a row that was read, or that has refused our write. Notes the version
 * of a row that is held, and when the row will be stale. */
static enum next judge_lock_row(struct acquisition *a, struct item_key key, const struct item *item,
	struct lock_row *ret_row)
{
	struct s3once_locks *locks = a->locks;
	/* now_ns is taken after the reply. A new version counts from when it was seen, never from
	 * before that. */
	const uint64_t now_ns = clock_boot_ns();
	*ret_row = dialect_read(locks->dialect, item);
	if (item_is_empty(item) || ret_row->state == ROW_FREE)
		return NEXT_TAKE_FREE;
	if (ret_row->state == ROW_UNREADABLE)
		return NEXT_BUSY;
	if (locks->dialect->by_wall_clock)
		return ret_row->expires_s <= store_time_s(locks->store) ? NEXT_TAKE_OVER
									: NEXT_BUSY;
	const uint64_t unchanged_ns = lock_observe(locks, key, ret_row->version, now_ns);
	const uint64_t lease_ns = ret_row->lease_ms * NS_PER_MS;
	if (unchanged_ns >= lease_ns)
		return NEXT_TAKE_OVER;
	const uint64_t stale_ns = now_ns + lease_ns - unchanged_ns;
	if (!a->stale_ns || stale_ns < a->stale_ns)
		a->stale_ns = stale_ns;
	return NEXT_BUSY;
}

/* Warns of a request that has waited for ANSWER_SAY_NS, once for the acquisition, with the failure
 * that it retries. Any thread may call it. */
static void say_answer_is_late(struct acquisition *a)
{
	struct problem why;
	const bool is_late = clock_boot_ns() - a->sent_ns >= ANSWER_SAY_NS;
	if (!is_late || !atomic_load(&a->progress.waiting))
		return;
	if (atomic_flag_test_and_set(&a->has_said_answer)) /* it was reported before */
		return;
	progress_still_ns(&a->progress, &why); /* only its description of the wait is used */
	log_warning("lock %s: %s; trying again for up to %llu s", quote(a->request->key).text,
		why.text, (unsigned long long)((a->give_up_ns - a->sent_ns) / NS_PER_S));
}

/* Implements call_limits.abandon: whether the client was closed. It is polled during each request,
 * so a late answer is also noticed here. Several threads call it during the trial of a bucket. */
static bool poll_is_closed(void *arg)
{
	struct acquisition *a = arg;
	say_answer_is_late(a);
	return atomic_load(&a->locks->closed);
}

/* Notes that a request is sent at sent_ns, for say_answer_is_late(), and returns its limits. A
 * failing request is retried until the caller's wait is over, or for PATIENCE_NS if that is longer,
 * but never for longer than the lease. */
static struct call_limits begin_request(struct acquisition *a, uint64_t sent_ns)
{
	const uint64_t wait_ns =
		sent_ns + PATIENCE_NS > a->deadline_ns ? sent_ns + PATIENCE_NS : a->deadline_ns;
	const uint64_t end_ns = sent_ns + a->lease_ns;
	a->sent_ns = sent_ns;
	a->give_up_ns = wait_ns < end_ns ? wait_ns : end_ns;
	return (struct call_limits){.deadline_ns = a->give_up_ns,
		.abandon = poll_is_closed,
		.abandon_arg = a,
		.attempts = UINT_MAX,
		.progress = &a->progress};
}

/* Adds 1 to the token counter beside the lock, and sets *ret_token to the new count. */
static enum outcome draw_token(struct store_conn *conn, const struct s3once_lock *lock,
	const struct call_limits *limits, uint64_t *ret_token, struct problem *ret_problem)
{
	const struct item_write counting = {
		.or_absent = true, .increments = DIALECT_TOKEN, .returns_item = true};
	const struct s3once_locks *locks = lock->locks;
	char counter[LOCK_KEY_MAX + 20];
	struct lock_key key;
	struct item item = {0};
	int64_t token = 0;
	snprintf(counter, sizeof counter, LOCK_COUNTER_PREFIX "%s", lock->key);
	lock_key_of(locks, locks->is_file_or_bucket ? lock->key : counter, lock->sort, 0, &key);
	if (locks->is_file_or_bucket)
		snprintf(key.pk, sizeof key.pk, "lock-token");
	/* If a reply is lost, the request is sent again and may count twice. A token is skipped
	 * then, but no token is given out twice. */
	enum outcome o =
		conn->store->ops->write(conn, key.key, &counting, limits, &item, ret_problem);
	if (o == OUTCOME_OK && (item_number(&item, DIALECT_TOKEN, &token) || token <= 0))
		o = outcome_error(
			ret_problem, OUTCOME_SETUP, "the token counter beside the lock is damaged");
	if (o == OUTCOME_OK)
		*ret_token = (uint64_t)token;
	item_clear(&item);
	return o;
}

/* Reads the row of a lock whose token was drawn late. OK if it is still ours. REFUSED if it is not,
 * and *ret is the present row, or empty. */
static enum outcome confirm_row(struct acquisition *a, const struct s3once_lock *lock,
	const char *version, struct item *ret, struct problem *ret_problem)
{
	const struct call_limits limits = begin_request(a, clock_boot_ns());
	item_clear(ret);
	const enum outcome o = a->conn->store->ops->get(
		a->conn, lock->row_key.key, READ_CONSISTENT, &limits, ret, ret_problem);
	const struct lock_row row = dialect_read(a->locks->dialect, ret);
	const bool is_ours = row.state != ROW_FREE && strcmp(row.version, version) == 0;
	return o == OUTCOME_ABSENT || (o == OUTCOME_OK && !is_ours) ? OUTCOME_REFUSED : o;
}

/* Completes a lock whose row we have just written: sets its fencing token, hands it the row's item,
 * and starts its heartbeats. 0, or -errno with a sentence; then take_row() releases the row.
 * -EBUSY: the row is not ours any more, and *item is the present one.
 *
 * While the token is drawn, the lock may be broken, and its next holder may draw a lesser token. So
 * the row is read once more, unless the lock is so young that nobody can have meant to break it. */
static int complete_lock(struct acquisition *a, struct s3once_lock *lock, const char *version,
	uint64_t sent_ns, struct item *item)
{
	const struct call_limits limits = begin_request(a, sent_ns);
	const struct lock_row row = dialect_read(a->locks->dialect, item);
	struct problem problem = {0};
	enum outcome o = OUTCOME_OK;
	lock->token = row.token;
	if (lock->tokens == S3ONCE_LOCK_TOKENS_COUNTER) {
		o = draw_token(a->conn, lock, &limits, &lock->token, &problem);
		if (o == OUTCOME_OK && clock_boot_ns() - sent_ns >= YOUNG_NS)
			o = confirm_row(a, lock, version, item, &problem);
	} else if (lock->tokens == S3ONCE_LOCK_TOKENS_NONE) {
		lock->token = 0;
	}
	if (o == OUTCOME_REFUSED)
		return -EBUSY;
	if (o != OUTCOME_OK)
		return lock_request_failed(a->locks, a->error, &problem);
	if (clock_boot_ns() >= sent_ns + a->lease_ns)
		return lock_error(a->error, -EIO, "acquiring took longer than the lease");
	return lock_start(lock, item, version, sent_ns, a->error);
}

/* Writes the row of the slot as held by us, with this version. If `seen` is not NULL, the row that
 * is there must still have the version `seen`. If it is NULL, the row must be absent or free.
 *
 * OK: the row is ours, and *ret is that row. REFUSED: it is not ours, and *ret is the present row,
 * or empty. */
static enum outcome write_held_row(const struct acquisition *a, const struct s3once_lock *lock,
	const char *version, const char *seen, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	const struct s3once_locks *locks = a->locks;
	const struct dialect *dialect = locks->dialect;
	const struct s3once_lock_request *request = a->request;
	const struct lock_write row = {
		.owner = lock->owner,
		.version = version,
		.lease_ms = lease_length_ns(lock->lease) / NS_PER_MS,
		.now_s = store_latest_time_s(locks->store),
		.data = request->data,
		.data_bytes = request->data_bytes,
	};
	struct lock_changes changes;
	char now[24];
	snprintf(now, sizeof now, "%lld", (long long)store_time_s(locks->store));
	dialect_hold_changes(dialect, &row, &changes);
	for (size_t i = 0; i < request->n_attributes; i++)
		lock_change(&changes, request->attributes[i].name, VALUE_STRING,
			request->attributes[i].value, 0);
	lock_change(&changes, dialect->released, VALUE_STRING, NULL, 0); /* NULL removes it */
	/* In a dialect that decides by the wall clock, versions never change, and the holder may
	 * have postponed `expires` since the row was read. So the write also requires that
	 * `expires` has passed.
	 *
	 * In a dialect without `released` a row is free only if it is absent. Then the write has no
	 * condition: with or_absent, that means that the row must be absent. */
	const struct condition if_seen[] = {
		{dialect->version, CONDITION_EQUALS, VALUE_STRING, seen},
		{dialect->expires, CONDITION_AT_MOST, VALUE_NUMBER, now}};
	const size_t n_if_seen = dialect->by_wall_clock ? 2 : 1;
	const struct condition if_free = {dialect->released, CONDITION_EQUALS, VALUE_STRING, "1"};
	const size_t n_if_free = dialect->released ? 1 : 0;
	const struct item_write write = {
		.changes = changes.list,
		.n_changes = changes.n,
		.conditions = seen ? if_seen : &if_free,
		.n_conditions = seen ? n_if_seen : n_if_free,
		.or_absent = !seen,
		.increments = lock->tokens == S3ONCE_LOCK_TOKENS_ROW ? DIALECT_TOKEN : NULL,
		.returns_item = true,
	};
	enum outcome o = a->conn->store->ops->write(
		a->conn, lock->row_key.key, &write, limits, ret, ret_problem);
	/* The row that has refused the write may be our own, written by a try whose reply was lost.
	 */
	const char *present = item_string(ret, dialect->version);
	if (o == OUTCOME_REFUSED && present && strcmp(present, version) == 0)
		o = OUTCOME_OK;
	const int r = o == OUTCOME_OK ? own_files_check(&locks->files) : 0;
	if (r < 0)
		o = outcome_error(ret_problem, OUTCOME_SETUP, "%s: %s: run again",
			quote(locks->files.path).text,
			r == -ESTALE ? "was removed or replaced meanwhile" : strerror(-r));
	return o;
}

/* Releases a row with this version that may be ours, so that no client has to wait until its lease
 * expires. If that fails, the lease expires by itself, so the caller waits only briefly. */
static void undo_write(
	const struct acquisition *a, const struct s3once_lock *lock, const char *version)
{
	struct item present = {0};
	struct problem ignored;
	const struct lock_release_target target = {.locks = a->locks,
		.key = lock->row_key.key,
		.version = version,
		.or_version = "",
		.id = lock->id};
	const struct call_limits soon = {
		.deadline_ns = clock_boot_ns() + 2 * NS_PER_S, .attempts = 2};
	lock_row_release(a->conn, &target, &soon, &present, &ignored);
	item_clear(&present);
}

/* Tries to acquire a slot by one write. If `seen` is not NULL, the row must still have that
 * version. If it is NULL, the row must be absent or free. Returns 0 if the row is ours, and sets
 * a->lock. Returns -EBUSY if the write was refused, and *ret_item is then the present row, or
 * empty. Returns another -errno, with a sentence, if the slot could not be acquired for any other
 * reason. */
static int take_row(struct acquisition *a, unsigned slot, const char *seen, struct item *ret_item)
{
	char id[ID_CHARS + 1], version[LEASE_VERSION_MAX];
	struct problem problem = {0};
	random_id(id);
	struct s3once_lock *lock =
		lock_new(a->locks, a->request->key, a->sort, slot, id, a->lease_ns);
	if (!lock)
		return lock_error(a->error, -ENOMEM, "out of memory");
	/* With several slots the token comes from the counter beside the lock, since a token in the
	 * row would count each slot separately. */
	lock->tokens = a->locks->tokens == S3ONCE_LOCK_TOKENS_ROW && a->request->slots > 1
			       ? S3ONCE_LOCK_TOKENS_COUNTER
			       : a->locks->tokens;
	lease_version(lock->lease, version);
	const uint64_t sent_ns = clock_boot_ns();
	const struct call_limits limits = begin_request(a, sent_ns);
	item_clear(ret_item);
	enum outcome o = write_held_row(a, lock, version, seen, &limits, ret_item, &problem);
	int r;
	if (o == OUTCOME_OK)
		r = complete_lock(a, lock, version, sent_ns, ret_item); /* takes over the item */
	else
		r = o == OUTCOME_REFUSED ? -EBUSY
					 : lock_request_failed(a->locks, a->error, &problem);
	if (!r) {
		a->lock = lock;
		return 0;
	}
	lease_stop(lock->lease);
	const bool may_be_ours = o == OUTCOME_OK || outcome_is_ambiguous(o);
	if (may_be_ours)
		undo_write(a, lock, version);
	s3once_lock_free(lock);
	return r;
}

/* Reports that another owner holds the row. If this wait is too short to find out whether the owner
 * is dead, and the next one would have to begin anew, says so. Returns -EBUSY. */
static int fail_busy(struct acquisition *a, const struct lock_row *row)
{
	const bool needs_observation = row->state == ROW_HELD && !a->locks->dialect->by_wall_clock;
	const bool is_short = a->request->wait_ms <= row->lease_ms;
	const bool begins_anew = atomic_load(&a->locks->loses_observations);
	lock_error_held(a->error, -EBUSY, a->request->key, row);
	if (!needs_observation || !is_short || !begins_anew)
		return -EBUSY;
	const size_t n = strlen(a->error->text);
	snprintf(a->error->text + n, sizeof a->error->text - n,
		"; whether it is alive cannot be remembered until the next try, since the state "
		"folder cannot be written (HOME, XDG_STATE_HOME): only a wait of more than "
		"%llu s notices a dead holder",
		(unsigned long long)(row->lease_ms / 1000));
	return -EBUSY;
}

/* The first request for a slot: a read of its row, or a write as if the row were free. */
enum first { FIRST_READ, FIRST_WRITE };

/* Tries to acquire one slot. If its row may be taken, writes ours. The row that has refused the
 * write is judged in turn, and if it may be taken now, ours is written again, three times at most.
 * After that the slot counts as held, until the next round. Returns 0 with a->lock, -EBUSY if
 * another owner holds the row, or another -errno. */
static int try_slot(struct acquisition *a, unsigned slot, enum first first)
{
	struct lock_key key;
	struct item item = {0};
	/* The content of `item`, once judge_lock_row() has read it. */
	struct lock_row row = {.owner = "", .version = "", .why = ""};
	struct problem problem = {0};
	enum next next = NEXT_TAKE_FREE;
	int r = -EBUSY; /* until the row is ours, or a request has failed */
	lock_key_of(a->locks, a->request->key, a->sort, slot, &key);
	if (first == FIRST_READ) {
		const struct call_limits limits = begin_request(a, clock_boot_ns());
		enum outcome o = a->conn->store->ops->get(
			a->conn, key.key, READ_CONSISTENT, &limits, &item, &problem);
		if (o == OUTCOME_OK || o == OUTCOME_ABSENT)
			next = judge_lock_row(a, key.key, &item, &row);
		else
			r = lock_request_failed(a->locks, a->error, &problem);
	}
	for (int tries = 0; tries < 3 && r == -EBUSY && next != NEXT_BUSY; tries++) {
		char seen[1024]; /* a copy, since take_row() replaces the item */
		snprintf(seen, sizeof seen, "%s", row.version);
		r = take_row(a, slot, next == NEXT_TAKE_OVER ? seen : NULL, &item);
		if (r == -EBUSY)
			next = judge_lock_row(a, key.key, &item, &row);
	}
	if (r == -EBUSY)
		fail_busy(a, &row);
	else if (!r)
		lock_observe_forget(a->locks, key.key);
	item_clear(&item);
	return r;
}

/* One round: tries the slots, beginning with a random one, until one is acquired. Returns as
 * try_slot(). */
static int try_all(struct acquisition *a, enum first first)
{
	const unsigned n = a->request->slots ? a->request->slots : 1;
	const unsigned begin = (unsigned)random_below(n);
	int r = -EBUSY;
	a->stale_ns = 0;
	for (unsigned i = 0; i < n && r == -EBUSY; i++)
		r = try_slot(a, (begin + i) % n, first);
	return r;
}

/* Returns a random pause before the next round, which grows with each round, so that the clients
 * that wait for one lock do not all try at the same time. */
static uint64_t random_pause_ns(unsigned round, uint64_t poll_ms)
{
	/* The longest pause doubles with each round up to poll_ms. From round 10 on it is poll_ms,
	 * since a shift by many rounds would overflow. */
	uint64_t max_ms = round < 10 ? (uint64_t)FIRST_NAP_MS << round : poll_ms;
	if (max_ms > poll_ms)
		max_ms = poll_ms;
	/* From a quarter of the longest pause to all of it, and 1 ms more, so that there always is
	 * a pause. */
	return (max_ms / 4 + random_below(max_ms * 3 / 4 + 1)) * NS_PER_MS + NS_PER_MS;
}

/* Waits before the next round, no longer than until the deadline, or until just after a row has
 * become stale. Returns 0, or -ECANCELED if the client was closed. */
static int wait_for_round(struct acquisition *a, unsigned round)
{
	struct s3once_locks *locks = a->locks;
	const uint64_t now_ns = clock_boot_ns();
	uint64_t end_ns = now_ns + random_pause_ns(round, locks->poll_ms);
	if (a->stale_ns && a->stale_ns < end_ns)
		end_ns = (a->stale_ns > now_ns ? a->stale_ns : now_ns) + NS_PER_MS;
	if (a->deadline_ns < end_ns)
		end_ns = a->deadline_ns > now_ns ? a->deadline_ns : now_ns;
	uv_mutex_lock(&locks->mutex);
	const bool is_closed = wait_until(atomic_load(&locks->closed), .cond = &locks->closing,
				       .mutex = &locks->mutex, .deadline_ns = end_ns) == WAIT_MET;
	uv_mutex_unlock(&locks->mutex);
	return is_closed ? lock_error(a->error, -ECANCELED, "the client was closed") : 0;
}

/* Whether this lock of the client is the requested one, and is still held. */
static bool holds_requested(const struct acquisition *a, struct s3once_lock *lock)
{
	const bool is_same =
		strcmp(lock->key, a->request->key) == 0 && strcmp(lock->sort, a->sort) == 0;
	return is_same && !atomic_load(&lock->release_begun) && s3once_lock_remaining_ms(lock);
}

/* If the request is reentrant and this client holds the lock already, counts one more acquisition
 * and returns its handle. Otherwise returns NULL. */
static struct s3once_lock *acquire_again(const struct acquisition *a)
{
	struct s3once_locks *locks = a->locks;
	if (!a->request->reentrant)
		return NULL;
	uv_mutex_lock(&locks->mutex);
	struct s3once_lock *lock = locks->locked.first;
	while (lock && !holds_requested(a, lock))
		lock = lock->next;
	if (lock)
		lock->count++;
	uv_mutex_unlock(&locks->mutex);
	return lock;
}

/* Checks the user's own attributes of a row. 0 or -EINVAL. */
static int check_attributes(const struct s3once_locks *locks,
	const struct s3once_lock_request *request, struct s3once_lock_error *ret)
{
	size_t bytes = 0;
	if (request->n_attributes > 20)
		return lock_error(ret, -EINVAL, "at most 20 attributes");
	for (size_t i = 0; i < request->n_attributes; i++) {
		const struct s3once_lock_attribute *a = &request->attributes[i];
		if (!a->name || !a->value)
			return lock_error(ret, -EINVAL, "attributes have names and values");
		if (!utf8_valid(a->name, strlen(a->name)) ||
			!utf8_valid(a->value, strlen(a->value)))
			return lock_error(ret, -EINVAL, "attributes are UTF-8");
		bytes += strlen(a->name) + strlen(a->value);
		if (!*a->name || bytes > LOCK_ATTRIBUTES_MAX)
			return lock_error(
				ret, -EINVAL, "attributes have names, and at most 64 KiB together");
		if (lock_reserves_attribute(locks, a->name))
			return lock_error(
				ret, -EINVAL, "the attribute %.200s is the lock's own", a->name);
	}
	return 0;
}

/* Checks a request before anything is sent. 0, -EINVAL, or -ECANCELED if the client was closed. */
static int check_request(const struct s3once_locks *locks,
	const struct s3once_lock_request *request, struct s3once_lock_error *ret)
{
	if (reserved_is_set(request->reserved))
		return lock_error(ret, -EINVAL, RESERVED_IS_SET);
	int r = lock_key_check(locks, request->key, request->sort_key, ret);
	if (r)
		return r;
	if (!locks->may_acquire)
		return lock_error(ret, -EINVAL,
			"these locks were opened with read_only or must_exist: acquire with others");
	if (request->lease_ms && (request->lease_ms < 1000 || request->lease_ms > LOCK_DAY_MS))
		return lock_error(ret, -EINVAL, "a lease is at least 1s and at most a day");
	/* "KEY#3" is the row of slot 3 of the lock KEY: see lock_key_of(). "KEY#0" and "KEY#03" are
	 * the rows of no slot. */
	const char *slot = strrchr(request->key, '#');
	uint64_t number = 0;
	const bool names_slot =
		slot && slot[1] != '0' && decimal_read(slot + 1, SLOTS_MAX - 1, &number);
	/* If slots are numbered in the sort key, the name of a lock cannot collide with the row of
	 * a slot, so nothing is checked. */
	if (names_slot && !locks->dialect->sk_is_slot)
		return lock_error(ret, -EINVAL,
			"'%s': this is the row of a slot of a semaphore; give the lock a name that does "
			"not end with # and a number from 1 to %d",
			quote(request->key).text, SLOTS_MAX - 1);
	if (request->slots > SLOTS_MAX)
		return lock_error(ret, -EINVAL, "at most %d slots", SLOTS_MAX);
	if (request->data)
		r = lock_data_check(locks, request->data_bytes, ret);
	if (!r)
		r = check_attributes(locks, request, ret);
	if (r)
		return r;
	return atomic_load(&locks->closed) ? lock_error(ret, -ECANCELED, "the client was closed")
					   : 0;
}

int lock_error_split_table(const struct s3once_locks *locks, const struct dynamodb_shape *shape,
	int error, struct s3once_lock_error *ret)
{
	return lock_error(ret, error,
		"table %s has replicas (%s), and each Region judges conditions by its own: two hosts of "
		"two Regions could hold one lock at once; use a table of one Region, make the replicas "
		"strongly consistent, or allow replicas if all holders use one Region",
		locks->table_name, shape->replicas);
}

/* Checks once per client whether the table is split among Regions. If DescribeTable fails, the
 * answer is unknown and the acquisition goes on: that call has its own limits and permissions. */
static int check_replicas(struct acquisition *a)
{
	struct s3once_locks *locks = a->locks;
	struct dynamodb_shape shape;
	struct problem problem = {0};
	if (locks->is_file_or_bucket || locks->allows_replicas || atomic_load(&locks->has_shape))
		return 0;
	struct call_limits limits = begin_request(a, clock_boot_ns());
	limits.attempts = 1;
	const enum outcome o = dynamodb_describe_table(a->conn, &limits, &shape, &problem);
	if (o == OUTCOME_OK && shape.is_split)
		return lock_error_split_table(locks, &shape, -EIO, a->error);
	atomic_store(&locks->has_shape, o == OUTCOME_OK || o == OUTCOME_DENIED);
	if (o == OUTCOME_DENIED)
		log_warning(
			"whether the table has replicas in other Regions, which would not exclude "
			"each other, cannot be seen: allow dynamodb:DescribeTable, or allow "
			"replicas");
	return 0;
}

/* Checks whether locks may be kept in this place, before the time of any lease counts. An
 * inconclusive trial is repeated for as long as a failing request is retried. */
static int check_place(struct acquisition *a)
{
	const struct store_ops *ops = a->locks->store->ops;
	struct problem problem = {0};
	if (!ops->prepare)
		return check_replicas(a);
	const struct call_limits limits = begin_request(a, clock_boot_ns());
	for (;;) {
		const enum outcome o = ops->prepare(a->conn, &limits, &problem);
		if (o == OUTCOME_OK)
			return check_replicas(a);
		const bool may_repeat = outcome_is_ambiguous(o) || o == OUTCOME_THROTTLED;
		if (!may_repeat || wait_within(&limits, a->locks->poll_ms, NULL) != OUTCOME_OK)
			return lock_request_failed(a->locks, a->error, &problem);
	}
}

/* Reports who holds the lock, once, if the wait has lasted HELD_SAY_NS and may go on. */
static void say_held(struct acquisition *a, uint64_t began_ns)
{
	const uint64_t say_ns = began_ns + HELD_SAY_NS;
	if (a->has_said_held || clock_boot_ns() < say_ns || a->deadline_ns <= say_ns)
		return;
	a->has_said_held = true;
	log_note("waiting for lock %s", a->error->text);
}

/* Makes round after round until the lock is acquired (a->lock), the deadline has passed, or a
 * request fails. A reentrant request may also get the lock by another thread of this client.
 * Returns 0, -EBUSY if another client holds the lock, or another -errno. */
static int acquire_by_rounds(struct acquisition *a, uint64_t began_ns)
{
	/* The first round writes at once, since most locks are free. In a dialect that decides by
	 * the wall clock, the row is read first, since the reply shows the service's time. */
	int r = try_all(a, a->locks->dialect->by_wall_clock ? FIRST_READ : FIRST_WRITE);
	for (unsigned round = 0; r == -EBUSY; round++) {
		/* Another thread of this client may have acquired the lock meanwhile. */
		a->lock = acquire_again(a);
		if (a->lock || clock_boot_ns() >= a->deadline_ns)
			break;
		say_held(a, began_ns);
		r = wait_for_round(a, round);
		if (!r)
			r = try_all(a, FIRST_READ);
	}
	return a->lock ? 0 : r;
}

int s3once_lock_acquire(struct s3once_locks *locks, const struct s3once_lock_request *request,
	struct s3once_lock **ret_lock, struct s3once_lock_error *ret)
{
	struct s3once_lock_error unused;
	struct acquisition a = {
		.locks = locks,
		.request = request,
		.sort = request->sort_key ? request->sort_key : locks->dialect->sk_default,
		.lease_ns = request->lease_ms ? request->lease_ms * NS_PER_MS : locks->lease_ns,
		.error = ret ? ret : &unused,
		.has_said_answer = ATOMIC_FLAG_INIT,
	};
	int r = check_request(locks, request, ret);
	if (r)
		return r;
	a.lock = acquire_again(&a);
	if (a.lock) {
		*ret_lock = a.lock;
		return 0;
	}
	const uint64_t now_ns = clock_boot_ns();
	a.deadline_ns = request->wait_ms > (UINT64_MAX - now_ns) / NS_PER_MS
				? UINT64_MAX
				: now_ns + request->wait_ms * NS_PER_MS;
	if (store_conn_new(locks->store, &a.conn))
		return lock_error(ret, -ENOMEM, "out of memory or descriptors");
	progress_init(&a.progress);
	r = check_place(&a);
	if (!r)
		r = acquire_by_rounds(&a, now_ns);
	store_conn_free(a.conn);
	progress_clear(&a.progress);
	if (!r)
		*ret_lock = a.lock;
	return r;
}
