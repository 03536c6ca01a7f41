#include "base/clock.h"
#include "base/pool.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <string.h>

#define CLOSE_THREADS 16
#define LEAST_NS      (NS_PER_S / 2) /* for one release of the first round */

/* A round of releases. Several run at once, so that one that hangs does not delay the others for
 * long. */
struct round {
	struct pool pool;              /* its items are locks */
	uint64_t deadline_ns, each_ns; /* each_ns is the most time for one */
	uv_mutex_t mutex;
	struct {
		int result;
		struct s3once_lock_error error;
	} locked;
};

static void give_up_one(struct round *round, struct s3once_lock *lock)
{
	struct s3once_lock_error error = {0};
	const uint64_t until_ns = clock_boot_ns() + round->each_ns;
	const int r = lock_give_up(
		lock, until_ns < round->deadline_ns ? until_ns : round->deadline_ns, &error);
	if (!r || r == -ESTALE)
		return;
	uv_mutex_lock(&round->mutex);
	round->locked.result = r;
	round->locked.error = error;
	uv_mutex_unlock(&round->mutex);
}

static void give_up_all(void *arg)
{
	struct round *round = arg;
	for (struct s3once_lock *lock; (lock = pool_take(&round->pool));)
		give_up_one(round, lock);
}

static int run_round(struct s3once_lock *first, uint64_t deadline_ns, uint64_t each_ns,
	struct s3once_lock_error *ret)
{
	struct round round = {.deadline_ns = deadline_ns, .each_ns = each_ns};
	if (pool_init(&round.pool, &(struct pool_options){.most = CLOSE_THREADS, .room = 1}))
		return lock_error(ret, -ENOMEM, "out of memory");
	uv_mutex_init(&round.mutex);
	for (struct s3once_lock *lock = first; lock; lock = lock->next)
		if (!atomic_load(&lock->settled) &&
			!pool_feed(&round.pool, give_up_all, &round, lock))
			give_up_one(&round, lock);
	pool_end(&round.pool);
	uv_mutex_destroy(&round.mutex);
	if (round.locked.result && ret)
		*ret = round.locked.error;
	return round.locked.result;
}

int s3once_locks_close(
	struct s3once_locks *locks, int keep, uint64_t timeout_ms, struct s3once_lock_error *ret)
{
	const uint64_t most_ns =
		timeout_ms < LOCK_DAY_MS ? timeout_ms * NS_PER_MS : LOCK_DAY_MS * NS_PER_MS;
	const uint64_t deadline_ns = clock_boot_ns() + most_ns;
	uv_mutex_lock(&locks->mutex);
	atomic_store(&locks->closed, true);
	uv_cond_broadcast(&locks->closing);
	struct s3once_lock *first = locks->locked.first;
	uv_mutex_unlock(&locks->mutex);
	/* Only their user frees handles, and does not do so during this call. */
	if (keep) {
		for (struct s3once_lock *lock = first; lock; lock = lock->next)
			lease_stop(lock->lease);
		return 0;
	}
	const uint64_t each_ns = most_ns / 16 > LEAST_NS ? most_ns / 16 : LEAST_NS;
	int r = run_round(first, deadline_ns, each_ns, ret);
	return r && clock_boot_ns() < deadline_ns ? run_round(first, deadline_ns, most_ns, ret) : r;
}
