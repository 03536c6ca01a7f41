/* Locks over a store that loses requests and replies, and what others do to a row between two
 * requests: a lock has one holder, and a handle says so until it surely is not. */
#include "../check.h"
#include "../store/sqlite_scratch.h"
#include "base/clock.h"
#include "base/wait_until.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* The client whose store is hooked. `plan` has a letter for each of its next writes; all that come
 * after those go through:
 *   .  the write goes through
 *   x  it gets no answer, and does not arrive
 *   l  it arrives, and its answer is lost
 *   2  its answer is lost, and it is sent once more
 *   s  its answer takes a lease of a second
 *   d  it is denied */
static struct {
	const struct store_ops *real;
	struct store_ops ops;
	const char *plan;
	unsigned writes, reads;
	uint64_t deadline_ns; /* of the last write */
	uint64_t replied_ns;  /* when the last answer was here */
	/* Happens right before the next write, and between the two of a '2'. */
	void (*meanwhile)(void), (*between)(void);
	/* The outcomes of store_ops.prepare(), one after the other; then OK. */
	const enum outcome *prepared;
} hook;

static struct s3once_locks *anna, *bob; /* anna's store is hooked */

static enum outcome no_answer(struct problem *ret_problem)
{
	return outcome_error(ret_problem, OUTCOME_TRANSIENT, "no answer");
}

static void wait_for_a_lease(void)
{
	wait_until(false, .deadline_ns = clock_boot_ns() + 1010 * NS_PER_MS);
}

static enum outcome hooked_write(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	void (*const meanwhile)(void) = hook.meanwhile;
	struct item unused = {0};
	const char fate = *hook.plan ? *hook.plan++ : '.';
	hook.meanwhile = NULL;
	hook.writes++;
	hook.deadline_ns = limits->deadline_ns;
	if (meanwhile)
		meanwhile();
	if (fate == 'd')
		return outcome_error(ret_problem, OUTCOME_DENIED, "denied");
	if (fate == 'x')
		return no_answer(ret_problem);
	if (fate == 'l' || fate == '2') {
		hook.real->write(conn, key, write, limits, &unused, ret_problem);
		item_clear(&unused);
	}
	if (fate == '2' && limits->maybe_applied)
		*limits->maybe_applied = true;
	if (fate == '2' && hook.between)
		hook.between();
	if (fate == 'l')
		return no_answer(ret_problem);
	const enum outcome o = hook.real->write(conn, key, write, limits, ret, ret_problem);
	if (fate == 's')
		wait_for_a_lease();
	hook.replied_ns = clock_boot_ns();
	return o;
}

static enum outcome hooked_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	CHECK(consistency == READ_CONSISTENT);
	hook.reads++;
	const enum outcome o = hook.real->get(conn, key, consistency, limits, ret, ret_problem);
	hook.replied_ns = clock_boot_ns();
	return o;
}

static enum outcome hooked_prepare(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	CHECK(conn && limits->deadline_ns);
	if (!hook.prepared || *hook.prepared == OUTCOME_OK)
		return OUTCOME_OK;
	return outcome_error(ret_problem, *hook.prepared++, "as the test wants");
}

