/* The options of a client of locks: the times of its leases on both sides of each limit, the way
 * its rows are released, the source of its tokens, and the names of its keys. */
#include "../check.h"
#include "base/clock.h"
#include "lock/lock_client.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static int open_client(const struct s3once_locks_options *options, struct s3once_locks **ret)
{
	struct s3once_lock_error error = {0};
	struct s3once_locks_options all = *options;
	all.region = "us-east-1";
	all.endpoint_url = all.dynamodb_endpoint_url = "http://127.0.0.1:1";
	all.place = all.place ? all.place : "dynamodb:t";
	const int r = s3once_locks_open(&all, ret, &error);
	CHECK_INT(r != 0, *error.text != 0);
	return r;
}

/* In ms; 0 of a result: the options are refused. */
static const struct {
	uint64_t lease, heartbeat, suspect, poll;
	int manual;
	uint64_t is_lease, is_heartbeat, is_suspect, is_poll;
} times[] = {
	{0, 0, 0, 0, 0, 20000, 5000, 7500, 1000},
	{0, 0, 0, 50, 0, 20000, 5000, 7500, 50},
	{0, 0, 0, UINT64_MAX, 0, 20000, 5000, 7500, CLOCK_SPAN_MAX_MS},
	{1000, 0, 0, 0, 0, 1000, 250, 375, 1000},
	{999, 0, 0, 0, 0, 0, 0, 0, 0},
	{86400000, 0, 0, 0, 0, 86400000, 21600000, 32400000, 1000},
	{86400001, 0, 0, 0, 0, 0, 0, 0, 0},
	{10000, 5000, 0, 0, 0, 10000, 5000, 2500, 1000},
	{10000, 5001, 0, 0, 0, 0, 0, 0, 0},
	{10000, 2000, 7999, 0, 0, 10000, 2000, 7999, 1000},
	{10000, 2000, 8000, 0, 0, 0, 0, 0, 0},
	{10000, 2000, 8000, 0, 1, 10000, 0, 8000, 1000},
	{10000, 2000, 10000, 0, 1, 10000, 0, 10000, 1000},
	{10000, 2000, 10001, 0, 1, 0, 0, 0, 0},
	{10000, 0, 0, 0, 1, 10000, 0, 3750, 1000},
};

