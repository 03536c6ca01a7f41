/* Locks on a real store of one host: acquiring, waiting, losing, giving up, and what is told. */
#include "../check.h"
#include "../store/sqlite_scratch.h"
#include "base/clock.h"
#include "lease/observer.h"
#include "lock/lock_client.h"
#include "s3once/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct s3once_locks *open_locks(const struct s3once_locks_options *more)
{
	struct s3once_locks_options options = *more;
	struct s3once_lock_error error = {0};
	struct s3once_locks *locks = NULL;
	if (!options.place)
		options.place = "sqlite:locks.db";
	if (!CHECK_INT(s3once_locks_open(&options, &locks, &error), 0))
		fprintf(stderr, "\t%s\n", error.text);
	return locks;
}

static int acquire(struct s3once_locks *locks, const char *key, uint64_t wait_ms,
	struct s3once_lock **ret, struct s3once_lock_error *error)
{
	const struct s3once_lock_request request = {.key = key, .wait_ms = wait_ms};
	int r = s3once_lock_acquire(locks, &request, ret, error);
	if (r && r != -EBUSY && r != -ECANCELED)
		fprintf(stderr, "\t%s: %s\n", key, error->text);
	return r;
}

/* Waits for an event and hands it on; false after 10 s. */
static bool next_event(struct s3once_locks *locks, s3once_lock_callback *callback, void *arg)
{
	struct pollfd fd = {.fd = s3once_locks_event_fd(locks), .events = POLLIN};
	return poll(&fd, 1, 10000) == 1 && s3once_locks_next_event(locks, callback, arg) == 1;
}

static void keep_event(void *arg, const struct s3once_lock_event *event)
{
	struct s3once_lock_event *kept = arg;
	*kept = *event;
}

static void test_one_at_a_time(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){.owner = "anna"});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){.owner = "bob"});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	CHECK_INT(acquire(a, "k", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_token(lock), 1);
	CHECK(s3once_lock_remaining_ms(lock) > 15000);
	CHECK_INT(acquire(b, "k", 0, &other, &error), -EBUSY);
	CHECK_STRING(error.holder, "anna");
	CHECK_INT(acquire(b, "k", 100, &other, &error), -EBUSY);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	CHECK_INT(s3once_lock_remaining_ms(lock), 0);
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK_INT(acquire(b, "k", 0, &other, &error), 0);
	CHECK_INT(s3once_lock_token(other), 2);
	s3once_lock_free(lock);
	/* A stale handle's end changes nothing for the newer one. */
	CHECK(s3once_lock_remaining_ms(other) > 15000);
	CHECK_INT(s3once_lock_heartbeat(other, &error), 0);
	CHECK_INT(s3once_locks_close(b, 0, 1000, &error), 0);
	CHECK_INT(s3once_locks_close(b, 0, 1000, &error), 0);
	CHECK_INT(acquire(b, "k", 0, &other, &error), -ECANCELED);
	CHECK_INT(s3once_lock_get(b, "k", NULL, NULL, NULL, &error), -ECANCELED);
	CHECK_INT(s3once_lock_list(b, NULL, NULL, NULL, &error), -ECANCELED);
	CHECK_INT(s3once_lock_break(b, "k", NULL, "v", &error), -ECANCELED);
	CHECK_INT(acquire(a, "k", 0, &lock, &error), 0);
	s3once_locks_free(a);
	s3once_locks_free(b);
}

static int note_color(void *arg, const struct s3once_lock_info *info)
{
	if (CHECK_INT(info->n_attributes, 1) && CHECK_STRING(info->attributes->name, "color"))
		snprintf(arg, 20, "%s", info->attributes->value);
	return 0;
}