static struct s3once_locks *open_locks(const char *owner, uint64_t lease_ms)
{
	const struct s3once_locks_options options = {.place = "sqlite:locks.db",
		.owner = owner,
		.lease_ms = lease_ms,
		.manual = 1,
		.poll_ms = 20};
	struct s3once_lock_error error = {0};
	struct s3once_locks *locks = NULL;
	if (s3once_locks_open(&options, &locks, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	return locks;
}

static void begin_leases(uint64_t lease_ms)
{
	anna = open_locks("anna", lease_ms);
	bob = open_locks("bob", lease_ms);
	hook.real = anna->store->ops;
	hook.ops = *hook.real;
	hook.ops.write = hooked_write;
	hook.ops.get = hooked_get;
	hook.plan = "";
	hook.meanwhile = hook.between = NULL;
	anna->store->ops = &hook.ops;
}

static void begin(void)
{
	begin_leases(0);
}

static void end(void)
{
	s3once_locks_close(anna, 1, 0, NULL);
	s3once_locks_close(bob, 1, 0, NULL);
	anna->store->ops = hook.real;
	s3once_locks_free(anna);
	s3once_locks_free(bob);
	unlink("locks.db");
	unlink("locks.db-wal");
	unlink("locks.db-shm");
}

static struct s3once_lock_error error;

static struct s3once_lock *acquire_by(struct s3once_locks *locks, const char *key)
{
	const struct s3once_lock_request request = {.key = key};
	struct s3once_lock *lock = NULL;
	error = (struct s3once_lock_error){0};
	const int r = s3once_lock_acquire(locks, &request, &lock, &error);
	CHECK((r == 0) == (lock != NULL));
	return lock;
}

/* Whether bob gets the lock at once, which shows that nobody holds it. He gives it back. */
static bool bob_gets(const char *key)
{
	struct s3once_lock *lock = acquire_by(bob, key);
	if (lock)
		CHECK_INT(s3once_lock_release(lock, &error), 0);
	return lock != NULL;
}

/* A write of somebody who knows no conditions. */
static void write_raw(const char *key, const struct change *changes, size_t n)
{
	struct store_conn *conn;
	struct problem problem;
	struct lock_key row;
	lock_key_of(bob, key, "", 0, &row);
	const struct item_write write = {.changes = changes,
		.n_changes = n,
		.conditions = &(struct condition){"nobody", CONDITION_ABSENT, VALUE_STRING, NULL},
		.n_conditions = 1,
		.or_absent = true};
	if (store_conn_new(bob->store, &conn))
		abort();
	CHECK_INT(conn->store->ops->write(conn, row.key, &write, &no_limits, NULL, &problem),
		OUTCOME_OK);
	store_conn_free(conn);
}

static void remove_raw(const char *key)
{
	struct store_conn *conn;
	struct problem problem;
	struct lock_key row;
	lock_key_of(bob, key, "", 0, &row);
	if (store_conn_new(bob->store, &conn))
		abort();
	CHECK_INT(conn->store->ops->write(conn, row.key, &(struct item_write){.removes = true},
			  &no_limits, NULL, &problem),
		OUTCOME_OK);
	store_conn_free(conn);
}

static void bob_takes_it(void)
{
	CHECK(acquire_by(bob, "k") != NULL);
}

/* --- releasing */

/* Releases by mark and by removal; the first call has the plan, and the second one none. */
static const struct {
	bool by_mark;
	const char *plan;
	int first;
	bool is_free; /* after the first call, which the second one may have to find out */
	int second;
} releases[] = {
	{true, ".", 0, true, -ESTALE},
	{true, "2", 0, true, -ESTALE},
	{true, "l", -EIO, true, 0},
	{true, "x", -EIO, false, 0},
	{true, "d", -EIO, false, 0},
	{false, ".", 0, true, -ESTALE},
	{false, "2", 0, true, -ESTALE},
	{false, "l", -EIO, true, 0},
	{false, "x", -EIO, false, 0},
	{false, "d", -EIO, false, 0},
};

static void test_releases(void)
{
	for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
		begin();
		anna->by_mark = bob->by_mark = releases[i].by_mark;
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = releases[i].plan;
		bool ok = CHECK_INT(s3once_lock_release(lock, &error), releases[i].first);
		ok = CHECK_INT(s3once_lock_remaining_ms(lock), 0) && ok;
		/* Bob does not acquire one that is free: his row would hide the state of anna's. */
		ok = CHECK(releases[i].is_free || !bob_gets("k")) && ok;
		ok = CHECK_INT(s3once_lock_release(lock, &error), releases[i].second) && ok;
		ok = CHECK(bob_gets("k")) && ok;
		if (!ok)
			fprintf(stderr, "\trelease %zu: %s\n", i, error.text);
		end();
	}
}

/* The first release was applied, and its reply was lost. Whoever has the lock since keeps it. */
static void test_released_and_taken_by_another(void)
{
	for (int by_mark = 0; by_mark < 2; by_mark++) {
		begin();
		anna->by_mark = bob->by_mark = by_mark;
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = "l";
		CHECK_INT(s3once_lock_release(lock, &error), -EIO);
		struct s3once_lock *other = acquire_by(bob, "k");
		CHECK_INT(s3once_lock_release(lock, &error), 0);
		CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
		CHECK_INT(s3once_lock_heartbeat(other, &error), 0);
		CHECK(!acquire_by(anna, "k"));
		end();
	}
}

/* The same, within one call. */
static void test_taken_before_the_second_try(void)
{
	for (int by_mark = 0; by_mark < 2; by_mark++) {
		begin();
		anna->by_mark = bob->by_mark = by_mark;
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = "2";
		hook.between = bob_takes_it;
		CHECK_INT(s3once_lock_release(lock, &error), 0);
		CHECK(!acquire_by(anna, "k"));
		CHECK_STRING(error.holder, "bob");
		end();
	}
}

/* A release that did not arrive proves nothing about a row that another has by now. */
static void test_broken_after_a_release_that_was_denied(void)
{
	begin();
	struct s3once_lock *lock = acquire_by(anna, "k");
	hook.plan = "d";
	CHECK_INT(s3once_lock_release(lock, &error), -EIO);
	remove_raw("k");
	struct s3once_lock *other = acquire_by(bob, "k");
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_heartbeat(other, &error), 0);
	end();
}

/* The version of a heartbeat without an answer may be in the row, or not. */
static const struct {
	const char *heartbeat; /* the plan of its three tries */
	unsigned writes;       /* of the release */
} unclear[] = {{"xxx", 1}, {"lxx", 2}, {"xxl", 2}};

static void test_releases_after_an_unclear_heartbeat(void)
{
	for (size_t i = 0; i < sizeof unclear / sizeof *unclear; i++) {
		begin();
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = unclear[i].heartbeat;
		CHECK_INT(s3once_lock_heartbeat(lock, &error), -EIO);
		CHECK_STRING(hook.plan, "");
		hook.writes = 0;
		CHECK_INT(s3once_lock_release(lock, &error), 0);
		CHECK_INT(hook.writes, unclear[i].writes);
		CHECK(bob_gets("k"));
		end();
	}
}

/* A row that is another's is left alone, whichever of our versions is not in it. */
static void test_broken_after_an_unclear_heartbeat(void)
{
	begin();
	struct s3once_lock *lock = acquire_by(anna, "k");
	hook.plan = "lxx";
	CHECK_INT(s3once_lock_heartbeat(lock, &error), -EIO);
	remove_raw("k");
	struct s3once_lock *other = acquire_by(bob, "k");
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_heartbeat(other, &error), 0);
	end();
}

/* A handle that is being released is not handed out once more. */
static void test_no_reentrance_into_a_release(void)
{
	begin();
	struct s3once_lock_request request = {.key = "k", .reentrant = 1};
	struct s3once_lock *lock = NULL, *again = NULL;
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), 0);
	hook.plan = "x";
	CHECK_INT(s3once_lock_release(lock, &error), -EIO);
	CHECK_INT(s3once_lock_acquire(anna, &request, &again, &error), -EBUSY);
	request.reentrant = 0;
	CHECK_INT(s3once_lock_acquire(anna, &request, &again, &error), -EBUSY);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), 0);
	/* Without `reentrant` its own row is one like any other. */
	CHECK_INT(s3once_lock_acquire(anna, &request, &again, &error), -EBUSY);
	end();
}

/* --- acquiring */

static void bob_counts(void)
{
	CHECK(bob_gets("k"));
}

/* An acquisition writes the row, and then the token's counter. */
static const struct {
	const char *plan;
	void (*meanwhile)(void);
	int r;
	bool is_free; /* afterwards; a lock that was acquired is not */
	const char *holder;
} acquisitions[] = {
	{"", NULL, 0, false, ""},
	{"2", NULL, 0, false, ""},
	{".2", NULL, 0, false, ""},
	{"2", bob_counts, 0, false, ""},
	{"", bob_takes_it, -EBUSY, false, "bob"},
	{"2", bob_takes_it, -EBUSY, false, "bob"},
	/* A row that may have been written is released again, so that no client waits for it. */
	{"l", NULL, -EIO, true, ""},
	{"x", NULL, -EIO, true, ""},
	{".x", NULL, -EIO, true, ""},
	{".l", NULL, -EIO, true, ""},
	{".d", NULL, -EIO, true, ""},
	{"l", bob_takes_it, -EIO, false, ""},
	{"d", NULL, -EIO, true, ""},
};

