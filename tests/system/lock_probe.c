/* Locks at the hand of a test: a client whose calls are lines of standard input.
 *   lock_probe PLACE LEASE_MS [dlm]
 * acquire N KEY WAIT_MS [DATA] | release N | heartbeat N | ensure N MS | data N [DATA] |
 * left N | close KEEP TIMEOUT_MS, where N is a digit that names a handle. Each is a thread of its
 * own and answers "COMMAND N RESULT MS [TEXT]"; events come as "event TYPE KEY OWNER". */
#include "base/clock.h"
#include "s3once/lock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct s3once_locks *locks;
static _Atomic(struct s3once_lock *) held[10];

static void on_event(void *arg, const struct s3once_lock_event *event)
{
	static const char *const names[] = {
		[S3ONCE_LOCK_SUSPECT] = "suspect",
		[S3ONCE_LOCK_RECOVERED] = "recovered",
		[S3ONCE_LOCK_LOST] = "lost",
		[S3ONCE_LOCK_EXPIRED] = "expired",
		[S3ONCE_LOCK_OUTAGE] = "outage",
	};
	(void)arg;
	printf("event %s %s %s\n", names[event->type], *event->key ? event->key : "-",
		*event->owner ? event->owner : "-");
}

struct line {
	char command[20], first[1100], second[40], data[200];
	int words, n;
};

static int acquire(const struct line *line, struct s3once_lock_error *error)
{
	const struct s3once_lock_request request = {
		.key = line->first,
		.wait_ms = strtoull(line->second, NULL, 10),
		.data = line->words > 4 ? line->data : NULL,
		.data_bytes = strlen(line->data),
		.reentrant = 1,
	};
	struct s3once_lock *lock;
	int r = s3once_lock_acquire(locks, &request, &lock, error);
	if (!r)
		atomic_store(&held[line->n], lock);
	return r;
}

static int perform(const struct line *line, struct s3once_lock_error *error)
{
	struct s3once_lock *lock = atomic_load(&held[line->n]);
	if (strcmp(line->command, "acquire") == 0)
		return acquire(line, error);
	if (strcmp(line->command, "close") == 0)
		return s3once_locks_close(locks, line->n, strtoull(line->first, NULL, 10), error);
	if (!lock)
		return -1;
	if (strcmp(line->command, "release") == 0)
		return s3once_lock_release(lock, error);
	if (strcmp(line->command, "heartbeat") == 0)
		return s3once_lock_heartbeat(lock, error);
	if (strcmp(line->command, "ensure") == 0)
		return s3once_lock_ensure(lock, strtoull(line->first, NULL, 10), error);
	if (strcmp(line->command, "data") == 0)
		return s3once_lock_set_data(
			lock, line->words > 2 ? line->first : NULL, strlen(line->first), error);
	if (strcmp(line->command, "left") == 0)
		return (int)s3once_lock_remaining_ms(lock);
	return -1;
}

static void *answer(void *arg)
{
	struct line *line = arg;
	struct s3once_lock_error error = {0};
	const uint64_t begun_ns = clock_boot_ns();
	int r = perform(line, &error);
	printf("%s %d %d %llu %s\n", line->command, line->n, r,
		(unsigned long long)((clock_boot_ns() - begun_ns) / NS_PER_MS), error.text);
	free(line);
	return NULL;
}

int main(int argc, char **argv)
{
	struct s3once_lock_error error;
	const bool is_used_well = argc == 3 || (argc == 4 && strcmp(argv[3], "dlm") == 0);
	const struct s3once_locks_options options = {
		.place = is_used_well ? argv[1] : NULL,
		.lease_ms = is_used_well ? strtoull(argv[2], NULL, 10) : 0,
		.dialect = argc == 4 ? S3ONCE_LOCK_DLM : S3ONCE_LOCK_JAVA,
		.owner = "probe",
		.callback = on_event,
	};
	char text[2000];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!is_used_well || s3once_locks_open(&options, &locks, &error))
		return 2;
	pthread_t threads[100];
	size_t n = 0;
	for (; n < 100 && fgets(text, sizeof text, stdin); n++) {
		struct line *line = calloc(1, sizeof *line);
		if (!line)
			return 2;
		line->words = sscanf(text, "%19s %d %1099s %39s %199s", line->command, &line->n,
			line->first, line->second, line->data);
		if (line->words < 2 || line->n < 0 || line->n > 9 ||
			pthread_create(&threads[n], NULL, answer, line))
			return 2;
	}
	while (n)
		pthread_join(threads[--n], NULL);
	s3once_locks_free(locks);
	return 0;
}
