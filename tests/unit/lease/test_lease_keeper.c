/* Leases are kept by the time of what each wants next; the earliest is always in front. */
#include "../check.h"
#include "lease/lease_keeper.h"
#include <stdlib.h>

#define N 200

static struct lease_keeper keeper;
static struct lease all[N];

static void check_order(size_t expected)
{
	const struct lease *lease, *before = NULL;
	bool is_ordered = true;
	size_t n = 0;
	TAILQ_FOREACH(lease, &keeper.locked.list, locked.next)
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
	keeper_place_locked(&keeper, lease);
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
		keeper_remove_locked(&keeper, &all[i]);
	check_order(N - (N + 2) / 3);
	keeper_remove_locked(&keeper, &all[0]); /* it is not there any more */
	check_order(N - (N + 2) / 3);
	struct lease *first;
	while ((first = TAILQ_FIRST(&keeper.locked.list)))
		keeper_remove_locked(&keeper, first);
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
	keeper_place_locked(&keeper, lease);
	check_order(0);
	lease->locked.busy = false;
	keeper_place_locked(&keeper, lease);
	check_order(1);
	atomic_store(&lease->lost, true);
	keeper_place_locked(&keeper, lease);
	check_order(0);
}

int main(void)
{
	TAILQ_INIT(&keeper.locked.list);
	test_random_times();
	test_what_is_next();
	return check_result();
}
