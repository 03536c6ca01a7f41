/* One file, several processes: each key has one winner, a lock is waited for within the limits, and
 * what was acknowledged outlives kill -9. */
#include "base/clock.h"
#include "base/random.h"
#include "sqlite_scratch.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROCESSES 4
#define THREADS   4
#define KEYS      400
#define KILLS     12

/* Shared by all processes. */
static struct {
	_Atomic unsigned winners[KEYS], wrong, ready, acknowledged;
} * shared;

static void *claim_all(void *store)
{
	struct opened opened = {.store = store};
	char sk[16];

	if (store_conn_new(store, &opened.conn) < 0) {
		shared->wrong++;
		return NULL;
	}
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(sk, sizeof sk, "%u", i);
		enum outcome o = put_one(&opened, "p", sk);
		if (o == OUTCOME_OK)
			shared->winners[i]++;
		else if (o != OUTCOME_REFUSED) {
			fprintf(stderr, "%s\n", opened.problem.text);
			shared->wrong++;
		}
	}
	store_conn_free(opened.conn);
	return NULL;
}

/* All open the same new file at the same moment. */
static void contend(void)
{
	struct opened opened;
	pthread_t threads[THREADS];

	shared->ready++;
	while (shared->ready < PROCESSES)
		sched_yield();
	if (open_at("contended.db", &opened) < 0) {
		fprintf(stderr, "%s\n", opened.problem.text);
		shared->wrong++;
		return;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, claim_all, opened.store);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close_it(&opened);
}

static pid_t start(void (*work)(void))
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		_exit(0);
	}
	return child;
}

static void several_processes(void)
{
	pid_t children[PROCESSES];
	int status;

	for (int i = 0; i < PROCESSES; i++)
		children[i] = start(contend);
	for (int i = 0; i < PROCESSES; i++) {
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_INT(status, 0);
	}
	CHECK_INT(shared->wrong, 0);
	for (unsigned i = 0; i < KEYS; i++)
		CHECK_INT(shared->winners[i], 1);
}

/* Writes 0, 1, 2 … until it is killed, and says how far it was acknowledged. */
static void write_on(void)
{
	struct opened opened;
	char sk[16];

	if (open_at("killed.db", &opened) < 0)
		_exit(1);
	for (unsigned i = shared->acknowledged;; i++) {
		snprintf(sk, sizeof sk, "%u", i);
		enum outcome o = put_one(&opened, "p", sk);
		if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
			_exit(1);
		shared->acknowledged = i + 1;
	}
}

static void check_acknowledged(void)
{
	struct opened opened;
	char sk[16];

	if (!CHECK_INT(open_at("killed.db", &opened), 0))
		return;
	for (unsigned i = 0; i < shared->acknowledged; i++) {
		snprintf(sk, sizeof sk, "%u", i);
		CHECK_INT(get_one(&opened, "p", sk), OUTCOME_OK);
	}
	close_it(&opened);
}

static void killed(void)
{
	for (int i = 0; i < KILLS; i++) {
		unsigned until = shared->acknowledged + 1 + (unsigned)random_below(200);
		uint64_t deadline_ns = clock_boot_ns() + 20 * NS_PER_S;
		pid_t child = start(write_on);

		while (shared->acknowledged < until && clock_boot_ns() < deadline_ns)
			sched_yield();
		CHECK(shared->acknowledged >= until);
		CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
		check_acknowledged();
	}
}

