/* Holds many locks in one process and says how close to its end any lease came.
 *   lock_many PLACE LOCKS SECONDS
 * prints "acquired", then after SECONDS "least MS lost N". */
#include "base/clock.h"
#include "s3once/lock.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock_error error;
	const struct s3once_locks_options options = {
		.place = argc == 4 ? argv[1] : NULL, .tokens = S3ONCE_LOCK_TOKENS_NONE};
	const size_t n = argc == 4 ? (size_t)strtoull(argv[2], NULL, 10) : 0;
	struct s3once_lock **held = calloc(n + 1, sizeof *held);
	uint64_t least = UINT64_MAX, lost = 0;
	if (!n || !held || s3once_locks_open(&options, &locks, &error))
		return 2;
	for (size_t i = 0; i < n; i++) {
		char key[32];
		snprintf(key, sizeof key, "many%zu", i);
		const struct s3once_lock_request request = {.key = key};
		if (s3once_lock_acquire(locks, &request, &held[i], &error))
			return fprintf(stderr, "%s: %s\n", key, error.text), 1;
	}
	printf("acquired\n");
	fflush(stdout);
	const uint64_t end = clock_boot_ns() + strtoull(argv[3], NULL, 10) * NS_PER_S;
	while (clock_boot_ns() < end) {
		for (size_t i = 0; i < n; i++) {
			const uint64_t left = s3once_lock_remaining_ms(held[i]);
			least = left < least ? left : least;
		}
		poll(NULL, 0, 20);
	}
	for (size_t i = 0; i < n; i++)
		lost += s3once_lock_is_lost(held[i]) ? 1 : 0;
	printf("least %llu lost %llu\n", (unsigned long long)least, (unsigned long long)lost);
	s3once_locks_close(locks, 1, 0, NULL);
	s3once_locks_free(locks);
	free(held);
	return 0;
}
