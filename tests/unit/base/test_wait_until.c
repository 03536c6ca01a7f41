#include "../check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/wait_until.h"

/* Shared by two threads. */
struct place {
	uv_mutex_t mutex;
	uv_cond_t told;
	int told_times, asked, looks;
};

static bool count(void *arg)
{
	((struct place *)arg)->asked++;
	return false;
}

static bool stop(void *arg)
{
	struct place *place = arg;
	uv_mutex_lock(&place->mutex); /* it is asked without the mutex */
	place->asked++;
	uv_mutex_unlock(&place->mutex);
	return true;
}

static void tell(void *arg)
{
	struct place *place = arg;
	uv_mutex_lock(&place->mutex);
	place->told_times++;
	uv_cond_signal(&place->told);
	uv_mutex_unlock(&place->mutex);
}

static void test_a_condition_that_is_met_is_not_waited_for(struct place *place)
{
	CHECK_INT(wait_until(true, .cond = &place->told, .mutex = &place->mutex, .deadline_ns = 1,
			  .abandon = count, .arg = place),
		WAIT_MET);
	CHECK_INT(place->asked, 0);
}

static void test_another_thread_meets_it(struct place *place)
{
	uv_thread_t thread;
	CHECK_INT(thread_start(&thread, tell, place), 0);
	CHECK_INT(wait_until(place->told_times, .cond = &place->told, .mutex = &place->mutex),
		WAIT_MET);
	uv_mutex_unlock(&place->mutex);
	uv_thread_join(&thread);
	uv_mutex_lock(&place->mutex);
}

static void test_a_deadline(struct place *place)
{
	const uint64_t begun_ns = clock_boot_ns(), end_ns = begun_ns + 250 * NS_PER_MS;
	CHECK_INT(wait_until(place->looks++ < 0, .cond = &place->told, .mutex = &place->mutex,
			  .deadline_ns = end_ns, .abandon = count, .arg = place),
		WAIT_LATE);
	CHECK(clock_boot_ns() >= end_ns);
	CHECK(place->asked >= 2); /* also while it waits */
	CHECK(place->looks > place->asked);
	CHECK_INT(wait_until(false, .deadline_ns = end_ns), WAIT_LATE);
}

static void test_abandoned(struct place *place)
{
	CHECK_INT(wait_until(false, .cond = &place->told, .mutex = &place->mutex, .abandon = stop,
			  .arg = place),
		WAIT_ABANDONED);
	CHECK_INT(place->asked, 1);
	/* A condition that becomes true while it is tested counts. */
	CHECK_INT(wait_until(place->asked == 2, .cond = &place->told, .mutex = &place->mutex,
			  .abandon = stop, .arg = place),
		WAIT_MET);
}

/* The condition is one that only time makes true. */
static void test_change_without_a_signal(struct place *place)
{
	const uint64_t end_ns = clock_boot_ns() + 20 * NS_PER_MS;
	CHECK_INT(wait_until(clock_boot_ns() >= end_ns), WAIT_MET);
	CHECK_INT(wait_until(clock_boot_ns() >= end_ns + 20 * NS_PER_MS, .cond = &place->told,
			  .mutex = &place->mutex, .deadline_ns = UINT64_MAX),
		WAIT_MET);
}

static void send_wakeup(void *wakeup)
{
	wakeup_send(wakeup);
}

static void test_bell(void)
{
	struct wakeup wakeup;
	uv_thread_t thread;
	wakeup_init(&wakeup);
	CHECK(!wakeup_await(&wakeup, clock_boot_ns(), NULL, NULL));
	CHECK_INT(thread_start(&thread, send_wakeup, &wakeup), 0);
	CHECK(wakeup_await(&wakeup, 0, NULL, NULL));
	CHECK(!wakeup_await(&wakeup, clock_boot_ns(), NULL, NULL));
	uv_thread_join(&thread);
	wakeup_clear(&wakeup);
}

int main(void)
{
	static void (*const tests[])(struct place *) = {
		test_a_condition_that_is_met_is_not_waited_for, test_another_thread_meets_it,
		test_a_deadline, test_abandoned, test_change_without_a_signal};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct place place = {0};
		CHECK(!uv_mutex_init(&place.mutex) && !uv_cond_init(&place.told));
		uv_mutex_lock(&place.mutex);
		tests[i](&place);
		uv_mutex_unlock(&place.mutex);
		uv_cond_destroy(&place.told);
		uv_mutex_destroy(&place.mutex);
	}
	test_bell();
	return check_result();
}