/* Data and more attributes left by the last holder are handed over; data is replaced, deleted. */
static void test_data(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	const struct s3once_lock_attribute more = {"color", "red"}, own = {"ownerName", "x"};
	struct s3once_lock_request request = {.key = "d",
		.data = "a\0b",
		.data_bytes = 3,
		.attributes = &more,
		.n_attributes = 1};
	size_t n;
	char color[20] = "";
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	CHECK(memcmp(s3once_lock_data(lock, &n), "a\0b", 3) == 0 && n == 3);
	CHECK_INT(s3once_lock_set_data(lock, "new", 3, &error), 0);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	s3once_lock_free(lock);
	request.data = NULL;
	request.n_attributes = 0;
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	CHECK(s3once_lock_data(lock, &n) && n == 3 &&
		memcmp(s3once_lock_data(lock, &n), "new", 3) == 0);
	CHECK_STRING(s3once_lock_extra(lock, "color"), "red");
	CHECK(!s3once_lock_extra(lock, "ownerName") && !s3once_lock_extra(lock, "taste"));
	CHECK_INT(s3once_lock_get(a, "d", NULL, note_color, color, &error), 0);
	CHECK_STRING(color, "red");
	CHECK_INT(s3once_lock_set_data(lock, NULL, 0, &error), 0);
	CHECK(!s3once_lock_data(lock, &n));
	request.attributes = &own;
	request.n_attributes = 1;
	struct s3once_lock *none;
	CHECK_INT(s3once_lock_acquire(a, &request, &none, &error), -EINVAL);
	request.attributes = &(struct s3once_lock_attribute){"color", "\xff"};
	CHECK_INT(s3once_lock_acquire(a, &request, &none, &error), -EINVAL);
	s3once_locks_free(a);
}

/* A row that is too large is the caller's fault, and not the service's. */
static void test_too_much_data(void)
{
	enum { DATA = 256 << 10, ATTRIBUTES = 64 << 10 };
	static char bytes[DATA + 1], value[ATTRIBUTES];
	memset(value, 'v', sizeof value - 1);
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	struct s3once_lock_attribute attributes[] = {{"n", value}, {"", ""}};
	struct s3once_lock_request request = {.key = "much", .data = bytes, .data_bytes = DATA + 1};
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), -EINVAL);
	request.data_bytes = DATA;
	request.attributes = attributes;
	request.n_attributes = 1;
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	CHECK_INT(s3once_lock_set_data(lock, bytes, DATA + 1, &error), -EINVAL);
	CHECK_INT(s3once_lock_set_data(lock, bytes, DATA, &error), 0);
	request.key = "more";
	attributes[0].name = "nn";
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), -EINVAL);
	attributes[0].name = "n";
	request.n_attributes = 2;
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), -EINVAL); /* no name */
	s3once_locks_free(a);
}

static int count_attributes(void *arg, const struct s3once_lock_info *info)
{
	*(size_t *)arg = info->n_attributes;
	return 0;
}

/* Acquires a lock and releases it, with 20 attributes whose names no earlier call has used. */
static int add_attributes(
	struct s3once_locks *locks, unsigned number, struct s3once_lock_error *error)
{
	char names[20][20];
	struct s3once_lock_attribute attributes[20];
	struct s3once_lock *lock = NULL;
	for (unsigned i = 0; i < 20; i++) {
		snprintf(names[i], sizeof names[i], "build %u.%u", number, i);
		attributes[i] = (struct s3once_lock_attribute){names[i], ""};
	}
	const struct s3once_lock_request request = {
		.key = "many", .attributes = attributes, .n_attributes = 20};
	int r = s3once_lock_acquire(locks, &request, &lock, error);
	if (!r)
		r = s3once_lock_release(lock, error);
	s3once_lock_free(lock);
	return r;
}

static void test_all_attributes_are_shown(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock_error error = {0};
	size_t n = 0;
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(add_attributes(a, i, &error), 0);
	CHECK_INT(s3once_lock_get(a, "many", NULL, count_attributes, &n, &error), 0);
	CHECK_INT(n, 80);
	s3once_locks_free(a);
}

static void test_reentrant_and_slots(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL, *same = NULL, *slots[3];
	struct s3once_lock_error error = {0};
	struct s3once_lock_request request = {.key = "r", .reentrant = 1};
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	CHECK_INT(s3once_lock_acquire(a, &request, &same, &error), 0);
	CHECK(lock == same);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	CHECK(s3once_lock_remaining_ms(lock) > 0);
	CHECK_INT(s3once_lock_release(lock, &error), 0);
	CHECK_INT(s3once_lock_remaining_ms(lock), 0);
	/* Another sort key is another lock. */
	request.sort_key = "a";
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	request.sort_key = "b";
	CHECK_INT(s3once_lock_acquire(a, &request, &same, &error), 0);
	CHECK(lock != same);
	request = (struct s3once_lock_request){.key = "s", .slots = 2};
	CHECK_INT(s3once_lock_acquire(a, &request, &slots[0], &error), 0);
	CHECK_INT(s3once_lock_acquire(a, &request, &slots[1], &error), 0);
	CHECK(s3once_lock_slot(slots[0]) != s3once_lock_slot(slots[1]));
	for (int i = 0; i < 20; i++) /* whichever slot is tried first */
		CHECK_INT(s3once_lock_acquire(a, &request, &slots[2], &error), -EBUSY);
	CHECK_INT(s3once_lock_release(slots[0], &error), 0);
	CHECK_INT(s3once_lock_acquire(a, &request, &slots[2], &error), 0);
	CHECK(s3once_lock_token(slots[1]) > s3once_lock_token(slots[0]));
	CHECK(s3once_lock_token(slots[2]) > s3once_lock_token(slots[1]));
	s3once_locks_free(a);
}

