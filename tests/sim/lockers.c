/* Processes that acquire a lock by the library's interface, and act while they hold it. See
 * world.h. */
#include "judge_runs.h"
#include "s3once/lock.h"
#include "story.h"
#include "world.h"
#include <stdlib.h>

#define NS_PER_S 1000000000ULL
#define ACTS     8

static void on_event(void *arg, const struct s3once_lock_event *event)
{
	static const char *const names[] = {[S3ONCE_LOCK_SUSPECT] = "in doubt",
		[S3ONCE_LOCK_RECOVERED] = "ours still",
		[S3ONCE_LOCK_LOST] = "lost",
		[S3ONCE_LOCK_EXPIRED] = "expired",
		[S3ONCE_LOCK_OUTAGE] = "without heartbeats"};
	story("the lock is %s: %s", names[event->type], event->text);
}

/* Checks whether the lock is held, and acts. No other task runs between the two. */
static void act(struct s3once_lock *lock, const struct machine *machine, unsigned lease_s)
{
	struct chance chance = chance_of(world.seed + world.runs, "lock");
	const bool is_shared = world.scenario.dynamodb || world.scenario.s3_locks;
	const struct machine *of = is_shared ? NULL : machine;
	for (unsigned i = 0; i < ACTS; i++) {
		const uint64_t token = s3once_lock_token(lock);
		if (!s3once_lock_remaining_ms(lock)) {
			story("does nothing more under the token %llu", (unsigned long long)token);
			return;
		}
		runs_act(of, token);
		task_sleep_until(world_now_ns() + chance_below(&chance, lease_s * NS_PER_S / ACTS));
	}
}

int locker_run(const struct machine *machine)
{
	const unsigned lease_s = run_lease_s();
	const bool in_s3 = world.scenario.s3_locks, in_table = world.scenario.dynamodb && !in_s3;
	const struct s3once_locks_options options = {
		.place = in_s3      ? "s3://" WORLD_LOCKS "/of-night"
			 : in_table ? "dynamodb:" WORLD_TABLE
				    : "sqlite:/home/up/locks.db",
		.key_name = in_table ? "pk" : NULL,
		.sort_name = in_table ? "sk" : NULL,
		.endpoint_url = run_endpoint(),
		.lease_ms = lease_s * 1000,
		.dynamodb_endpoint_url = RUN_DYNAMODB,
		.region = "us-east-1",
		.callback = on_event};
	const struct s3once_lock_request request = {.key = "night",
		.sort_key = in_table ? "-" : NULL,
		.wait_ms = world.is_calm ? 4 * 3600 * 1000 : world.scenario.lease_s * 2000};
	struct s3once_locks *locks;
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	story("waits for the lock");
	int r = s3once_locks_open(&options, &locks, &error);
	if (r) { /* a stopped process may keep SQLite's file locked */
		if (world.is_calm || world.scenario.dynamodb)
			story_break("locks cannot be opened: %s", error.text);
		story("locks cannot be opened: %s", error.text);
		return 1;
	}
	r = s3once_lock_acquire(locks, &request, &lock, &error);
	if (!r) {
		story("has the lock with the token %llu",
			(unsigned long long)s3once_lock_token(lock));
		act(lock, machine, lease_s);
		r = s3once_lock_release(lock, &error);
	}
	story("is done with the lock%s%s", r ? ": " : "", r ? error.text : "");
	s3once_locks_close(locks, false, 1000, NULL);
	s3once_locks_free(locks);
	return r != 0;
}