static sqlite3 *lock_file(const char *path)
{
	sqlite3 *db;

	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void *unlock_when_waited_for(void *db)
{
	const struct timespec moment = {.tv_nsec = 300 * (long)NS_PER_MS};

	nanosleep(&moment, NULL);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return NULL;
}

static bool is_set(void *flag)
{
	return *(bool *)flag;
}

static void locked(void)
{
	struct opened opened;
	bool stop = false;
	pthread_t thread;

	CHECK_INT(open_at("locked.db", &opened), 0);
	CHECK_INT(put_one(&opened, "p", "before"), OUTCOME_OK);
	sqlite3 *db = lock_file("locked.db");
	uint64_t begun_ns = clock_boot_ns();
	const struct call_limits soon = {.deadline_ns = begun_ns + 150 * NS_PER_MS},
				 stoppable = {.abandon = is_set, .abandon_arg = &stop};
	CHECK_INT(put_within(&opened, "p", "late", &soon), OUTCOME_ABANDONED);
	CHECK(clock_boot_ns() - begun_ns >= 150 * NS_PER_MS);
	CHECK(clock_boot_ns() - begun_ns < 10 * NS_PER_S);
	CHECK_INT(get_one(&opened, "p", "before"), OUTCOME_OK);
	stop = true;
	CHECK_INT(put_within(&opened, "p", "stopped", &stoppable), OUTCOME_ABANDONED);
	CHECK(pthread_create(&thread, NULL, unlock_when_waited_for, db) == 0);
	CHECK_INT(put_one(&opened, "p", "after"), OUTCOME_OK);
	pthread_join(thread, NULL);
	sqlite3_close(db);
	CHECK_INT(get_one(&opened, "p", "late"), OUTCOME_ABSENT);
	CHECK_INT(get_one(&opened, "p", "stopped"), OUTCOME_ABSENT);
	close_it(&opened);
}

/* The outcome of each put of a hurried thread. */
struct hurried {
	struct store *store;
	unsigned index;
	enum outcome outcomes[KEYS];
};

static void *hurry(void *arg)
{
	struct hurried *hurried = arg;
	struct opened opened = {.store = hurried->store};
	char sk[32];

	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t in_ns = random_below(NS_PER_MS << i % 10); /* disks differ */
		const struct call_limits limits = {.deadline_ns = clock_boot_ns() + in_ns};
		if (store_conn_new(opened.store, &opened.conn) < 0)
			break;
		snprintf(sk, sizeof sk, "%u/%u", hurried->index, i);
		hurried->outcomes[i] = put_within(&opened, "hurried", sk, &limits);
		store_conn_free(opened.conn);
	}
	return NULL;
}

/* However short the time: what was abandoned is not there, what was answered is. */
static void abandoned_is_not_applied(void)
{
	static struct hurried hurried[THREADS];
	pthread_t threads[THREADS];
	struct opened opened;
	unsigned counts[2] = {0};
	char sk[32];

	CHECK_INT(open_at("hurried.db", &opened), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		hurried[i] = (struct hurried){.store = opened.store, .index = i};
		CHECK(pthread_create(&threads[i], NULL, hurry, &hurried[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS * KEYS; i++) {
		bool ok = hurried[i / KEYS].outcomes[i % KEYS] == OUTCOME_OK;
		snprintf(sk, sizeof sk, "%u/%u", i / KEYS, i % KEYS);
		CHECK_INT(get_one(&opened, "hurried", sk), ok ? OUTCOME_OK : OUTCOME_ABSENT);
		CHECK(ok || hurried[i / KEYS].outcomes[i % KEYS] == OUTCOME_ABANDONED);
		counts[ok]++;
	}
	CHECK(counts[0] > 0 && counts[1] > 0);
	close_it(&opened);
}

/* A store that is closed while its file is locked does not wait for the file. */
static void close_while_locked(void)
{
	struct opened opened;

	CHECK_INT(open_at("closing.db", &opened), 0);
	sqlite3 *db = lock_file("closing.db");
	uint64_t begun_ns = clock_boot_ns();
	const struct call_limits soon = {.deadline_ns = begun_ns + 20 * NS_PER_MS};
	CHECK_INT(put_within(&opened, "p", "k", &soon), OUTCOME_ABANDONED);
	close_it(&opened);
	CHECK(clock_boot_ns() - begun_ns < 10 * NS_PER_S);
	sqlite3_close(db);
}

int main(void)
{
	shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!CHECK(shared != MAP_FAILED))
		return check_result();
	scratch_make();
	several_processes();
	killed();
	locked();
	abandoned_is_not_applied();
	close_while_locked();
	scratch_remove();
	return check_result();
}