/* A reentrant holder holds a lock only while the lease lasts, since another client may have taken
 * it. */
static void test_reentrant_after_the_lease(void)
{
	struct s3once_locks *a =
		open_locks(&(struct s3once_locks_options){.lease_ms = 1000, .manual = 1});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){.owner = "bob"});
	struct s3once_lock *lock = NULL, *other = NULL, *again = NULL;
	struct s3once_lock_error error = {0};
	const struct s3once_lock_request request = {.key = "r2", .reentrant = 1};
	CHECK_INT(s3once_lock_acquire(a, &request, &lock, &error), 0);
	CHECK_INT(acquire(b, "r2", 20000, &other, &error), 0);
	CHECK_INT(s3once_lock_acquire(a, &request, &again, &error), -EBUSY);
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_release(other, &error), 0);
	CHECK_INT(s3once_lock_acquire(a, &request, &again, &error), 0);
	CHECK(again != lock && s3once_lock_remaining_ms(again) > 0);
	s3once_locks_free(a);
	s3once_locks_free(b);
}

/* A lock of that name would take a slot of the semaphore. */
static void test_names_of_slots(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	static const char *const slots[] = {"plain#1", "plain#999", "a#b#7"};
	static const char *const names[] = {
		"plain#0", "plain#1000", "plain#01", "plain#", "plain#1a", "plain1", "#"};
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		CHECK_INT(acquire(a, slots[i], 0, &lock, &error), -EINVAL);
		CHECK(strstr(error.text, "slot of a semaphore") != NULL);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		CHECK_INT(acquire(a, names[i], 0, &lock, &error), 0);
	s3once_locks_free(a);
}