static void test_acquisitions(void)
{
	for (size_t i = 0; i < sizeof acquisitions / sizeof *acquisitions; i++) {
		const struct s3once_lock_request request = {.key = "k"};
		struct s3once_lock *lock = NULL;
		begin();
		hook.plan = acquisitions[i].plan;
		hook.meanwhile = acquisitions[i].meanwhile;
		error = (struct s3once_lock_error){0};
		bool ok = CHECK_INT(
			s3once_lock_acquire(anna, &request, &lock, &error), acquisitions[i].r);
		ok = CHECK_STRING(error.holder, acquisitions[i].holder) && ok;
		ok = CHECK(!lock || s3once_lock_heartbeat(lock, &error) == 0) && ok;
		ok = CHECK(bob_gets("k") == acquisitions[i].is_free) && ok;
		if (!ok)
			fprintf(stderr, "\tacquisition %zu: %s\n", i, error.text);
		end();
	}
}

/* A token that may have been counted twice is skipped; none is given out twice. */
static void test_tokens_rise(void)
{
	begin();
	uint64_t last = 0;
	static const char *const plans[] = {"", ".2", "2", ".l", "", ".x", ""};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		hook.plan = plans[i];
		struct s3once_lock *lock = acquire_by(i % 2 ? anna : bob, "k");
		hook.plan = "";
		if (!lock)
			continue;
		CHECK(s3once_lock_token(lock) > last);
		last = s3once_lock_token(lock);
		CHECK_INT(s3once_lock_release(lock, &error), 0);
	}
	end();
}

static struct s3once_lock *bobs;
static int note_version(void *arg, const struct s3once_lock_info *info);

/* Anna's lock is a second old by then. */
static void bob_breaks_it(void)
{
	char version[100];
	wait_for_a_lease();
	CHECK_INT(s3once_lock_get(bob, "k", NULL, note_version, version, &error), 0);
	CHECK_INT(s3once_lock_break(bob, "k", NULL, version, &error), 0);
}

static void bob_breaks_and_takes_it(void)
{
	bob_breaks_it();
	bobs = acquire_by(bob, "k");
	CHECK(bobs != NULL);
}

/* A lock that was broken before its token was drawn is not handed out: its token would be greater
 * than that of the present holder. */
static void test_broken_before_its_token(void)
{
	const struct s3once_lock_request request = {.key = "k"};
	struct s3once_lock *lock = NULL;
	begin();
	hook.plan = ".2";
	hook.between = bob_breaks_and_takes_it;
	if (!CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), -EBUSY))
		fprintf(stderr, "\ttoken %llu, bob has %llu\n",
			(unsigned long long)s3once_lock_token(lock),
			(unsigned long long)s3once_lock_token(bobs));
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_heartbeat(bobs, &error), 0);
	end();
	/* One that nobody has taken since is acquired anew. */
	begin();
	hook.plan = ".2";
	hook.between = bob_breaks_it;
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), 0);
	CHECK_INT(s3once_lock_heartbeat(lock, &error), 0);
	CHECK_INT(s3once_lock_token(lock), 3);
	end();
}

static uint64_t token_of(const struct s3once_lock_request *request, unsigned writes)
{
	struct s3once_lock *lock = NULL;
	hook.writes = 0;
	CHECK_INT(s3once_lock_acquire(anna, request, &lock, &error), 0);
	CHECK_INT(hook.writes, writes);
	const uint64_t token = s3once_lock_token(lock);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	return token;
}

/* In the row, in a counter beside it, or nowhere. Each sort key counts apart; slots count together,
 * and never in their rows. */
static void test_source_of_tokens(void)
{
	const struct s3once_lock_request plain = {.key = "k"},
					 sorted = {.key = "k", .sort_key = "s"},
					 slots = {.key = "k", .slots = 2};
	begin();
	CHECK_INT(token_of(&plain, 2), 1);
	CHECK_INT(token_of(&plain, 2), 2);
	CHECK_INT(token_of(&sorted, 2), 1);
	CHECK_INT(token_of(&slots, 2), 3);
	anna->tokens = S3ONCE_LOCK_TOKENS_ROW;
	CHECK_INT(token_of(&sorted, 1), 1);
	CHECK_INT(token_of(&sorted, 1), 2);
	CHECK_INT(token_of(&slots, 2), 4);
	anna->tokens = S3ONCE_LOCK_TOKENS_NONE;
	CHECK_INT(token_of(&sorted, 1), 0);
	end();
}

/* Requests that are refused before anything is sent. */
static const struct s3once_lock_attribute many[21] = {{"a", "b"}};
static char long_key[LOCK_KEY_MAX + 2];

static const struct s3once_lock_request refused[] = {
	{.key = ""},
	{.key = long_key},
	{.key = "k", .sort_key = long_key},
	{.key = "\xff"},
	{.key = "k", .sort_key = "\xff"},
	{.key = "a\x01z"},
	{.key = "k#7"},
	{.key = "k", .lease_ms = 999},
	{.key = "k", .lease_ms = LOCK_DAY_MS + 1},
	{.key = "k", .slots = 1001},
	{.key = "k", .attributes = many, .n_attributes = 21},
	{.key = "k", .attributes = &(struct s3once_lock_attribute){"pk", "v"}, .n_attributes = 1},
	{.key = "k",
		.attributes = &(struct s3once_lock_attribute){"isReleased", "1"},
		.n_attributes = 1},
	{.key = "k",
		.attributes = &(struct s3once_lock_attribute){DIALECT_TOKEN, "1"},
		.n_attributes = 1},
	{.key = "k", .reserved = {[15] = 1}},
};

static void test_refused_requests(void)
{
	memset(long_key, 'k', sizeof long_key - 1);
	begin();
	hook.writes = hook.reads = 0;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct s3once_lock *lock = NULL;
		if (!CHECK_INT(s3once_lock_acquire(anna, &refused[i], &lock, &error), -EINVAL))
			fprintf(stderr, "\trequest %zu\n", i);
	}
	CHECK_INT(hook.writes + hook.reads, 0);
	long_key[LOCK_KEY_MAX] = 0;
	CHECK(acquire_by(anna, long_key) != NULL);
	end();
}

