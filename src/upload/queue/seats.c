#include "upload/queue/seats.h"
#include "base/clock.h"
#include "base/thread.h"

struct seat {
	struct seat *next;
	uv_cond_t called;
	bool was_called, lacks_tasks;
	uint64_t since_ns;
};

static uint64_t idle_ns(const struct seats *seats, const struct seat *seat, uint64_t now_ns)
{
	const uint64_t from_ns =
		seat->since_ns > seats->window_ns ? seat->since_ns : seats->window_ns;
	return seat->lacks_tasks && now_ns > from_ns ? now_ns - from_ns : 0;
}

static void sit(struct seats *seats, struct seat *seat, uv_mutex_t *mutex)
{
	seat->next = seats->top;
	seats->top = seat;
	while (!seat->was_called)
		uv_cond_wait(&seat->called, mutex);
}

static void watch(struct seats *seats, struct seat *seat, uv_mutex_t *mutex, uint64_t wait_ns)
{
	seats->watcher = seat;
	thread_cond_wait(&seat->called, mutex, wait_ns);
	seats->watcher = NULL;
}

void seats_wait(struct seats *seats, uv_mutex_t *mutex, uint64_t wait_ns, bool lacks_tasks)
{
	struct seat seat = {.lacks_tasks = lacks_tasks, .since_ns = clock_boot_ns()};
	uv_cond_init(&seat.called);
	if (seats->watcher)
		sit(seats, &seat, mutex);
	else
		watch(seats, &seat, mutex, wait_ns);
	seats->idle_ns += idle_ns(seats, &seat, clock_boot_ns());
	uv_cond_destroy(&seat.called);
}

void seats_call(struct seats *seats)
{
	struct seat *seat = seats->top;
	if (!seat) {
		seats_call_watcher(seats);
		return;
	}
	seats->top = seat->next;
	seat->was_called = true;
	uv_cond_signal(&seat->called);
}

void seats_call_watcher(struct seats *seats)
{
	if (seats->watcher)
		uv_cond_signal(&seats->watcher->called);
}

void seats_keep_watch(struct seats *seats)
{
	if (!seats->watcher && seats->top)
		seats_call(seats);
}

uint64_t seats_idle_ns(const struct seats *seats, uint64_t now_ns)
{
	uint64_t ns = seats->idle_ns;
	for (const struct seat *seat = seats->top; seat; seat = seat->next)
		ns += idle_ns(seats, seat, now_ns);
	return seats->watcher ? ns + idle_ns(seats, seats->watcher, now_ns) : ns;
}

void seats_begin_window(struct seats *seats, uint64_t now_ns)
{
	seats->idle_ns = 0;
	seats->window_ns = now_ns;
}