/* Without heartbeats: suspect, expired; taken by another after a lease; then lost, and by whom. */
static void test_events(void)
{
	struct s3once_locks *a =
		open_locks(&(struct s3once_locks_options){.lease_ms = 1000, .manual = 1});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){.owner = "bob"});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	struct s3once_lock_event event;
	CHECK_INT(acquire(a, "e", 0, &lock, &error), 0);
	CHECK(next_event(a, keep_event, &event) && event.type == S3ONCE_LOCK_SUSPECT);
	CHECK(event.lock == lock);
	CHECK_INT(s3once_lock_ensure(lock, 800, &error), 0);
	CHECK(next_event(a, keep_event, &event) && event.type == S3ONCE_LOCK_RECOVERED);
	const uint64_t begun = clock_boot_ns();
	CHECK_INT(acquire(b, "e", 20000, &other, &error), 0);
	CHECK(clock_boot_ns() - begun >= NS_PER_S);
	CHECK_INT(s3once_lock_remaining_ms(lock), 0);
	CHECK_INT(s3once_lock_token(other), 2);
	CHECK_INT(s3once_lock_heartbeat(lock, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	CHECK(next_event(a, keep_event, &event) && event.type == S3ONCE_LOCK_SUSPECT);
	CHECK(next_event(a, keep_event, &event) && event.type == S3ONCE_LOCK_EXPIRED);
	CHECK(next_event(a, keep_event, &event) && event.type == S3ONCE_LOCK_LOST);
	CHECK_INT(s3once_locks_next_event(a, keep_event, &event), 0);
	CHECK_INT(s3once_lock_ensure(lock, 0, &error), -ESTALE);
	*error.holder = 0;
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	s3once_locks_free(a);
	s3once_locks_free(b);
}

#define HOUR_MS (3600 * 1000ULL)

struct found {
	char sort_key[10];
	unsigned n;
	char version[100];
	int held;
	uint64_t lease_ms;
};

/* Ends a listing. */
static int end_listing(void *arg, const struct s3once_lock_info *info)
{
	(void)info;
	++*(unsigned *)arg;
	return 7;
}

static int note(void *arg, const struct s3once_lock_info *info)
{
	struct found *found = arg;
	found->n++;
	found->held = info->held;
	snprintf(found->sort_key, sizeof found->sort_key, "%s", info->sort_key);
	found->lease_ms = info->lease_ms;
	snprintf(found->version, sizeof found->version, "%s", info->version);
	return 0;
}

/* A lease longer than the client's, by ensure; heartbeats keep it. */
static void test_ensure(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){.lease_ms = 1000});
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	CHECK_INT(acquire(a, "long", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_ensure(lock, 60000, &error), 0);
	CHECK(s3once_lock_remaining_ms(lock) >= 60000);
	CHECK_INT(s3once_lock_heartbeat(lock, &error), 0);
	CHECK(s3once_lock_remaining_ms(lock) >= 60000);
	/* As much as a lease that is no longer than a day can hold. */
	struct found found = {0};
	CHECK_INT(s3once_lock_ensure(lock, 22 * HOUR_MS, &error), -EINVAL);
	CHECK_INT(s3once_lock_ensure(lock, 21 * HOUR_MS, &error), 0);
	CHECK_INT(s3once_lock_get(a, "long", NULL, note, &found, &error), 0);
	CHECK(found.lease_ms > 21 * HOUR_MS && found.lease_ms <= 24 * HOUR_MS);
	CHECK_INT(s3once_locks_close(a, 1, 1000, &error), 0);
	CHECK_INT(s3once_lock_heartbeat(lock, &error), -ECANCELED);
	s3once_locks_free(a);
}

/* Other processes renew and release a lock that one has acquired. A dead process's lock is taken
 * over by programs that each look once. */
