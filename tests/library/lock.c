/* A lock around some work, by the library: says its token and what is left of the lease.
 *   cc lock.c $(pkg-config --cflags --libs s3once) && ./a.out PLACE KEY */
#include <s3once/lock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct s3once_locks *locks = NULL;
	struct s3once_lock *lock;
	struct s3once_lock_error error;
	if (argc != 3)
		return fprintf(stderr, "usage: lock PLACE KEY\n"), 2;
	const struct s3once_locks_options options = {.place = argv[1]};
	const struct s3once_lock_request request = {.key = argv[2], .wait_ms = 5000};
	int r = s3once_locks_open(&options, &locks, &error);
	if (!r)
		r = s3once_lock_acquire(locks, &request, &lock, &error);
	if (!r) {
		printf("token %llu, %s left\n", (unsigned long long)s3once_lock_token(lock),
			s3once_lock_remaining_ms(lock) > 10000 ? "enough" : "little");
		r = s3once_lock_release(lock, &error);
	}
	if (r)
		fprintf(stderr, "lock: %s\n", error.text);
	s3once_locks_free(locks);
	return r != 0;
}
