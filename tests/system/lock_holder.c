/* One of many that take locks again and again, and writes down when it was surely the holder.
 *   lock_holder PLACE KEYS TIMES SECONDS SEED
 * takes one of so many keys at least TIMES times and for at least SECONDS. Each line of standard
 * output is one write: "KEY TOKEN FROM UNTIL", held from FROM to UNTIL (CLOCK_BOOTTIME, ns), or
 * "KEY TOKEN FROM 0", given up from then on. */
#include "base/clock.h"
#include "s3once/lock.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
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

static int hold_once(struct s3once_locks *locks, const char *key)
{
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error;
	const struct s3once_lock_request request = {.key = key, .wait_ms = UINT64_MAX};
	int r = s3once_lock_acquire(locks, &request, &lock, &error);
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

int main(int argc, char **argv)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error;
	const struct s3once_locks_options options = {
		.place = argc == 6 ? argv[1] : NULL, .lease_ms = 3000, .poll_ms = 200};
	if (argc != 6 || s3once_locks_open(&options, &locks, &error))
		return 2;
	const unsigned long keys = strtoul(argv[2], NULL, 10), times = strtoul(argv[3], NULL, 10);
	const uint64_t end_ns = clock_boot_ns() + strtoull(argv[4], NULL, 10) * NS_PER_S;
	unsigned seed = (unsigned)strtoul(argv[5], NULL, 10);
	for (unsigned long done = 0; done < times || clock_boot_ns() < end_ns;) {
		char key[32];
		snprintf(key, sizeof key, "key%lu", (unsigned long)rand_r(&seed) % keys);
		int r = hold_once(locks, key);
		if (r < 0)
			return 1;
		done += r > 0;
	}
	s3once_locks_free(locks);
	return 0;
}