/* A table and a file have different features. */
static const struct {
	enum s3once_lock_dialect dialect;
	const char *sort_name, *key, *sort;
	int r;
} keys[] = {
	{S3ONCE_LOCK_JAVA, NULL, "k", NULL, 0},
	{S3ONCE_LOCK_JAVA, NULL, "a\x01z", NULL, 0},
	{S3ONCE_LOCK_JAVA, NULL, LOCK_COUNTER_PREFIX "k", NULL, -EINVAL},
	{S3ONCE_LOCK_JAVA, NULL, "k", "s", -EINVAL},
	{S3ONCE_LOCK_JAVA, "sort", "k", "s", 0},
	{S3ONCE_LOCK_JAVA, "sort", "k", NULL, -EINVAL},
	{S3ONCE_LOCK_PYTHON, "sort", "k", NULL, 0},
	{S3ONCE_LOCK_PYTHON, "sort", "k", "", -EINVAL},
	{S3ONCE_LOCK_DLM, "slot", "k", "1", -EINVAL},
	{S3ONCE_LOCK_DLM, "slot", "k", NULL, 0},
};

static void test_keys_of_tables(void)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const struct s3once_locks locks = {.dialect = dialect_of(keys[i].dialect),
			.table = {.name = "t", .pk_name = "p", .sk_name = keys[i].sort_name}};
		if (!CHECK_INT(
			    lock_key_check(&locks, keys[i].key, keys[i].sort, &error), keys[i].r))
			fprintf(stderr, "\tkey %zu: %s\n", i, error.text);
	}
	CHECK(lock_version_is_of("id.1", "id") && lock_version_is_of("id", "id"));
	CHECK(!lock_version_is_of("idle.1", "id") && !lock_version_is_of("i", "id"));
}

/* Rows of other programs, or of none: they count as held, and never as stale. */
static const struct change text_lease[] = {{"ownerName", VALUE_STRING, "x", 0},
	{"recordVersionNumber", VALUE_STRING, "v", 0}, {"leaseDuration", VALUE_STRING, "soon", 0}};
static const struct change half_released[] = {{"ownerName", VALUE_STRING, "x", 0},
	{"recordVersionNumber", VALUE_STRING, "v", 0}, {"leaseDuration", VALUE_STRING, "1", 0},
	{"isReleased", VALUE_STRING, "0", 0}};
static const struct change no_version[] = {
	{"ownerName", VALUE_STRING, "x", 0}, {"leaseDuration", VALUE_STRING, "1", 0}};
static const struct change no_owner[] = {
	{"recordVersionNumber", VALUE_STRING, "v", 0}, {"leaseDuration", VALUE_STRING, "1", 0}};

static const struct {
	const struct change *changes;
	size_t n;
	const char *why;
} odd_rows[] = {
	{text_lease, 3, "its lease cannot be read"},
	{half_released, 4, "isReleased"},
	{no_version, 2, "it has no version"},
	{no_owner, 2, "it names no owner"},
};

static void test_rows_that_cannot_be_understood(void)
{
	begin();
	for (size_t i = 0; i < sizeof odd_rows / sizeof *odd_rows; i++) {
		const struct s3once_lock_request request = {.key = "k", .wait_ms = 60};
		struct s3once_lock *lock = NULL;
		remove_raw("k");
		write_raw("k", odd_rows[i].changes, odd_rows[i].n);
		CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), -EBUSY);
		CHECK(strstr(error.text, odd_rows[i].why) != NULL);
	}
	/* One that can is stale after its lease, of a millisecond, and not before. */
	const struct s3once_lock_request request = {.key = "j", .wait_ms = 20000};
	struct s3once_lock *lock = NULL;
	struct change changes[3];
	memcpy(changes, text_lease, sizeof changes);
	changes[2].value = "1";
	write_raw("j", changes, 3);
	hook.reads = hook.writes = 0;
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), 0);
	CHECK(hook.reads > 0 && hook.writes >= 3); /* refused, then over the stale one, a token */
	end();
}

static void check_damaged_counter(const char *number)
{
	begin();
	struct store_conn *conn;
	struct problem problem;
	const struct change damage[] = {{DIALECT_TOKEN, VALUE_NUMBER, number, 0}};
	const struct item_write write = {.changes = damage, .n_changes = 1, .or_absent = true};
	if (store_conn_new(bob->store, &conn))
		abort();
	CHECK_INT(conn->store->ops->write(conn, (struct item_key){"lock-token", "k"}, &write,
			  &no_limits, NULL, &problem),
		OUTCOME_OK);
	store_conn_free(conn);
	CHECK(!acquire_by(anna, "k"));
	CHECK(strstr(error.text, "damaged") != NULL);
	bob->tokens = S3ONCE_LOCK_TOKENS_NONE;
	CHECK(bob_gets("k")); /* what anna had written is released */
	end();
}

static void test_a_damaged_counter(void)
{
	check_damaged_counter("-5");
	check_damaged_counter("9223372036854775807"); /* there is no greater one */
	check_damaged_counter("9223372036854775808");
}

/* The holder counts its lease from before its write. If all of it has passed, it has nothing. */
static void test_slower_than_the_lease(void)
{
	/* The row is written slowly, or the token is counted slowly. */
	static const struct {
		const char *plan;
		enum s3once_lock_tokens tokens;
	} rows[] = {{"s", S3ONCE_LOCK_TOKENS_NONE}, {".s", S3ONCE_LOCK_TOKENS_COUNTER}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin_leases(1000);
		anna->tokens = rows[i].tokens;
		hook.plan = rows[i].plan;
		CHECK(!acquire_by(anna, "k"));
		CHECK(strstr(error.text, "took longer than the lease") != NULL);
		CHECK(bob_gets("k"));
		end();
	}
}

static const enum outcome tried_later[] = {OUTCOME_TRANSIENT, OUTCOME_THROTTLED, OUTCOME_OK},
			  never[] = {OUTCOME_SETUP, OUTCOME_OK};

