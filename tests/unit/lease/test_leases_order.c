/* Leases are kept by the time of what each wants next; the earliest is always in front. */
#include "../check.h"
#include "lease/leases.h"
#include <stdlib.h>

#define N 200

static struct leases leases;
static struct lease all[N];

static void check_order(size_t expected)
{
	const struct lease *lease, *before = NULL;
	bool is_ordered = true;
	size_t n = 0;
	TAILQ_FOREACH(lease, &leases.locked.list, locked.next)
	{
		is_ordered =
			is_ordered && (!before || before->locked.next_ns <= lease->locked.next_ns);
		before = lease;
		n++;
	}
	CHECK_INT(n, expected);
	CHECK(is_ordered);
}

static void place_at(struct lease *lease, uint64_t due_ns)
{
	lease->locked.beats = true;
	lease->locked.due_ns = due_ns;
	leases_place_locked(&leases, lease);
}

static void test_random_times(void)
{
	srandom(1);
	for (size_t i = 0; i < N; i++)
		place_at(&all[i], (uint64_t)random() % 1000);
	check_order(N);
	for (size_t i = 0; i < N; i += 2)
		place_at(&all[i], (uint64_t)random() % 1000);
	check_order(N);
	for (size_t i = 0; i < N; i += 3)
		leases_remove_locked(&leases, &all[i]);
	check_order(N - (N + 2) / 3);
	leases_remove_locked(&leases, &all[0]); /* it is not there any more */
	check_order(N - (N + 2) / 3);
	struct lease *first;
	while ((first = TAILQ_FIRST(&leases.locked.list)))
		leases_remove_locked(&leases, first);
}

static void test_what_is_next(void)
{
	struct lease *lease = &all[0];
	lease->options.suspect_ns = 10;
	atomic_store(&lease->ends_ns, 100);
	place_at(lease, 50);
	CHECK_INT(lease->locked.next_ns, 50);
	place_at(lease, 95); /* it is suspect before its heartbeat */
	CHECK_INT(lease->locked.next_ns, 90);
	lease->locked.suspected = true;
	place_at(lease, 200); /* it has run out before its heartbeat */
	CHECK_INT(lease->locked.next_ns, 100);
	lease->locked.expired = true;
	place_at(lease, 200);
	CHECK_INT(lease->locked.next_ns, 200);
	lease->locked.busy = true; /* nothing more is wanted until the request has ended */
	leases_place_locked(&leases, lease);
	check_order(0);
	lease->locked.busy = false;
	leases_place_locked(&leases, lease);
	check_order(1);
	atomic_store(&lease->lost, true);
	leases_place_locked(&leases, lease);
	check_order(0);
}

int main(void)
{
	TAILQ_INIT(&leases.locked.list);
	test_random_times();
	test_what_is_next();
	return check_result();
}