static void test_handles_and_observations(void)
{
	const struct s3once_locks_options options = {
		.lease_ms = 1000, .manual = 1, .observations = "seen"};
	struct s3once_locks *a = open_locks(&options), *b = open_locks(&options);
	struct s3once_lock *lock = NULL, *same = NULL;
	struct s3once_lock_error error = {0};
	char handle[3200];
	CHECK_INT(acquire(a, "h", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_handle(lock, handle, 10), -ENOSPC);
	CHECK_INT(s3once_lock_handle(lock, handle, sizeof handle), 0);
	/* A lock keeps the lease that it was acquired with. */
	char long_handle[3200];
	const struct s3once_lock_request longer = {.key = "longer", .lease_ms = 60000};
	CHECK_INT(s3once_lock_acquire(a, &longer, &lock, &error), 0);
	CHECK_INT(s3once_lock_handle(lock, long_handle, sizeof long_handle), 0);
	s3once_locks_free(a);
	CHECK_INT(s3once_lock_resume(b, long_handle, &same, &error), 0);
	CHECK_INT(s3once_lock_heartbeat(same, &error), 0);
	CHECK(s3once_lock_remaining_ms(same) > 30000);
	CHECK_INT(s3once_lock_release(same, &error), 0);
	CHECK_INT(s3once_lock_resume(b, handle, &same, &error), 0);
	CHECK_INT(s3once_lock_remaining_ms(same), 0);
	CHECK_INT(s3once_lock_heartbeat(same, &error), 0);
	CHECK(s3once_lock_remaining_ms(same) > 0);
	CHECK_INT(s3once_lock_token(same), 1);
	s3once_locks_free(b);
	int r = -EBUSY;
	const uint64_t deadline = clock_boot_ns() + 20 * NS_PER_S;
	while (r == -EBUSY && clock_boot_ns() < deadline) {
		b = open_locks(&options);
		r = acquire(b, "h", 0, &lock, &error);
		if (!r)
			CHECK_INT(s3once_lock_token(lock), 2);
		s3once_locks_free(b);
		poll(NULL, 0, 50);
	}
	CHECK_INT(r, 0);
	/* Nothing is kept of a row that is ours now. */
	CHECK(!unlink("seen/swept") && !rmdir("seen"));
	b = open_locks(&options);
	CHECK_INT(s3once_lock_resume(b, handle, &same, &error), -ESTALE);
	CHECK_INT(s3once_lock_resume(b, "nonsense", &same, &error), -EINVAL);
	CHECK_INT(s3once_lock_resume(b, "", &same, &error), -EINVAL);
	s3once_locks_free(b);
}

/* Another process saw the version after we did, and has kept that before we looked. */
static void test_seen_by_another_just_now(void)
{
	struct observation seen = {.version = "v", .since_ns = 100};
	CHECK_INT(observer_note(&seen, "v", 99), 0);
	CHECK_INT(observer_note(&seen, "v", 100), 0);
	CHECK_INT(observer_note(&seen, "v", 130), 30);
	CHECK_INT(observer_note(&seen, "w", 131), 0);
}

/* The version of a row that somebody else wrote may be "". */
static void test_an_empty_version_is_seen_first(void)
{
	struct observation fresh = {0};
	CHECK_INT(observer_note(&fresh, "", 140), 0);
	CHECK_INT(observer_note(&fresh, "", 150), 10);
}

#define OLD "swept/0123456789abcdef0123456789abcde" /* and one letter: a row's name */

/* Locks of the same name in two files, both dead, looked at by turns. */
static void test_observations_of_two_files(void)
{
	static const char *const places[] = {"sqlite:one.db", "sqlite:two.db"};
	struct s3once_locks_options options = {
		.lease_ms = 1000, .manual = 1, .observations = "seen"};
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	int r[] = {-EBUSY, -EBUSY};
	for (int i = 0; i < 2; i++) {
		options.place = places[i];
		struct s3once_locks *locks = open_locks(&options);
		CHECK_INT(acquire(locks, "same", 0, &lock, &error), 0);
		s3once_locks_free(locks);
	}
	const uint64_t deadline = clock_boot_ns() + 20 * NS_PER_S;
	while ((r[0] || r[1]) && clock_boot_ns() < deadline) {
		for (int i = 0; i < 2; i++) {
			options.place = places[i];
			struct s3once_locks *locks = open_locks(&options);
			r[i] = r[i] ? acquire(locks, "same", 0, &lock, &error) : 0;
			s3once_locks_free(locks);
		}
		poll(NULL, 0, 50);
	}
	CHECK(!r[0] && !r[1]);
}

static void write_old(const char *path, time_t age_s)
{
	const time_t then = time(NULL) - age_s;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !futimens(fd, (struct timespec[]){{then, 0}, {then, 0}}));
	close(fd);
}

/* Observations of locks that are no longer used are deleted once a day, and nothing else is. */
static void test_old_observations_are_removed(void)
{
	const time_t day_s = 24 * 3600;
	static const char *const kept[] = {OLD "2", "swept/notes", OLD "2x", OLD "4"};
	const struct s3once_locks_options options = {.observations = "swept"};
	s3once_locks_free(open_locks(&options));
	write_old("swept/swept", 2 * day_s);
	write_old(OLD "0", 31 * day_s);
	write_old(OLD "1.77", 31 * day_s);
	write_old(OLD "2", 29 * day_s);
	write_old(OLD "2x", 31 * day_s);
	write_old("swept/notes", 31 * day_s);
	s3once_locks_free(open_locks(&options));
	CHECK(access(OLD "0", F_OK) && access(OLD "1.77", F_OK));
	write_old(OLD "4", 31 * day_s);
	s3once_locks_free(open_locks(&options));
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		CHECK_INT(access(kept[i], F_OK), 0);
	write_old("swept/swept", -day_s); /* the clock was ahead then */
	s3once_locks_free(open_locks(&options));
	CHECK(access(OLD "4", F_OK));
}