static const struct {
	const enum outcome *prepared;
	uint64_t wait_ms;
	int r;
	unsigned writes;
} places[] = {
	{NULL, 0, 0, 2},
	{never, 0, -EIO, 0},
	{never, 20000, -EIO, 0},
	{tried_later, 20000, 0, 2},
	{tried_later, 0, 0, 2},
};

/* Nothing is written in a place before it is known to honour conditions. */
static void test_places(void)
{
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const struct s3once_lock_request request = {
			.key = "k", .wait_ms = places[i].wait_ms};
		struct s3once_lock *lock = NULL;
		begin();
		hook.ops.prepare = hooked_prepare;
		hook.prepared = places[i].prepared;
		hook.writes = 0;
		if (!CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), places[i].r) ||
			!CHECK_INT(hook.writes, places[i].writes))
			fprintf(stderr, "\tplace %zu: %s\n", i, error.text);
		end();
	}
}

/* --- holding */

/* A heartbeat that was applied without an answer is known again, and counts from its first try. */
static void test_heartbeats(void)
{
	static const char *const plans[] = {"2", "l", "ll", "xx", "xl", "lx"};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		begin();
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = plans[i];
		CHECK_INT(s3once_lock_heartbeat(lock, &error), 0);
		CHECK_STRING(hook.plan, "");
		CHECK_INT(s3once_lock_heartbeat(lock, &error), 0);
		CHECK(!s3once_lock_is_lost(lock));
		end();
	}
}

static int note_data(void *arg, const struct s3once_lock_info *info)
{
	snprintf(arg, 20, "%.*s", (int)info->data_bytes, (const char *)info->data);
	return 0;
}

/* The write of an earlier heartbeat without a reply is not mistaken for the data. */
static void test_data_after_an_unclear_heartbeat(void)
{
	static const char *const plans[] = {"lxx", "xxx", "lll"};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		char data[20] = "";
		begin();
		struct s3once_lock *lock = acquire_by(anna, "k");
		hook.plan = plans[i];
		CHECK_INT(s3once_lock_heartbeat(lock, &error), -EIO);
		CHECK_INT(s3once_lock_set_data(lock, "new", 3, &error), 0);
		CHECK_INT(s3once_lock_get(bob, "k", NULL, note_data, data, &error), 0);
		CHECK_STRING(data, "new");
		end();
	}
}

/* Each of these makes the lock another's, or nobody's. The holder learns why. */
static void lose_to_a_clone(struct s3once_lock *lock)
{
	char handle[3200];
	struct s3once_lock *same = NULL;
	CHECK_INT(s3once_lock_handle(lock, handle, sizeof handle), 0);
	CHECK_INT(s3once_lock_resume(bob, handle, &same, &error), 0);
	CHECK_INT(s3once_lock_heartbeat(same, &error), 0);
}

static void lose_the_row(struct s3once_lock *lock)
{
	remove_raw(s3once_lock_key(lock));
}

static int note_version(void *arg, const struct s3once_lock_info *info)
{
	snprintf(arg, 100, "%s", info->version);
	return 0;
}

static void lose_to_a_release(struct s3once_lock *lock)
{
	char version[100];
	CHECK_INT(s3once_lock_get(bob, "k", NULL, note_version, version, &error), 0);
	CHECK_INT(s3once_lock_break(bob, "k", NULL, version, &error), 0);
}

static void lose_to_bob(struct s3once_lock *lock)
{
	lose_to_a_release(lock);
	bob_takes_it();
}

static void lose_the_file(struct s3once_lock *lock)
{
	CHECK_INT(rename("locks.db", "moved.db"), 0);
}

static const struct {
	void (*lose)(struct s3once_lock *lock);
	const char *why, *holder;
} losses[] = {
	{lose_to_a_clone, "another process goes on with this lock", ""},
	{lose_the_row, "its row was deleted", ""},
	{lose_to_a_release, "another released it", ""},
	{lose_to_bob, "although its lease had not ended", "bob"},
	{lose_the_file, LOCK_FILE_GONE, ""},
};

static void test_losses(void)
{
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
		begin();
		struct s3once_lock *lock = acquire_by(anna, "k");
		losses[i].lose(lock);
		error = (struct s3once_lock_error){0};
		CHECK_INT(s3once_lock_heartbeat(lock, &error), -ESTALE);
		CHECK(strstr(error.text, losses[i].why) != NULL);
		CHECK_STRING(error.holder, losses[i].holder);
		CHECK(s3once_lock_is_lost(lock) && !s3once_lock_remaining_ms(lock));
		hook.writes = 0;
		CHECK_INT(s3once_lock_heartbeat(lock, &error), -ESTALE);
		CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
		CHECK_INT(hook.writes, 0); /* it is lost for good */
		end();
		unlink("moved.db");
	}
}

/* The file of the locks was replaced: nothing that was written to the old one is a lock. */
static void test_a_file_that_was_replaced(void)
{
	begin();
	struct s3once_lock *lock = acquire_by(anna, "k");
	CHECK_INT(rename("locks.db", "moved.db"), 0);
	CHECK(!acquire_by(anna, "j"));
	CHECK(strstr(error.text, "was removed or replaced meanwhile") != NULL);
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK(strstr(error.text, LOCK_FILE_GONE) != NULL);
	end();
	unlink("moved.db");
}

/* --- what others see while nobody renews */