static void test_times(void)
{
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		struct s3once_locks *locks = NULL;
		const struct s3once_locks_options options = {.lease_ms = times[i].lease,
			.heartbeat_ms = times[i].heartbeat,
			.suspect_ms = times[i].suspect,
			.poll_ms = times[i].poll,
			.manual = times[i].manual};
		const int r = open_client(&options, &locks);
		bool good = CHECK_INT(r, times[i].is_lease ? 0 : -EINVAL);
		if (!r) {
			good &= CHECK_INT(locks->lease_ns / NS_PER_MS, times[i].is_lease);
			good &= CHECK_INT(locks->heartbeat_ns / NS_PER_MS, times[i].is_heartbeat);
			good &= CHECK_INT(locks->suspect_ns / NS_PER_MS, times[i].is_suspect);
			good &= CHECK_INT(locks->poll_ms, times[i].is_poll);
			s3once_locks_free(locks);
		}
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* A request that hangs is repeated while most of the lease is left. */
static void test_request_timeout(void)
{
	static const struct {
		uint64_t lease, timeout, is_timeout;
	} rows[] = {{0, 0, 5000}, {60000, 0, 15000}, {60000, 7000, 7000}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct s3once_locks *locks;
		const struct s3once_locks_options options = {
			.lease_ms = rows[i].lease, .request_timeout_ms = rows[i].timeout};
		if (!CHECK_INT(open_client(&options, &locks), 0))
			return;
		CHECK_INT(locks->aws->request_timeout_ms, rows[i].is_timeout);
		s3once_locks_free(locks);
	}
}

/* A lock with a lease of its own has the same parts of it as a client without other options. */
static void test_times_of_one_lock(void)
{
	for (int manual = 0; manual < 2; manual++) {
		struct s3once_locks *locks;
		const struct s3once_locks_options options = {.lease_ms = 10000,
			.heartbeat_ms = 1000,
			.suspect_ms = 2000,
			.manual = manual};
		if (!CHECK_INT(open_client(&options, &locks), 0))
			return;
		struct s3once_lock *lock = lock_new(locks, "k", "", 0, "id", 40 * NS_PER_S);
		CHECK_INT(lease_length_ns(lock->lease), 40 * NS_PER_S);
		s3once_lock_free(lock);
		s3once_locks_free(locks);
	}
}

#define DELETE S3ONCE_LOCK_BY_DELETE
#define MARK   S3ONCE_LOCK_BY_MARK
static const struct {
	const char *place;
	enum s3once_lock_dialect dialect;
	enum s3once_lock_release_by release_by;
	enum s3once_lock_tokens tokens;
	bool is_good, by_mark;
	enum s3once_lock_tokens is_tokens;
} modes[] = {
	{"dynamodb:t", S3ONCE_LOCK_JAVA, 0, 0, true, false, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, MARK, 0, true, true, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, MARK, S3ONCE_LOCK_TOKENS_ROW, true, true,
		S3ONCE_LOCK_TOKENS_ROW},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, DELETE, S3ONCE_LOCK_TOKENS_ROW, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, 0, S3ONCE_LOCK_TOKENS_ROW, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, 0, S3ONCE_LOCK_TOKENS_NONE, true, false,
		S3ONCE_LOCK_TOKENS_NONE},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, 0, S3ONCE_LOCK_TOKENS_NONE + 1, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_JAVA, MARK + 1, 0, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_GO, 0, 0, true, true, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_GO, DELETE, 0, true, false, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_GO, 0, S3ONCE_LOCK_TOKENS_ROW, true, true,
		S3ONCE_LOCK_TOKENS_ROW},
	{"dynamodb:t", S3ONCE_LOCK_PYTHON, 0, 0, true, false, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_PYTHON, MARK, 0, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_DLM, 0, 0, true, false, S3ONCE_LOCK_TOKENS_COUNTER},
	{"dynamodb:t", S3ONCE_LOCK_DLM, MARK, 0, false, false, 0},
	{"dynamodb:t", S3ONCE_LOCK_DLM + 1, 0, 0, false, false, 0},
	{"s3://b/p", 0, 0, 0, true, true, S3ONCE_LOCK_TOKENS_COUNTER},
	{"s3://b", 0, MARK, S3ONCE_LOCK_TOKENS_ROW, true, true, S3ONCE_LOCK_TOKENS_ROW},
	{"s3://b", 0, DELETE, 0, false, false, 0},
	{"sqlite:", 0, 0, 0, true, true, S3ONCE_LOCK_TOKENS_COUNTER},
	{"sqlite:", 0, DELETE, 0, true, false, S3ONCE_LOCK_TOKENS_COUNTER},
	{"sqlite:", S3ONCE_LOCK_GO, 0, 0, false, false, 0},
};

