/* How many requests go at once: lowered once for those that were throttled together, raised by
 * success. */
#include "../check.h"
#include "aws/service.h"
#include "base/clock.h"

static const struct call_limits nobody;

static bool at_once(void *arg)
{
	return true;
}

/* How many get in before one would have to wait. */
static unsigned room(struct pace *pace)
{
	const struct call_limits hasty = {.abandon = at_once};
	unsigned n = 0, ticket;
	while (n < 100 && pace_enter(pace, &hasty, &ticket))
		n++;
	for (unsigned i = 0; i < n; i++)
		pace_leave(pace, ticket, PACE_OTHER);
	return n;
}

/* Sends a request alone, with this result. */
static void send_one(struct pace *pace, enum pace_result result)
{
	unsigned ticket;
	CHECK(pace_enter(pace, &nobody, &ticket));
	pace_leave(pace, ticket, result);
}

/* How a result changes the limit, by the time since the last cut. */
static void test_recovery(void)
{
	static const struct {
		double limit;
		uint64_t since_cut_ms;
		enum pace_result result;
		double want;
	} rows[] = {
		/* Soon after a cut one success counts for little, and then for one. */
		{4, 0, PACE_ACCEPTED, 4.25},
		{4, 1000, PACE_ACCEPTED, 4.25},
		{4, 2000, PACE_ACCEPTED, 5},
		{4, 60000, PACE_ACCEPTED, 5},
		{1, 2000, PACE_ACCEPTED, 2},
		/* The limit does not rise above that of a service that never throttled. */
		{PACE_FREE - 1, 2000, PACE_ACCEPTED, PACE_FREE},
		{PACE_FREE, 2000, PACE_ACCEPTED, PACE_FREE},
		{PACE_FREE, 0, PACE_ACCEPTED, PACE_FREE},
		/* An error that is no throttling says nothing about the limit. */
		{4, 0, PACE_OTHER, 4},
		{4, 60000, PACE_OTHER, 4},
		{PACE_FREE, 60000, PACE_OTHER, PACE_FREE},
		{4, 60000, PACE_THROTTLED, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint64_t begin_ns = clock_boot_ns();
		struct pace pace = {.locked.limit = rows[i].limit,
			.locked.cut_ns = begin_ns - rows[i].since_cut_ms * NS_PER_MS};
		uv_cond_init(&pace.room);
		uv_mutex_init(&pace.mutex);
		send_one(&pace, rows[i].result);
		if (!CHECK(pace.locked.limit > rows[i].want - 0.001) ||
			!CHECK(pace.locked.limit < rows[i].want + 0.001) ||
			!CHECK_INT(pace.locked.in_flight, 0) ||
			!CHECK((atomic_load(&pace.success_ns) != 0) ==
				(rows[i].result == PACE_ACCEPTED)) ||
			!CHECK_INT(atomic_load(&pace.cuts), rows[i].result == PACE_THROTTLED))
			fprintf(stderr, "\trow %zu: %f\n", i, pace.locked.limit);
		/* Only a cut begins the time of caution again. */
		CHECK((pace.locked.cut_ns >= begin_ns) ==
			(rows[i].result == PACE_THROTTLED || !rows[i].since_cut_ms));
		uv_cond_destroy(&pace.room);
		uv_mutex_destroy(&pace.mutex);
	}
}

/* A request that began after the cut cuts again, one from before it does not. */
static void test_cuts(void)
{
	struct pace pace = {.locked.limit = 10};
	unsigned before, after;
	uv_cond_init(&pace.room);
	uv_mutex_init(&pace.mutex);
	pace.locked.in_flight = 20; /* more than the limit, as with heartbeats */
	CHECK(pace_enter(&pace, &(const struct call_limits){.deadline_ns = 1}, &before));
	pace_leave(&pace, before, PACE_THROTTLED);
	CHECK_INT(pace.locked.limit * 10 + 0.5, 70); /* of the limit, which is the lower one */
	pace_leave(&pace, before, PACE_THROTTLED);
	CHECK_INT(pace.locked.limit * 10 + 0.5, 70);
	CHECK(pace_enter(&pace, &(const struct call_limits){.deadline_ns = 1}, &after));
	pace_leave(&pace, before, PACE_THROTTLED);
	CHECK_INT(pace.locked.limit * 10 + 0.5, 70);
	pace_leave(&pace, after, PACE_THROTTLED);
	CHECK_INT(pace.locked.limit * 10 + 0.5, 49);
	CHECK_INT(pace.locked.in_flight, 18);
	CHECK_INT(atomic_load(&pace.cuts), 2);
	uv_cond_destroy(&pace.room);
	uv_mutex_destroy(&pace.mutex);
}

/* A thread that waits for room. */
struct waiter {
	struct pace *pace;
	uv_sem_t entered;
};

static void wait_for_room(void *arg)
{
	struct waiter *waiter = arg;
	unsigned ticket;
	CHECK(pace_enter(waiter->pace, &nobody, &ticket));
	uv_sem_post(&waiter->entered);
}

/* A result that makes room for two wakes two; without room nobody goes on. */
static void test_wakes(void)
{
	struct pace pace = {.locked.limit = 1};
	struct waiter waiter = {.pace = &pace};
	uv_thread_t threads[3];
	unsigned ticket;
	uv_cond_init(&pace.room);
	uv_mutex_init(&pace.mutex);
	uv_sem_init(&waiter.entered, 0);
	CHECK(pace_enter(&pace, &nobody, &ticket));
	for (int i = 0; i < 3; i++)
		CHECK_INT(uv_thread_create(&threads[i], wait_for_room, &waiter), 0);
	uv_sleep(50); /* by then all three wait; else the test says less, but does not fail */
	CHECK(uv_sem_trywait(&waiter.entered) != 0);
	pace_leave(&pace, ticket, PACE_ACCEPTED); /* room for two */
	uv_sem_wait(&waiter.entered);
	uv_sem_wait(&waiter.entered);
	uv_sleep(10);
	CHECK(uv_sem_trywait(&waiter.entered) != 0);
	pace_leave(&pace, 0, PACE_OTHER);
	uv_sem_wait(&waiter.entered);
	for (int i = 0; i < 3; i++)
		uv_thread_join(&threads[i]);
	CHECK_INT(pace.locked.in_flight, 2);
	uv_sem_destroy(&waiter.entered);
	uv_cond_destroy(&pace.room);
	uv_mutex_destroy(&pace.mutex);
}

int main(void)
{
	struct pace pace = {.locked.limit = PACE_FREE};
	unsigned tickets[10];
	uv_cond_init(&pace.room);
	uv_mutex_init(&pace.mutex);
	CHECK_INT(room(&pace), 100);
	for (int i = 0; i < 10; i++)
		CHECK(pace_enter(&pace, &nobody, &tickets[i]));
	for (int i = 0; i < 9; i++)
		pace_leave(&pace, tickets[i], PACE_THROTTLED);
	CHECK_INT(atomic_load(&pace.success_ns), 0);
	CHECK_INT(room(&pace), 6); /* 7, and one is still under way */
	pace_leave(&pace, tickets[9], PACE_OTHER);
	CHECK_INT(room(&pace), 7);
	for (int i = 0; i < 40; i++) { /* never below one */
		CHECK(pace_enter(&pace, &nobody, &tickets[0]));
		pace_leave(&pace, tickets[0], PACE_THROTTLED);
	}
	CHECK_INT(room(&pace), 1);
	CHECK(pace_enter(&pace, &nobody, &tickets[0]));
	const struct call_limits heartbeat = {.deadline_ns = clock_boot_ns() + NS_PER_S};
	CHECK(pace_enter(&pace, &heartbeat, &tickets[1])); /* does not wait */
	pace_leave(&pace, tickets[1], PACE_OTHER);
	const uint64_t before = clock_boot_ns();
	pace_leave(&pace, tickets[0], PACE_ACCEPTED);
	CHECK(atomic_load(&pace.success_ns) >= before);
	CHECK_INT(room(&pace), 2);
	for (int i = 0; i < 100; i++) {
		CHECK(pace_enter(&pace, &nobody, &tickets[0]));
		pace_leave(&pace, tickets[0], PACE_ACCEPTED);
	}
	CHECK(room(&pace) >= 12 && room(&pace) <= 16); /* the root of what succeeded */
	uv_cond_destroy(&pace.room);
	uv_mutex_destroy(&pace.mutex);
	test_recovery();
	test_cuts();
	test_wakes();
	return check_result();
}