static void test_after_the_lease(void)
{
	static const char *const names[] = {
		"late", "late2", "taken", "beaten", "given back", "lost reply"};
	enum { KEYS = sizeof names / sizeof *names };
	struct s3once_lock *locks[KEYS], *other = NULL;
	begin_leases(1000);
	for (size_t i = 0; i < KEYS; i++)
		locks[i] = acquire_by(anna, names[i]);
	wait_for_a_lease();
	anna->by_mark = false;
	/* Another may have had the lock since, so a row that is gone is no proof of a release. */
	remove_raw("late");
	CHECK_INT(s3once_lock_release(locks[0], &error), -ESTALE);
	CHECK(strstr(error.text, "its row is gone") != NULL);
	hook.plan = "2"; /* but this one was removed by the first try */
	CHECK_INT(s3once_lock_release(locks[1], &error), 0);
	anna->by_mark = true;
	/* A release that was sent too late does not excuse a row that is another's. */
	hook.plan = "l";
	CHECK_INT(s3once_lock_release(locks[5], &error), -EIO);
	CHECK(acquire_by(bob, "lost reply") != NULL);
	CHECK_INT(s3once_lock_release(locks[5], &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	/* Bob has not seen these rows yet: he waits for a lease, whatever their age is. The one
	 * that he waits for is the last that he sees, so that he has seen the other for a lease,
	 * too. */
	const struct s3once_lock_request request = {.key = "taken", .wait_ms = 20000};
	CHECK(!acquire_by(bob, "given back") && !acquire_by(bob, "taken"));
	CHECK_INT(s3once_lock_acquire(bob, &request, &other, &error), 0);
	CHECK_INT(s3once_lock_heartbeat(locks[2], &error), -ESTALE);
	CHECK(strstr(error.text, "had not changed for a whole lease") != NULL);
	/* A free row that another has had meanwhile was not released by us. */
	CHECK(bob_gets("given back"));
	CHECK_INT(s3once_lock_release(locks[4], &error), -ESTALE);
	/* A lease that has run out is ours until another takes the row. */
	CHECK_INT(s3once_lock_remaining_ms(locks[3]), 0);
	CHECK_INT(s3once_lock_heartbeat(locks[3], &error), 0);
	CHECK(s3once_lock_remaining_ms(locks[3]) > 0);
	end();
}

static enum outcome get_slowly(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	wait_until(false, .deadline_ns = clock_boot_ns() + 20 * NS_PER_MS);
	return hooked_get(conn, key, consistency, limits, ret, ret_problem);
}

/* Notes for how long a row has been seen unchanged. */
static int note_unchanged(void *arg, const struct s3once_lock_info *info)
{
	*(uint64_t *)arg = info->unchanged_ms;
	return 0;
}

/* A version counts from after the reply that first showed it, since the holder may have written it
 * while the request was under way. */
static void test_seen_from_after_the_reply(void)
{
	for (unsigned is_read = 0; is_read < 2; is_read++) {
		uint64_t unchanged_ms = UINT64_MAX;
		begin();
		CHECK(acquire_by(bob, "k") != NULL);
		if (is_read) {
			hook.ops.get = get_slowly;
			CHECK_INT(s3once_lock_get(
					  anna, "k", NULL, note_unchanged, &unchanged_ms, &error),
				0);
			CHECK_INT(unchanged_ms, 0);
			hook.ops.get = hooked_get;
		} else {
			hook.plan = "s"; /* the write that finds the row held */
			CHECK(!acquire_by(anna, "k"));
		}
		const uint64_t replied_ns = hook.replied_ns;
		CHECK_INT(
			s3once_lock_get(anna, "k", NULL, note_unchanged, &unchanged_ms, &error), 0);
		CHECK(unchanged_ms <= (clock_boot_ns() - replied_ns) / NS_PER_MS);
		end();
	}
}

static void test_no_age_of_a_free_row(void)
{
	uint64_t unchanged_ms = UINT64_MAX;
	begin();
	CHECK(bob_gets("k"));
	CHECK_INT(s3once_lock_get(anna, "k", NULL, note_unchanged, &unchanged_ms, &error), 0);
	wait_until(false, .deadline_ns = clock_boot_ns() + 20 * NS_PER_MS);
	CHECK_INT(s3once_lock_get(anna, "k", NULL, note_unchanged, &unchanged_ms, &error), 0);
	CHECK_INT(unchanged_ms, 0);
	end();
}

static struct s3once_lock *beating;

static enum outcome get_after_a_heartbeat(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	CHECK_INT(s3once_lock_heartbeat(beating, NULL), 0);
	/* No request of an acquisition may take longer than the lease. */
	CHECK(limits->deadline_ns <= clock_boot_ns() + NS_PER_S);
	return hooked_get(conn, key, consistency, limits, ret, ret_problem);
}

/* A row that changes is never stale, however long another has waited. */
static void test_a_holder_that_is_alive(void)
{
	const struct s3once_lock_request request = {.key = "k", .wait_ms = 1200};
	struct s3once_lock *lock = NULL;
	begin_leases(1000);
	beating = acquire_by(bob, "k");
	hook.ops.get = get_after_a_heartbeat;
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), -EBUSY);
	CHECK(hook.reads > 1);
	end();
}

/* Two have seen a stale row: the one that writes second has not got it. */
static void bob_takes_over(void)
{
	const struct s3once_lock_request request = {.key = "k", .wait_ms = 20000};
	struct s3once_lock *lock = NULL;
	CHECK_INT(s3once_lock_acquire(bob, &request, &lock, &error), 0);
}

static enum outcome get_then_bob(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	hook.meanwhile = bob_takes_over; /* before anna's write, once she has seen a lease pass */
	return hooked_get(conn, key, consistency, limits, ret, ret_problem);
}

static void test_one_takes_over(void)
{
	const struct s3once_lock_request request = {.key = "k", .wait_ms = 1500};
	struct s3once_lock *lock = NULL;
	begin_leases(1000);
	beating = acquire_by(bob, "k"); /* nobody renews it */
	CHECK(!acquire_by(bob, "k"));
	hook.ops.get = get_then_bob;
	error = (struct s3once_lock_error){0};
	CHECK_INT(s3once_lock_acquire(anna, &request, &lock, &error), -EBUSY);
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_heartbeat(beating, &error), -ESTALE);
	end();
}

/* --- breaking */

static struct s3once_lock *released_meanwhile;

static void bob_renews_and_releases(void)
{
	CHECK_INT(s3once_lock_heartbeat(released_meanwhile, NULL), 0);
	CHECK_INT(s3once_lock_release(released_meanwhile, NULL), 0);
}

/* A holder that releases the lock meanwhile does what was wanted. */
static void test_released_while_broken(void)
{
	char version[100];
	begin();
	released_meanwhile = acquire_by(bob, "k");
	CHECK_INT(s3once_lock_get(anna, "k", NULL, note_version, version, &error), 0);
	hook.meanwhile = bob_renews_and_releases;
	CHECK_INT(s3once_lock_break(anna, "k", NULL, version, &error), 0);
	CHECK(!hook.meanwhile);
	end();
}

