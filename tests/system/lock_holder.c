/* One of many that take locks again and again, and writes down when it was surely the holder.
 *   lock_holder KIND PLACE KEYS TIMES SECONDS SEED
 * takes one of so many keys at least TIMES times and for at least SECONDS. KIND is "alone": it
 * waits for each lock; "sharing": also keeps what it saw with this host's state; or "short": that
 * too, but every try is a client of its own, which looks once. Each line of standard output is one
 * write: "KEY TOKEN FROM UNTIL", held from FROM to UNTIL (CLOCK_BOOTTIME, ns), or "KEY TOKEN FROM
 * 0", given up from then on. */
#include "base/clock.h"
#include "s3once/lock.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const struct s3once_lock *lock, uint64_t from_ns, uint64_t until_ns)
{
	char line[200];
	int n = snprintf(line, sizeof line, "%s %llu %llu %llu\n", s3once_lock_key(lock),
		(unsigned long long)s3once_lock_token(lock), (unsigned long long)from_ns,
		(unsigned long long)until_ns);
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		abort();
}

/* From a time before asking, so that the lease ends no earlier than what is said. */
static int say_held(const struct s3once_lock *lock)
{
	const uint64_t from_ns = clock_boot_ns();
	const uint64_t left_ms = s3once_lock_remaining_ms(lock);
	if (left_ms)
		say(lock, from_ns, from_ns + left_ms * NS_PER_MS);
	return left_ms > 0;
}

/* 1 held for a while, 0 not this time, -1 what must not be. */
static int hold_once(struct s3once_locks *locks, const char *key, uint64_t wait_ms)
{
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error;
	const struct s3once_lock_request request = {.key = key, .wait_ms = wait_ms};
	int r = s3once_lock_acquire(locks, &request, &lock, &error);
	if (r == -EBUSY && !wait_ms)
		return 0;
	if (r) {
		fprintf(stderr, "%s: %s\n", key, error.text);
		return r == -EIO ? 0 : -1; /* the service: again */
	}
	int times = 0;
	while (times < 4 && say_held(lock)) {
		poll(NULL, 0, 10);
		times++;
	}
	say(lock, clock_boot_ns(), 0);
	r = s3once_lock_release(lock, &error);
	if (r && r != -ESTALE && r != -EIO)
		return -1;
	s3once_lock_free(lock);
	return times > 0;
}

/* As a command that is repeated until it gets the lock. */
static int try_until_held(const struct s3once_locks_options *options, const char *key)
{
	int r = 0;
	while (!r) {
		struct s3once_locks *locks;
		struct s3once_lock_error error;
		if (s3once_locks_open(options, &locks, &error))
			return -1;
		r = hold_once(locks, key, 0);
		s3once_locks_free(locks);
		if (!r)
			poll(NULL, 0, 20);
	}
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 7)
		return 2;
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error;
	const bool is_short = strcmp(argv[1], "short") == 0;
	const struct s3once_locks_options options = {
		.place = argv[2],
		.lease_ms = 3000,
		.poll_ms = 200,
		.observations = strcmp(argv[1], "alone") ? "" : NULL,
	};
	if (!is_short && s3once_locks_open(&options, &locks, &error))
		return 2;
	const unsigned long keys = strtoul(argv[3], NULL, 10), times = strtoul(argv[4], NULL, 10);
	const uint64_t end_ns = clock_boot_ns() + strtoull(argv[5], NULL, 10) * NS_PER_S;
	unsigned seed = (unsigned)strtoul(argv[6], NULL, 10);
	for (unsigned long done = 0; done < times || clock_boot_ns() < end_ns;) {
		char key[32];
		snprintf(key, sizeof key, "key%lu", (unsigned long)rand_r(&seed) % keys);
		int r = is_short ? try_until_held(&options, key)
				 : hold_once(locks, key, UINT64_MAX);
		if (r < 0)
			return 1;
		done += r > 0;
	}
	s3once_locks_free(locks);
	return 0;
}