static void test_look_and_break(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	struct found found = {0};
	unsigned n = 0;
	CHECK_INT(s3once_lock_get(a, "list/none", NULL, note, &found, &error), -ENOENT);
	CHECK_INT(acquire(a, "list/1", 0, &lock, &error), 0);
	CHECK_INT(acquire(a, "list/2", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_list(a, "list/", note, &found, &error), 0);
	CHECK_INT(found.n, 2);
	CHECK_INT(s3once_lock_list(a, "list/", end_listing, &n, &error), 7);
	CHECK_INT(n, 1);
	CHECK_INT(acquire(a, "list2/\xc3\xa9", 0, &other, &error), 0); /* behind ASCII */
	CHECK_INT(s3once_lock_list(a, "list2/", note, &found, &error), 0);
	CHECK_INT(found.n, 3);
	CHECK_STRING(found.sort_key, "");
	const struct s3once_lock_request sorted = {.key = "list3", .sort_key = "sort"};
	CHECK_INT(s3once_lock_acquire(a, &sorted, &other, &error), 0);
	CHECK_INT(s3once_lock_list(a, "list3", note, &found, &error), 0);
	CHECK_STRING(found.sort_key, "sort");
	CHECK_INT(s3once_lock_get(a, "list/2", NULL, note, &found, &error), 0);
	CHECK(found.held);
	CHECK_INT(found.lease_ms, 20000); /* unless one is asked for */
	CHECK_INT(s3once_lock_break(a, "list/2", NULL, "other", &error), -EAGAIN);
	CHECK_INT(s3once_lock_break(a, "list/2", NULL, found.version, &error), 0);
	CHECK_INT(s3once_lock_break(a, "list/2", NULL, found.version, &error), -ENOENT);
	CHECK_INT(s3once_lock_break(a, "list/none", NULL, "1", &error), -ENOENT);
	CHECK_INT(s3once_lock_get(a, "list/2", NULL, note, &found, &error), 0);
	CHECK(!found.held);
	CHECK_INT(s3once_lock_heartbeat(lock, &error), -ESTALE);
	s3once_locks_free(a);
}

/* A client that releases a lock held by another has lost it, even if no event has reported that. */
static void test_release_of_anothers(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){.manual = 1});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){.owner = "bob"});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	struct found found = {0};
	CHECK_INT(acquire(a, "broken", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_get(b, "broken", NULL, note, &found, &error), 0);
	CHECK_INT(s3once_lock_break(b, "broken", NULL, found.version, &error), 0);
	CHECK_INT(acquire(b, "broken", 0, &other, &error), 0);
	CHECK_INT(s3once_lock_release(lock, &error), -ESTALE);
	CHECK_STRING(error.holder, "bob");
	CHECK_INT(s3once_lock_heartbeat(other, &error), 0);
	CHECK_INT(s3once_lock_release(other, &error), 0);
	s3once_locks_free(a);
	s3once_locks_free(b);
}

static const struct {
	struct s3once_locks_options options;
} refused[] = {
	{{.place = "nowhere"}},
	{{.place = "dynamodb:"}},
	{{.place = "sqlite:x", .dialect = S3ONCE_LOCK_GO}},
	{{.place = "dynamodb:abc", .dialect = (enum s3once_lock_dialect)9}},
	{{.place = "dynamodb:abc", .lease_ms = 10}},
	{{.place = "dynamodb:abc", .lease_ms = 2000, .heartbeat_ms = 1500}},
	{{.place = "dynamodb:abc", .lease_ms = 2000, .heartbeat_ms = 1000, .suspect_ms = 1000}},
	{{.place = "dynamodb:abc", .owner = ""}},
	{{.place = "dynamodb:abc", .owner = "\xff"}},
	{{.place = "sqlite:"}},
	{{.place = "s3://"}},
	{{.place = "s3:///locks"}},
	{{.place = "s3://abc/\xff"}},
	{{.place = "s3://abc", .dialect = S3ONCE_LOCK_GO}},
	{{.place = "s3://abc", .release_by = S3ONCE_LOCK_BY_DELETE}},
	{{.place = "sqlite::memory:"}},
	{{.place = "dynamodb:abc",
		.dialect = S3ONCE_LOCK_PYTHON,
		.release_by = S3ONCE_LOCK_BY_MARK}},
	{{.place = "dynamodb:abc", .tokens = S3ONCE_LOCK_TOKENS_ROW}},
	{{.place = "dynamodb:abc", .reserved = {1}}},
	{{.place = "dynamodb:abc", .reserved = {[15] = 1}}},
};

static void test_locks_that_only_look_acquire_none(void)
{
	const struct s3once_locks_options options[] = {{.read_only = 1}, {.must_exist = 1}};
	s3once_locks_free(open_locks(&(struct s3once_locks_options){0}));
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		struct s3once_locks *locks = open_locks(&options[i]);
		struct s3once_lock *lock;
		struct s3once_lock_error error = {0};
		CHECK_INT(acquire(locks, "k", 0, &lock, &error), -EINVAL);
		s3once_locks_free(locks);
	}
}

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct s3once_locks *locks;
		struct s3once_lock_error error = {0};
		CHECK_INT(s3once_locks_open(&refused[i].options, &locks, &error), -EINVAL);
		CHECK(*error.text);
	}
}

