#include "lease/leases.h"
#include <errno.h>
#include <stdlib.h>

int leases_reserve_locked(struct leases *leases)
{
	if (leases->locked.count + 2 <= leases->locked.room)
		return 0;
	size_t room = leases->locked.room ? leases->locked.room * 2 : 16;
	struct lease **heap = reallocarray(leases->locked.heap, room, sizeof(struct lease *));
	if (!heap)
		return -ENOMEM;
	leases->locked.heap = heap;
	leases->locked.room = room;
	return 0;
}

static uint64_t time_at(const struct leases *leases, size_t at)
{
	return leases->locked.heap[at]->locked.next_ns;
}

static void set_heap(struct leases *leases, size_t at, struct lease *lease)
{
	leases->locked.heap[at] = lease;
	lease->locked.at = at;
}

static void sift(struct leases *leases, size_t at)
{
	struct lease *lease = leases->locked.heap[at];
	const uint64_t time = lease->locked.next_ns;
	const size_t n = leases->locked.n;
	while (at > 1 && time_at(leases, at / 2) > time) {
		set_heap(leases, at, leases->locked.heap[at / 2]);
		at /= 2;
	}
	for (size_t child; (child = at * 2) <= n; at = child) {
		if (child < n && time_at(leases, child + 1) < time_at(leases, child))
			child++;
		if (time_at(leases, child) >= time)
			break;
		set_heap(leases, at, leases->locked.heap[child]);
	}
	set_heap(leases, at, lease);
}

void leases_remove_locked(struct leases *leases, struct lease *lease)
{
	const size_t at = lease->locked.at;
	if (!at)
		return;
	lease->locked.at = 0;
	struct lease *last = leases->locked.heap[leases->locked.n--];
	if (last != lease) {
		set_heap(leases, at, last);
		sift(leases, at);
	}
}

/* When this lease is due next, for its heartbeat or for an event. */
static uint64_t next_of(const struct lease *lease)
{
	uint64_t next = UINT64_MAX;
	const uint64_t ends = atomic_load(&lease->ends_ns);
	if (atomic_load(&lease->lost) || atomic_load(&lease->stopping))
		return next;
	if (lease->locked.beats && !lease->locked.busy)
		next = lease->locked.due_ns;
	if (!lease->locked.expired && ends) {
		uint64_t alarm = ends;
		if (!lease->locked.suspected)
			alarm = ends > lease->options.suspect_ns ? ends - lease->options.suspect_ns
								 : 0;
		if (alarm < next)
			next = alarm;
	}
	return next;
}

void leases_place_locked(struct leases *leases, struct lease *lease)
{
	lease->locked.next_ns = next_of(lease);
	if (lease->locked.next_ns == UINT64_MAX) {
		leases_remove_locked(leases, lease);
		return;
	}
	if (!lease->locked.at)
		set_heap(leases, ++leases->locked.n, lease);
	sift(leases, lease->locked.at);
	if (leases->locked.heap[1] == lease)
		uv_cond_signal(&leases->due);
}
