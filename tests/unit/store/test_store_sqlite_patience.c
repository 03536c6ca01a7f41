/* A file that stays locked is an error after 30 s and not before, for writing and for opening.
 * Takes that long: only with S3ONCE_FULL=1. */
#include "base/clock.h"
#include "sqlite_scratch.h"
#include <pthread.h>
#include <sqlite3.h>

#define SKIPPED 77

static void check_patience(uint64_t waited_ns, const struct problem *problem)
{
	CHECK(waited_ns >= 29 * NS_PER_S && waited_ns < 60 * NS_PER_S);
	CHECK(strstr(problem->text, "locked") && strstr(problem->text, ".db"));
}

struct opening {
	int error;
	uint64_t waited_ns;
	struct opened opened;
};

static void *open_locked(void *arg)
{
	struct opening *opening = arg;
	uint64_t begun_ns = clock_boot_ns();

	opening->error = open_at("exclusive.db", &opening->opened);
	opening->waited_ns = clock_boot_ns() - begun_ns;
	return NULL;
}

static sqlite3 *locker(const char *path, const char *sql)
{
	sqlite3 *db;

	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	CHECK(chmod(path, 0600) == 0);
	return db;
}

int main(void)
{
	const char *full = getenv("S3ONCE_FULL");
	struct opened opened;
	struct opening opening;
	pthread_t thread;

	if (!full || strcmp(full, "1"))
		return SKIPPED;
	scratch_make();
	CHECK_INT(open_at("marks.db", &opened), 0);
	sqlite3 *exclusive = locker("exclusive.db", "BEGIN EXCLUSIVE; CREATE TABLE t(x)");
	sqlite3 *writing = locker("marks.db", "BEGIN IMMEDIATE");
	CHECK(pthread_create(&thread, NULL, open_locked, &opening) == 0);
	uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(put_one(&opened, "p", "k"), OUTCOME_SETUP);
	check_patience(clock_boot_ns() - begun_ns, &opened.problem);
	pthread_join(thread, NULL);
	CHECK(opening.error < 0);
	check_patience(opening.waited_ns, &opening.opened.problem);
	CHECK_INT(get_one(&opened, "p", "k"), OUTCOME_ABSENT);
	close_it(&opened);
	sqlite3_close(exclusive);
	sqlite3_close(writing);
	scratch_remove();
	return check_result();
}