/* A string that is missing, for example that of an environment variable, is an invalid argument. */
static void test_missing_strings(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	const struct s3once_lock_attribute nameless = {NULL, "v"}, empty = {"n", NULL};
	const struct s3once_lock_request requests[] = {{.key = NULL},
		{.key = "other", .attributes = &nameless, .n_attributes = 1},
		{.key = "other", .attributes = &empty, .n_attributes = 1}};
	CHECK_INT(acquire(a, "missing", 0, &lock, &error), 0);
	CHECK_INT(s3once_lock_break(a, "missing", NULL, NULL, &error), -EINVAL);
	CHECK(s3once_lock_remaining_ms(lock) > 0);
	CHECK_INT(s3once_lock_resume(a, NULL, &other, &error), -EINVAL);
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		CHECK_INT(s3once_lock_acquire(a, &requests[i], &other, &error), -EINVAL);
	s3once_locks_free(a);
}

/* The operations of a store whose reads are counted. */
static const struct store_ops *uncounted_ops;
static unsigned n_reads;

static enum outcome counted_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	n_reads++;
	return uncounted_ops->get(conn, key, consistency, limits, ret, ret_problem);
}

/* A wait for a living holder reads the row at the interval asked for, also once it has lasted for
 * longer than a lease. */
static void test_long_wait_for_a_living_holder(void)
{
	enum { LEASE_MS = 1000, WAIT_MS = 2500, POLL_MS = 100 };
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){.lease_ms = LEASE_MS});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){.poll_ms = POLL_MS});
	struct s3once_lock *lock = NULL, *other = NULL;
	struct s3once_lock_error error = {0};
	struct store_ops ops = *b->store->ops;
	CHECK_INT(acquire(a, "waited for", 0, &lock, &error), 0);
	uncounted_ops = b->store->ops;
	ops.get = counted_get;
	b->store->ops = &ops;
	n_reads = 0;
	/* On a host so busy that a heartbeat is late, b may get the lock. Then there is nothing to
	 * check. */
	if (acquire(b, "waited for", WAIT_MS, &other, &error) == -EBUSY)
		/* A pause takes a quarter of the interval or more, but for the first ones. */
		CHECK(n_reads > 0 && n_reads <= WAIT_MS / (POLL_MS / 4) + 10);
	b->store->ops = uncounted_ops;
	s3once_locks_free(b);
	s3once_locks_free(a);
}

static void *wait_for_ever(void *arg)
{
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	return (void *)(intptr_t)acquire(arg, "w", UINT64_MAX, &lock, &error);
}

/* Closing ends a wait that has no end of its own. */
static void test_close_ends_waits(void)
{
	struct s3once_locks *a = open_locks(&(struct s3once_locks_options){0});
	struct s3once_locks *b = open_locks(&(struct s3once_locks_options){0});
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	pthread_t thread;
	void *r;
	CHECK_INT(acquire(a, "w", 0, &lock, &error), 0);
	CHECK(!pthread_create(&thread, NULL, wait_for_ever, b));
	poll(NULL, 0, 100);
	CHECK_INT(s3once_locks_close(b, 0, 1000, &error), 0);
	pthread_join(thread, &r);
	CHECK_INT((intptr_t)r, -ECANCELED);
	s3once_locks_free(b);
	s3once_locks_free(a);
}

int main(void)
{
	scratch_make();
	test_one_at_a_time();
	test_data();
	test_too_much_data();
	test_all_attributes_are_shown();
	test_reentrant_and_slots();
	test_reentrant_after_the_lease();
	test_names_of_slots();
	test_events();
	test_ensure();
	test_handles_and_observations();
	test_seen_by_another_just_now();
	test_an_empty_version_is_seen_first();
	test_observations_of_two_files();
	test_old_observations_are_removed();
	test_look_and_break();
	test_release_of_anothers();
	test_locks_that_only_look_acquire_none();
	test_refused();
	test_missing_strings();
	test_long_wait_for_a_living_holder();
	test_close_ends_waits();
	scratch_remove();
	return check_result();
}
