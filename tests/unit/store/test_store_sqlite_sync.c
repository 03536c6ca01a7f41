/* When the marks of an embedded store are synced to the disk: before a write returns, or after it
 * where that may be later. What SQLite calls for its log is counted here: fdatasync(), pwrite64().
 */
#include "base/clock.h"
#include "sqlite_scratch.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

static atomic_uint syncs, log_writes;
static atomic_bool fails;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	syncs++;
	if (atomic_exchange(&fails, false)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) ssize_t pwrite64(
	int fd, const void *data, size_t n, off_t at)
{
	char link[64], path[4096] = "";

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, "-wal"))
		log_writes++;
	return syscall(SYS_pwrite64, fd, data, n, at);
}

static enum outcome put(struct opened *opened, const char *sk, bool may_sync_later)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	struct item item = {0}, present = {0};
	const enum outcome o = opened->store->ops->write(opened->conn, (struct item_key){"p", sk},
		&(struct item_write){.item = &item,
			.conditions = &absent,
			.n_conditions = 1,
			.may_sync_later = may_sync_later},
		&(struct call_limits){0}, &present, &opened->problem);

	item_clear(&item);
	item_clear(&present);
	return o;
}

static void put_well(struct opened *opened, const char *sk, bool may_sync_later)
{
	CHECK_INT(put(opened, sk, may_sync_later), OUTCOME_OK);
}

/* None of the writes since then was synced. On a host that stood still meanwhile they may be. */
static void check_unsynced(unsigned before, uint64_t since_ns)
{
	const unsigned now = syncs;

	if (clock_boot_ns() < since_ns + NS_PER_S)
		CHECK_INT(now, before);
}

static void one_that_may_not_wait_takes_all_along(struct opened *opened)
{
	put_well(opened, "first", false);
	const unsigned before = syncs;
	CHECK(before > 0);
	const uint64_t since_ns = clock_boot_ns();
	put_well(opened, "later 1", true);
	put_well(opened, "later 2", true);
	check_unsynced(before, since_ns);
	put_well(opened, "now", false);
	CHECK(syncs > before);
}

/* Each kind of write waits for its sync, unless it may be synced later. */
static void each_write_waits_unless_it_need_not(struct opened *opened)
{
	static const struct item item;
	static const struct change change = {.name = "a", .type = VALUE_STRING, .value = "1"};
	static const struct item_write writes[] = {
		{.item = &item},
		{.changes = &change, .n_changes = 1},
		{.increments = "n"},
		{.increments = "n", .or_absent = true, .returns_item = true},
		{.removes = true},
	};
	struct item shown = {0};
	char sk[32];

	for (size_t i = 0; i < 2 * sizeof writes / sizeof *writes; i++) {
		struct item_write write = writes[i / 2];
		write.may_sync_later = i % 2;
		snprintf(sk, sizeof sk, "write %zu", i);
		put_well(opened, sk, false);
		const unsigned before = syncs;
		const uint64_t since_ns = clock_boot_ns();
		bool good = CHECK_INT(
			opened->store->ops->write(opened->conn, (struct item_key){"p", sk}, &write,
				&(struct call_limits){0}, &shown, &opened->problem),
			OUTCOME_OK);
		item_clear(&shown);
		if (write.may_sync_later)
			check_unsynced(before, since_ns);
		else
			good &= CHECK(syncs > before);
		if (!good)
			fprintf(stderr, "\twrite %zu: %s\n", i, opened->problem.text);
	}
}

/* A sync that a caller asks for takes along the writes of this store, and those of others, even if
 * this store itself has nothing to sync. */
static void a_sync_takes_all_along(struct opened *opened)
{
	struct opened other;

	put_well(opened, "mine", true);
	unsigned before = syncs;
	CHECK_INT(store_sync(opened->conn, NULL, &opened->problem), OUTCOME_OK);
	CHECK(syncs > before);
	if (!CHECK_INT(open_at("marks.db", &other), 0))
		return;
	put_well(&other, "theirs", true);
	before = syncs;
	CHECK_INT(store_sync(opened->conn, NULL, &opened->problem), OUTCOME_OK);
	CHECK(syncs > before);
	close_it(&other);
}

#define ROUNDS 200

/* Begins a round together with the thread that writes what may not wait. */
struct beside {
	struct opened *opened;
	pthread_barrier_t begin;
};

static void *write_what_may_wait(void *arg)
{
	struct beside *beside = arg;
	struct opened mine = {.store = beside->opened->store};
	char sk[32];

	if (!CHECK_INT(store_conn_new(mine.store, &mine.conn), 0))
		abort();
	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(sk, sizeof sk, "beside later %u", i);
		pthread_barrier_wait(&beside->begin);
		put_well(&mine, sk, true);
	}
	store_conn_free(mine.conn);
	return NULL;
}

/* Writes that arrive together share a transaction. One that may not wait is synced all the same,
 * and so is a sync that is asked for. */
static void one_that_may_wait_delays_no_other(struct opened *opened)
{
	struct beside beside = {.opened = opened};
	pthread_t thread;
	char sk[32];

	pthread_barrier_init(&beside.begin, NULL, 2);
	if (!CHECK_INT(pthread_create(&thread, NULL, write_what_may_wait, &beside), 0))
		abort();
	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(sk, sizeof sk, "beside now %u", i);
		pthread_barrier_wait(&beside.begin);
		const unsigned before = syncs;
		if (i % 2)
			put_well(opened, sk, false);
		else
			CHECK_INT(store_sync(opened->conn, NULL, &opened->problem), OUTCOME_OK);
		CHECK(syncs > before);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&beside.begin);
}

