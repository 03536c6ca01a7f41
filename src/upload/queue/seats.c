#include "upload/queue/seats.h"
#include "base/clock.h"
#include "base/wait_until.h"

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

void seats_wait(struct seats *seats, uv_mutex_t *mutex, uint64_t wait_ns, bool lacks_tasks)
{
	const uint64_t now_ns = clock_boot_ns();
	struct seat seat = {.next = seats->top, .lacks_tasks = lacks_tasks, .since_ns = now_ns};
	const bool watches = !seats->watcher;
	*(watches ? &seats->watcher : &seats->top) = &seat;
	uv_cond_init(&seat.called);
	wait_until(seat.was_called, .told = &seat.called, .mutex = mutex,
		.deadline_ns = watches ? now_ns + wait_ns : 0);
	if (watches)
		seats->watcher = NULL;
	seats->idle_ns += idle_ns(seats, &seat, clock_boot_ns());
	uv_cond_destroy(&seat.called);
}

static void call_seat(struct seat *seat)
{
	seat->was_called = true;
	uv_cond_signal(&seat->called);
}

void seats_call(struct seats *seats)
{
	struct seat *seat = seats->top;
	if (seat) {
		seats->top = seat->next;
		call_seat(seat);
	} else {
		seats_call_watcher(seats);
	}
}

void seats_call_watcher(struct seats *seats)
{
	if (seats->watcher)
		call_seat(seats->watcher);
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
