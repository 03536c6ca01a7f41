/* The queue of a client's events, against a model: each event comes once, in its order, and says
 * which lock it is about, unless that was released meanwhile. The descriptor is readable as long as
 * events wait, and no longer. */
#include "../check.h"
#include "lock/lock_client.h"
#include <poll.h>
#include <unistd.h>

#define ROUNDS 20000
#define LOCKS  4
#define QUEUED 64

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33) % n;
}

struct expected {
	enum s3once_lock_event_type type;
	const struct s3once_lock *lock;
	const char *key, *sort;
	char text[20], owner[20];
};

static struct s3once_locks locks;
static struct s3once_lock held[LOCKS];
static struct expected queue[QUEUED];
static unsigned n_queued, n_seen;

static void check_event(void *arg, const struct s3once_lock_event *event)
{
	const struct expected *want = arg;
	n_seen++;
	CHECK_INT(event->type, want->type);
	CHECK(event->lock == want->lock);
	CHECK_STRING(event->key, want->key);
	CHECK_STRING(event->sort_key, want->sort);
	CHECK_STRING(event->text, want->text);
	CHECK_STRING(event->owner, want->owner);
}

static bool is_readable(void)
{
	struct pollfd fd = {.fd = s3once_locks_event_fd(&locks), .events = POLLIN};
	return poll(&fd, 1, 0) == 1;
}

static void add(unsigned round)
{
	static const enum lease_event events[] = {
		LEASE_SUSPECT, LEASE_RECOVERED, LEASE_LOST, LEASE_EXPIRED, LEASE_OUTAGE};
	static const enum s3once_lock_event_type types[] = {S3ONCE_LOCK_SUSPECT,
		S3ONCE_LOCK_RECOVERED, S3ONCE_LOCK_LOST, S3ONCE_LOCK_EXPIRED, S3ONCE_LOCK_OUTAGE};
	const unsigned k = below(5);
	struct s3once_lock *lock = &held[below(LOCKS)];
	struct expected *want = &queue[n_queued++];
	/* An outage is the store's, and names no lock. */
	const bool has_lock = events[k] != LEASE_OUTAGE;
	*want = (struct expected){.type = types[k], .lock = has_lock ? lock : NULL};
	want->key = has_lock ? lock->key : "";
	want->sort = has_lock ? lock->sort : "";
	snprintf(want->text, sizeof want->text, "text %u", round);
	snprintf(want->owner, sizeof want->owner, "%s", below(2) ? "owner" : "");
	lock_events_add(lock, events[k], want->text, want->owner);
}

static void take(void)
{
	n_seen = 0;
	CHECK_INT(s3once_locks_next_event(&locks, check_event, &queue[0]), n_queued > 0);
	CHECK_INT(n_seen, n_queued > 0);
	if (n_queued)
		memmove(queue, queue + 1, --n_queued * sizeof *queue);
}

/* The lock is released: its events keep their keys, and point to nothing. */
static void forget(void)
{
	const struct s3once_lock *lock = &held[below(LOCKS)];
	lock_events_forget(&locks.events, lock);
	for (unsigned i = 0; i < n_queued; i++)
		if (queue[i].lock == lock)
			queue[i].lock = NULL;
}

static void test_queue(void)
{
	CHECK_INT(lock_events_init(&locks.events, NULL, NULL), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned what = below(9);
		if (what < 4 && n_queued < QUEUED)
			add(round);
		else if (what < 8)
			take();
		else
			forget();
		if (!CHECK(is_readable() == (n_queued > 0))) {
			fprintf(stderr, "\tround %u, %u events wait\n", round, n_queued);
			break;
		}
	}
	add(ROUNDS); /* events that nobody takes are freed */
	lock_events_stop(&locks.events);
	lock_events_clear(&locks.events);
	n_queued = 0;
}

static void check_cut(void *arg, const struct s3once_lock_event *event)
{
	CHECK_INT(strlen(event->text), LEASE_TEXT_MAX - 1);
	CHECK_INT(strlen(event->owner), LEASE_TEXT_MAX - 1);
}

/* A text that is too long is cut, and not lost. */
static void test_long_text(void)
{
	char text[2 * LEASE_TEXT_MAX];
	memset(text, 't', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	CHECK_INT(lock_events_init(&locks.events, NULL, NULL), 0);
	lock_events_add(&held[0], LEASE_LOST, text, text);
	CHECK_INT(s3once_locks_next_event(&locks, check_cut, NULL), 1);
	lock_events_stop(&locks.events);
	lock_events_clear(&locks.events);
}

/* Events that a thread of the queue hands over, one at a time, in their order. */
static struct {
	uv_mutex_t mutex;
	unsigned n, under_way, most;
	bool in_order;
} handed;

/* The callback may call the library, as to free the lock that is lost. */
static void on_event(void *arg, const struct s3once_lock_event *event)
{
	char text[20];
	lock_events_forget(&locks.events, event->lock);
	uv_mutex_lock(&handed.mutex);
	handed.under_way++;
	handed.most = handed.under_way > handed.most ? handed.under_way : handed.most;
	snprintf(text, sizeof text, "text %u", handed.n++);
	handed.in_order &= strcmp(event->text, text) == 0 && arg == &handed;
	uv_mutex_unlock(&handed.mutex);
	usleep(100);
	uv_mutex_lock(&handed.mutex);
	handed.under_way--;
	uv_mutex_unlock(&handed.mutex);
}

static void test_callback(void)
{
	handed.in_order = true;
	uv_mutex_init(&handed.mutex);
	CHECK_INT(lock_events_init(&locks.events, on_event, &handed), 0);
	CHECK_INT(s3once_locks_event_fd(&locks), -1);
	for (unsigned i = 0; i < 100; i++) {
		char text[20];
		snprintf(text, sizeof text, "text %u", i);
		lock_events_add(&held[i % LOCKS], LEASE_SUSPECT, text, "");
	}
	unsigned n = 0;
	for (unsigned i = 0; i < 5000 && n < 100; i++) {
		usleep(1000);
		uv_mutex_lock(&handed.mutex);
		n = handed.n;
		uv_mutex_unlock(&handed.mutex);
	}
	CHECK_INT(n, 100);
	lock_events_stop(&locks.events);
	/* No call begins after that. */
	lock_events_add(&held[0], LEASE_LOST, "late", "");
	usleep(5000);
	CHECK_INT(handed.n, 100);
	CHECK_INT(handed.most, 1);
	CHECK(handed.in_order);
	lock_events_clear(&locks.events);
	uv_mutex_destroy(&handed.mutex);
}

int main(void)
{
	for (unsigned i = 0; i < LOCKS; i++) {
		held[i].locks = &locks;
		snprintf(held[i].key, sizeof held[i].key, "key %u", i);
		snprintf(held[i].sort, sizeof held[i].sort, "%s", i % 2 ? "sort" : "");
	}
	test_queue();
	test_long_text();
	test_callback();
	return check_result();
}