static void test_breaking(void)
{
	char version[100];
	const struct change no_version_now[] = {{"recordVersionNumber", VALUE_STRING, NULL, 0}};
	begin();
	struct s3once_lock *lock = acquire_by(anna, "k");
	CHECK_INT(s3once_lock_get(bob, "k", NULL, note_version, version, &error), 0);
	CHECK_INT(s3once_lock_break(bob, "k", NULL, "another", &error), -EAGAIN);
	CHECK(strstr(error.text, version) != NULL);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	CHECK_INT(s3once_lock_break(bob, "k", NULL, version, &error), -ENOENT); /* free already */
	CHECK(acquire_by(anna, "k") != NULL);
	write_raw("k", no_version_now, 1);
	CHECK_INT(s3once_lock_break(bob, "k", NULL, version, &error), -EAGAIN);
	CHECK(strstr(error.text, "no version") != NULL);
	hook.plan = "d";
	CHECK_INT(s3once_lock_break(anna, "k", NULL, version, &error), -EIO);
	end();
}

/* --- resuming */

static void test_resuming(void)
{
	char handle[3200];
	struct s3once_lock *same = NULL;
	begin();
	struct s3once_lock *lock = acquire_by(anna, "k");
	CHECK_INT(s3once_lock_handle(lock, handle, sizeof handle), 0);
	/* It is ours, though nothing is known of its time. */
	CHECK_INT(s3once_lock_resume(bob, handle, &same, &error), 0);
	CHECK_INT(s3once_lock_remaining_ms(same), 0);
	CHECK_STRING(s3once_lock_owner(same), "anna");
	CHECK_INT(s3once_lock_release(same, &error), 0);
	CHECK_INT(s3once_lock_resume(bob, handle, &same, &error), -ESTALE);
	CHECK(strstr(error.text, "was released") != NULL);
	bob_takes_it();
	CHECK_INT(s3once_lock_resume(anna, handle, &same, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	remove_raw("k");
	CHECK_INT(s3once_lock_resume(anna, handle, &same, &error), -ESTALE);
	CHECK(strstr(error.text, "has no row in") != NULL);
	/* A row of its own that somebody has damaged. */
	char version[LEASE_VERSION_MAX];
	snprintf(version, sizeof version, "%s.x", lock->id);
	const struct change damaged[] = {{"ownerName", VALUE_STRING, "anna", 0},
		{"recordVersionNumber", VALUE_STRING, version, 0}};
	write_raw("k", damaged, 2);
	CHECK_INT(s3once_lock_resume(anna, handle, &same, &error), -EINVAL);
	end();
}

/* The holder knows no time of a lock that it has resumed, so a row that is gone is released. */
static void test_a_resumed_lock_without_a_row(void)
{
	char handle[3200];
	struct s3once_lock *same = NULL;
	begin();
	CHECK_INT(s3once_lock_handle(acquire_by(anna, "k"), handle, sizeof handle), 0);
	CHECK_INT(s3once_lock_resume(bob, handle, &same, &error), 0);
	bob->by_mark = false;
	remove_raw("k");
	CHECK_INT(s3once_lock_release(same, &error), 0);
	end();
}

/* A renewal that leaves less than was to be ensured is an error. */
static void test_ensured_too_slowly(void)
{
	begin_leases(1000);
	struct s3once_lock *lock = acquire_by(anna, "k");
	wait_until(false, .deadline_ns = clock_boot_ns() + 200 * NS_PER_MS);
	hook.plan = "s";
	CHECK_INT(s3once_lock_ensure(lock, 890, &error), -EIO);
	CHECK(strstr(error.text, "too slow") != NULL);
	end();
}

/* If little more than the time to be ensured fits into the lease, the lease becomes longer, since
 * the renewal itself takes time. */
static void test_ensured_by_a_longer_lease(void)
{
	begin_leases(1000);
	struct s3once_lock *lock = acquire_by(anna, "k");
	wait_until(false, .deadline_ns = clock_boot_ns() + 60 * NS_PER_MS);
	CHECK_INT(s3once_lock_ensure(lock, 950, &error), 0);
	CHECK_INT(lease_length_ns(lock->lease) / NS_PER_MS, 950 + 950 / 8 + 1000);
	end();
}

/* --- closing */

static const struct {
	const char *plan;
	int keep, r;
	bool is_free;
	unsigned writes;
} closings[] = {
	{"", 0, 0, true, 1},
	{"x", 0, 0, true, 2},
	{"l", 0, 0, true, 2},
	{"xx", 0, -EIO, false, 2},
	{"", 1, 0, false, 0},
};

static void test_closing(void)
{
	for (size_t i = 0; i < sizeof closings / sizeof *closings; i++) {
		begin();
		acquire_by(anna, "k");
		hook.plan = closings[i].plan;
		hook.writes = 0;
		CHECK_INT(s3once_locks_close(anna, closings[i].keep, 5000, &error), closings[i].r);
		CHECK_INT(hook.writes, closings[i].writes);
		CHECK(bob_gets("k") == closings[i].is_free);
		/* Another call releases what is left. */
		CHECK_INT(s3once_locks_close(anna, 0, 5000, &error), 0);
		CHECK(bob_gets("k"));
		end();
	}
}

/* A released lock is not released again, and no release takes longer than the limit for the end. */
static void test_closing_in_short_time(void)
{
	begin();
	CHECK_INT(s3once_lock_release(acquire_by(anna, "k"), &error), 0);
	acquire_by(anna, "l");
	hook.writes = 0;
	CHECK_INT(s3once_locks_close(anna, 0, 100, &error), 0);
	CHECK(hook.deadline_ns <= clock_boot_ns() + 100 * NS_PER_MS);
	CHECK_INT(hook.writes, 1);
	end();
}

static void test_a_lost_lock_does_not_fail_the_end(void)
{
	begin();
	lose_to_bob(acquire_by(anna, "k"));
	CHECK_INT(s3once_locks_close(anna, 0, 5000, &error), 0);
	end();
}

static void *close_anna(void *unused)
{
	CHECK_INT(s3once_locks_close(anna, 1, 0, NULL), 0);
	return unused;
}

/* Another thread closes the client while a request with these limits is under way. */
static pthread_t begin_closing(const struct call_limits *limits)
{
	pthread_t closer;
	if (pthread_create(&closer, NULL, close_anna, NULL))
		abort();
	wait_until(limits->abandon(limits->abandon_arg), .deadline_ns = 0);
	return closer;
}

static enum outcome get_while_closing(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	const pthread_t closer = begin_closing(limits);
	const enum outcome o = hooked_get(conn, key, consistency, limits, ret, ret_problem);
	pthread_join(closer, NULL);
	return o;
}

static enum outcome query_while_closing(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	const pthread_t closer = begin_closing(limits);
	const enum outcome o =
		hook.real->query(conn, range, limits, each, arg, ret_more, ret_problem);
	pthread_join(closer, NULL);
	return o;
}

static pthread_t heartbeat_closer;

static enum outcome write_while_closing(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	hook.ops.write = hooked_write;
	heartbeat_closer = begin_closing(limits); /* it waits for the end of a heartbeat */
	return hooked_write(conn, key, write, limits, ret, ret_problem);
}

/* A call that the end of the client has cut short does not blame the service. */
static void test_closed_during_a_request(void)
{
	enum { GET, LIST, BREAK_READS, BREAK_WRITES, RESUME, HEARTBEAT, CALLS };
	for (unsigned call = 0; call < CALLS; call++) {
		char handle[3200];
		uint64_t unchanged_ms;
		struct s3once_lock *other = NULL;
		begin();
		struct s3once_lock *lock = acquire_by(anna, "k");
		const struct lease *lease = lock->lease;
		const char *pending, *version = lease_row_version(lease, &pending);
		CHECK_INT(s3once_lock_handle(lock, handle, sizeof handle), 0);
		error = (struct s3once_lock_error){0};
		const bool writes = call == BREAK_WRITES || call == HEARTBEAT;
		if (writes)
			hook.ops.write = write_while_closing;
		else
			hook.ops.get = get_while_closing;
		hook.ops.query = query_while_closing;
		const int r = call == GET      ? s3once_lock_get(anna, "k", NULL, note_unchanged,
							 &unchanged_ms, &error)
			      : call == LIST   ? s3once_lock_list(anna, NULL, note_unchanged,
							 &unchanged_ms, &error)
			      : call == RESUME ? s3once_lock_resume(anna, handle, &other, &error)
			      : call == HEARTBEAT
				      ? s3once_lock_heartbeat(lock, &error)
				      : s3once_lock_break(anna, "k", NULL, version, &error);
		if (!CHECK_INT(r, -ECANCELED) || !CHECK_STRING(error.text, "the client was closed"))
			fprintf(stderr, "\tcall %u: %s\n", call, error.text);
		if (writes)
			pthread_join(heartbeat_closer, NULL);
		end();
	}
}

/* --- rows that end by the wall clock */

static char past[24], future[24];

static void holder_postpones(void)
{
	const struct change later[] = {{"expires", VALUE_NUMBER, future, 0}};
	write_raw("k", later, 1);
}

static void begin_dlm(void)
{
	begin();
	anna->dialect = bob->dialect = dialect_of(S3ONCE_LOCK_DLM);
	anna->by_mark = bob->by_mark = false;
	snprintf(past, sizeof past, "%" PRId64, clock_wall_s() - 5);
	snprintf(future, sizeof future, "%" PRId64, clock_wall_s() + 3600);
}

static void write_dlm(const char *expires)
{
	const struct change row[] = {
		{"release_code", VALUE_STRING, "v", 0}, {"expires", VALUE_NUMBER, expires, 0}};
	write_raw("k", row, 2);
}

static void test_by_the_wall_clock(void)
{
	begin_dlm();
	write_dlm(future);
	CHECK(!acquire_by(anna, "k"));
	/* Its version stays the same, so the write asks for the time as well. */
	write_dlm(past);
	hook.meanwhile = holder_postpones;
	CHECK(!acquire_by(anna, "k"));
	write_dlm(past);
	struct s3once_lock *lock = acquire_by(anna, "k");
	CHECK(lock != NULL);
	/* A heartbeat that arrives late does not bring the end nearer. */
	holder_postpones();
	CHECK_INT(s3once_lock_heartbeat(lock, &error), 0);
	struct item item = {0};
	struct store_conn *conn;
	struct problem problem;
	struct lock_key key;
	int64_t expires_s = 0;
	lock_key_of(bob, "k", "", 0, &key);
	if (store_conn_new(bob->store, &conn))
		abort();
	CHECK_INT(
		conn->store->ops->get(conn, key.key, READ_CONSISTENT, &no_limits, &item, &problem),
		OUTCOME_OK);
	CHECK(!item_number(&item, "expires", &expires_s) && expires_s == atoll(future));
	item_clear(&item);
	store_conn_free(conn);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	end();
}

int main(void)
{
	scratch_make();
	test_releases();
	test_released_and_taken_by_another();
	test_taken_before_the_second_try();
	test_broken_after_a_release_that_was_denied();
	test_broken_after_an_unclear_heartbeat();
	test_releases_after_an_unclear_heartbeat();
	test_no_reentrance_into_a_release();
	test_acquisitions();
	test_tokens_rise();
	test_broken_before_its_token();
	test_source_of_tokens();
	test_refused_requests();
	test_keys_of_tables();
	test_rows_that_cannot_be_understood();
	test_a_damaged_counter();
	test_slower_than_the_lease();
	test_places();
	test_heartbeats();
	test_data_after_an_unclear_heartbeat();
	test_losses();
	test_a_file_that_was_replaced();
	test_after_the_lease();
	test_seen_from_after_the_reply();
	test_no_age_of_a_free_row();
	test_a_holder_that_is_alive();
	test_one_takes_over();
	test_breaking();
	test_released_while_broken();
	test_resuming();
	test_a_resumed_lock_without_a_row();
	test_ensured_too_slowly();
	test_ensured_by_a_longer_lease();
	test_closing();
	test_closing_in_short_time();
	test_a_lost_lock_does_not_fail_the_end();
	test_closed_during_a_request();
	test_by_the_wall_clock();
	scratch_remove();
	return check_result();
}