/* Reading meanwhile does not put it off. */
static void the_last_one_is_not_forgotten(struct opened *opened)
{
	const unsigned before = syncs;
	const uint64_t since_ns = clock_boot_ns();

	put_well(opened, "later 3", true);
	check_unsynced(before, since_ns);
	while (syncs == before && clock_boot_ns() < since_ns + 30 * NS_PER_S) {
		CHECK_INT(get_one(opened, "p", "later 3"), OUTCOME_OK);
		nanosleep(&(struct timespec){.tv_nsec = 10 * (long)NS_PER_MS}, NULL);
	}
	CHECK(syncs > before);
}

/* Nor do more writes of its kind. */
static void many_that_may_wait_are_synced_too(struct opened *opened)
{
	const unsigned before = syncs;
	const uint64_t since_ns = clock_boot_ns();
	char sk[32];

	for (unsigned i = 0; syncs == before && clock_boot_ns() < since_ns + 30 * NS_PER_S; i++) {
		snprintf(sk, sizeof sk, "later and later %u", i);
		put_well(opened, sk, true);
		nanosleep(&(struct timespec){.tv_nsec = 10 * (long)NS_PER_MS}, NULL);
	}
	CHECK(syncs > before);
}

/* The syncs that may fail. */
enum failing { SYNC_LATER, SYNC_OF_WRITE, SYNC_ASKED_FOR, FAILINGS };

/* The kernel tells each failure once only. Whoever waits for the sync is told, and so is each later
 * writer, and who compacts the file, since that would checkpoint the log. */
static void a_failure_is_not_forgotten(const char *name, enum failing failing)
{
	struct opened opened;
	bool has_more;

	if (!CHECK_INT(open_at(name, &opened), 0))
		return;
	put_well(
		&opened, "first", false); /* the head of a new log is synced with its first write */
	const uint64_t since_ns = clock_boot_ns();
	fails = true;
	CHECK_INT(put(&opened, "lost", failing != SYNC_OF_WRITE),
		failing == SYNC_OF_WRITE ? OUTCOME_SETUP : OUTCOME_OK);
	if (failing == SYNC_ASKED_FOR)
		CHECK_INT(store_sync(opened.conn, NULL, &opened.problem), OUTCOME_SETUP);
	while (fails && clock_boot_ns() < since_ns + 30 * NS_PER_S)
		nanosleep(&(struct timespec){.tv_nsec = 10 * (long)NS_PER_MS}, NULL);
	CHECK_INT(put(&opened, "later", true), OUTCOME_SETUP);
	CHECK_INT(put(&opened, "now", false), OUTCOME_SETUP);
	CHECK_INT(opened.store->ops->compact(
			  opened.conn, &(struct call_limits){0}, &has_more, &opened.problem),
		OUTCOME_SETUP);
	CHECK_INT(store_sync(opened.conn, NULL, &opened.problem), OUTCOME_SETUP);
	CHECK(strstr(opened.problem.text, "cannot be synced") != NULL);
	close_it(&opened);
}

/* The kernel would not sync it once more by itself. */
static void what_was_not_synced_is_written_anew(const char *name)
{
	struct opened opened;
	const unsigned synced = syncs, written = log_writes;

	if (!CHECK_INT(open_at(name, &opened), 0))
		return;
	CHECK(syncs > synced && log_writes > written);
	CHECK_INT(get_one(&opened, "p", "lost"), OUTCOME_OK);
	CHECK_INT(store_sync(opened.conn, NULL, &opened.problem), OUTCOME_OK);
	close_it(&opened);
}

/* Closing syncs what is not synced yet, and nothing else. The file stays open, so that its log is
 * not written back. */
static void closing_syncs(struct opened *opened)
{
	struct opened other;

	for (int may_sync_later = 0; may_sync_later < 2; may_sync_later++) {
		const char *sk = may_sync_later ? "later 4" : "now 4";
		if (!CHECK_INT(open_at("marks.db", &other), 0))
			return;
		put_well(&other, sk, may_sync_later);
		const unsigned before = syncs;
		close_it(&other);
		CHECK_INT(syncs > before, may_sync_later);
		CHECK_INT(get_one(opened, "p", sk), OUTCOME_OK);
	}
}

int main(void)
{
	struct opened opened;
	char name[32];

	scratch_make();
	if (CHECK_INT(open_at("marks.db", &opened), 0)) {
		one_that_may_not_wait_takes_all_along(&opened);
		each_write_waits_unless_it_need_not(&opened);
		a_sync_takes_all_along(&opened);
		the_last_one_is_not_forgotten(&opened);
		many_that_may_wait_are_synced_too(&opened);
		one_that_may_wait_delays_no_other(&opened);
		closing_syncs(&opened);
		close_it(&opened);
	}
	for (enum failing failing = 0; failing < FAILINGS; failing++) {
		snprintf(name, sizeof name, "failing %d.db", (int)failing);
		a_failure_is_not_forgotten(name, failing);
		what_was_not_synced_is_written_anew(name);
	}
	scratch_remove();
	return check_result();
}
