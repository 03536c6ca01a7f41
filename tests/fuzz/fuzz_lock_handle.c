/* Handles of locks, as a shell passes them on: any text is none, or of a lock that is another's or
 * gone, but never one that is held. */
#include "fuzz.h"
#include "s3once/lock.h"
#include <errno.h>

/* A store without any lock; open until the end. */
static struct s3once_locks *locks;

static char folder[] = "/tmp/fuzz-XXXXXX";

static void remove_folder(void)
{
	static const char *const names[] = {"locks.db", "locks.db-wal", "locks.db-shm", ""};
	char path[80];
	s3once_locks_free(locks);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		remove(path);
	}
}

static void open_locks(void)
{
	char place[80];
	ENSURE(mkdtemp(folder));
	atexit(remove_folder);
	snprintf(place, sizeof place, "sqlite:%s/locks.db", folder);
	const struct s3once_locks_options options = {.place = place};
	ENSURE(s3once_locks_open(&options, &locks, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct s3once_lock *lock = NULL;
	struct s3once_lock_error error = {0};
	char *handle = fuzz_string(data, size);
	if (!locks)
		open_locks();
	int r = s3once_lock_resume(locks, handle, &lock, &error);
	ENSURE(r == -EINVAL || r == -ESTALE);
	ENSURE(!lock && *error.text);
	free(handle);
	return 0;
}