static void test_modes(void)
{
	char folder[] = "/tmp/lock_client.XXXXXX", file[64], command[64];
	CHECK(mkdtemp(folder) != NULL);
	snprintf(file, sizeof file, "sqlite:%s/locks", folder);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct s3once_locks *locks = NULL;
		const bool is_file = strcmp(modes[i].place, "sqlite:") == 0;
		const struct s3once_locks_options options = {
			.place = is_file ? file : modes[i].place,
			.dialect = modes[i].dialect,
			.release_by = modes[i].release_by,
			.tokens = modes[i].tokens,
			.allow_replicas = i % 2 != 0};
		const int r = open_client(&options, &locks);
		bool good = CHECK_INT(r, modes[i].is_good ? 0 : -EINVAL);
		if (!r) {
			good &= CHECK_INT(locks->by_mark, modes[i].by_mark);
			good &= CHECK_INT(locks->tokens, modes[i].is_tokens);
			good &= CHECK_INT(locks->allows_replicas, i % 2 != 0);
			good &= CHECK_INT(locks->is_file_or_bucket, *modes[i].place == 's');
			good &= CHECK_INT(locks->is_s3, modes[i].place[1] == '3');
			s3once_locks_free(locks);
		}
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

/* Names of 1 to 255 bytes, and those of the dialect where none is given. */
static void test_names(void)
{
	static char most[256], more[257];
	memset(most, 'n', 255);
	memset(more, 'n', 256);
	const struct {
		enum s3once_lock_dialect dialect;
		const char *key, *sort, *is_key, *is_sort; /* is_key NULL: refused */
	} names[] = {
		{S3ONCE_LOCK_JAVA, NULL, NULL, "key", NULL},
		{S3ONCE_LOCK_GO, NULL, NULL, "key", NULL},
		{S3ONCE_LOCK_PYTHON, NULL, NULL, "lock_key", "sort_key"},
		{S3ONCE_LOCK_DLM, NULL, NULL, "resource_id", "concurrency_id"},
		{S3ONCE_LOCK_JAVA, "a", "b", "a", "b"},
		{S3ONCE_LOCK_PYTHON, "a", "b", "a", "b"},
		{S3ONCE_LOCK_JAVA, most, most, most, most},
		{S3ONCE_LOCK_JAVA, more, NULL, NULL, NULL},
		{S3ONCE_LOCK_JAVA, "", NULL, NULL, NULL},
		{S3ONCE_LOCK_JAVA, NULL, more, NULL, NULL},
		{S3ONCE_LOCK_JAVA, NULL, "", NULL, NULL},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct s3once_locks *locks = NULL;
		const struct s3once_locks_options options = {.dialect = names[i].dialect,
			.key_name = names[i].key,
			.sort_name = names[i].sort};
		const int r = open_client(&options, &locks);
		bool good = CHECK_INT(r, names[i].is_key ? 0 : -EINVAL);
		if (!r) {
			good &= CHECK_STRING(locks->table.name, "t");
			good &= CHECK_STRING(locks->table.pk_name, names[i].is_key);
			good &= CHECK_STRING(locks->table.sk_name, names[i].is_sort);
			good &= CHECK_INT(
				locks->table.sk_is_number, names[i].dialect == S3ONCE_LOCK_DLM);
			/* Only the lock itself writes its keys. */
			good &= CHECK(lock_reserves_attribute(locks, names[i].is_key));
			good &= CHECK(!names[i].is_sort ||
				      lock_reserves_attribute(locks, names[i].is_sort));
			good &= CHECK(!lock_reserves_attribute(locks, "anything"));
			s3once_locks_free(locks);
		}
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* A name of 1 to 200 bytes; without one, the name says which process it is, and no two are alike.
 */
static void test_owners(void)
{
	static char most[201], more[202];
	struct s3once_locks *locks, *others;
	char pid[32];
	memset(most, 'n', 200);
	memset(more, 'n', 201);
	CHECK_INT(open_client(&(struct s3once_locks_options){.owner = more}, &locks), -EINVAL);
	CHECK_INT(open_client(&(struct s3once_locks_options){.owner = ""}, &locks), -EINVAL);
	if (CHECK_INT(open_client(&(struct s3once_locks_options){.owner = most}, &locks), 0)) {
		CHECK_STRING(locks->owner, most);
		s3once_locks_free(locks);
	}
	if (!CHECK_INT(open_client(&(struct s3once_locks_options){0}, &locks), 0) ||
		!CHECK_INT(open_client(&(struct s3once_locks_options){0}, &others), 0))
		return;
	snprintf(pid, sizeof pid, " pid %d ", (int)getpid());
	CHECK(strstr(locks->owner, pid) != NULL);
	CHECK(strcmp(locks->owner, others->owner) != 0);
	CHECK(!*locks->observations); /* nothing is remembered unless asked for */
	s3once_locks_free(locks);
	s3once_locks_free(others);
}

static void on_pipe(int number)
{
	(void)number;
}

/* The first client of a process ignores SIGPIPE, but leaves the program its own handler. */
static void test_own_handler_of_sigpipe(void)
{
	struct s3once_locks *locks;
	struct sigaction now;
	signal(SIGPIPE, on_pipe);
	if (CHECK_INT(open_client(&(struct s3once_locks_options){0}, &locks), 0))
		s3once_locks_free(locks);
	CHECK(!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == on_pipe);
}

int main(void)
{
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	test_own_handler_of_sigpipe();
	test_times();
	test_request_timeout();
	test_times_of_one_lock();
	test_modes();
	test_names();
	test_owners();
	return check_result();
}
