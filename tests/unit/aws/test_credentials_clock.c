/* When credentials that expire are renewed, by clocks that the test moves. Time that has passed
 * since boot decides when to renew, and the wall clock when they have expired. */
#include "../check.h"
#include "../store/sqlite_scratch.h"
#include "aws/call.h"
#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include "base/log.h"
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WALL_S 1700000000 /* the wall clock stands still, until the test moves it */

static _Atomic int64_t boot_shift_ns, wall_s = WALL_S;

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	const int result = (int)syscall(SYS_clock_gettime, clock, ret);
	if (clock == CLOCK_REALTIME)
		*ret = (struct timespec){.tv_sec = wall_s, .tv_nsec = 500000000};
	if (clock == CLOCK_BOOTTIME) {
		const int64_t ns = ret->tv_sec * 1000000000LL + ret->tv_nsec + boot_shift_ns;
		*ret = (struct timespec){ns / 1000000000, ns % 1000000000};
	}
	return result;
}

/* Sets the output of the profile's program. life_s 0: the credentials never expire. */
static void write_keys(const char *key, int64_t life_s)
{
	char until[21] = "";
	FILE *file = fopen("next", "w");
	clock_format_iso(clock_wall_s() + life_s, until);
	fprintf(file,
		"{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"s\","
		"\"SessionToken\":\"t\"%s%s%s}",
		key, life_s ? ",\"Expiration\":\"" : "", life_s ? until : "", life_s ? "\"" : "");
	fclose(file);
	CHECK_INT(rename("next", "keys.json"), 0);
}

static struct credentials_chain *chain_of(uint64_t patience_ms)
{
	const struct credentials_options options = {
		.profile = "p", .config_path = "config", .patience_ms = patience_ms};
	struct credentials_chain *chain = NULL;
	if (credentials_chain_new(&options, &chain))
		abort();
	return chain;
}

/* Gets the credentials, and checks whose they are. NULL: it fails. */
static unsigned get(struct credentials_chain *chain, const char *key)
{
	struct credentials got = {0};
	struct problem problem = {0};
	unsigned generation = 0;
	const int error = credentials_get(chain, NULL, &got, &generation, &problem);
	if (!CHECK_INT(error == 0, key != NULL) || (key && !CHECK_STRING(got.access_key, key)))
		fprintf(stderr, "\t%s\n", problem.text);
	credentials_wipe(&got);
	return generation;
}

static uint64_t next_ns(struct credentials_chain *chain)
{
	uv_mutex_lock(&chain->mutex);
	const uint64_t ns = chain->locked.next_ns;
	uv_mutex_unlock(&chain->mutex);
	return ns;
}

static unsigned loads(struct credentials_chain *chain)
{
	uv_mutex_lock(&chain->mutex);
	const unsigned n = chain->locked.ended;
	uv_mutex_unlock(&chain->mutex);
	return n;
}

/* Wakes the keeper, which would see only some time later that a clock was moved. */
static void wake(struct credentials_chain *chain)
{
	uv_mutex_lock(&chain->mutex);
	uv_cond_broadcast(&chain->changed);
	uv_mutex_unlock(&chain->mutex);
}

/* Waits for that many loads, for five seconds at most. If there are that many already, waits a
 * moment for one that is due too early. */
static bool check_loads(struct credentials_chain *chain, unsigned n)
{
	wake(chain);
	if (loads(chain) == n)
		usleep(50000);
	for (unsigned i = 0; i < 1000 && loads(chain) < n; i++)
		usleep(5000);
	return CHECK_INT(loads(chain), n);
}

/* Time passes for both clocks, after the keeper has seen the present one. */
static void pass_s(int64_t s)
{
	wall_s += s;
	boot_shift_ns += s * (int64_t)NS_PER_S;
}

/* A quarter of an hour before they expire, or when two thirds of their life have passed. */
static void test_when(void)
{
	static const struct {
		int64_t life_s, in_s;
	} lives[] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {60, 40}, {2697, 1798}, {2700, 1800},
		{2703, 1803}, {3600, 2700}, {43200, 42300}};
	for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
		write_keys("first", lives[i].life_s);
		struct credentials_chain *chain = chain_of(1);
		const uint64_t before_ns = clock_boot_ns();
		get(chain, "first");
		const uint64_t in_ns = (uint64_t)lives[i].in_s * NS_PER_S, due_ns = next_ns(chain);
		bool good = CHECK(due_ns >= before_ns + in_ns);
		good &= CHECK(due_ns <= clock_boot_ns() + in_ns);
		if (!good)
			fprintf(stderr, "\ta life of %d s\n", (int)lives[i].life_s);
		credentials_chain_free(chain);
	}
}

static void test_renewal(void)
{
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(1);
	const unsigned first = get(chain, "first");
	credentials_accepted(chain);
	write_keys("second", 2 * 3600);
	/* The wall clock is set: they are no older for that. */
	wall_s += 600;
	check_loads(chain, 1);
	wall_s -= 600;
	pass_s(2690);
	check_loads(chain, 1);
	CHECK_INT(get(chain, "first"), first);
	pass_s(10);
	check_loads(chain, 2);
	CHECK_INT(get(chain, "second"), first + 1);
	/* The same keys with a longer life are the same generation. */
	write_keys("second", 3 * 3600);
	pass_s(3600);
	check_loads(chain, 3);
	CHECK_INT(get(chain, "second"), first + 1);
	/* Time passes while the wall clock is behind. */
	write_keys("third", 3600);
	boot_shift_ns += 7200 * (int64_t)NS_PER_S;
	check_loads(chain, 4);
	CHECK_INT(get(chain, "third"), first + 2);
	credentials_chain_free(chain);
}

/* Those in force are used until they expire, however often a renewal fails. Then calls wait, and
 * those that come later go on. */
static void test_failures(void)
{
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(1);
	get(chain, "first");
	credentials_accepted(chain);
	CHECK_INT(unlink("keys.json"), 0);
	pass_s(2701);
	for (unsigned failures = 1; failures <= 8; failures++) {
		uint64_t most_ms = 500;
		for (unsigned i = 0; i < failures && most_ms < 30000; i++)
			most_ms *= 2;
		most_ms = most_ms < 30000 ? most_ms : 30000;
		check_loads(chain, 1 + failures);
		uv_mutex_lock(&chain->mutex);
		const uint64_t in_ns = chain->locked.next_ns - chain->locked.ended_ns;
		bool good = CHECK_INT(chain->locked.failures, failures);
		uv_mutex_unlock(&chain->mutex);
		good &= CHECK(in_ns <= most_ms * NS_PER_MS);
		good &= CHECK(in_ns + 10 * NS_PER_MS >= most_ms / 2 * NS_PER_MS);
		if (!good)
			fprintf(stderr, "\tfailure %u\n", failures);
		get(chain, "first");
		boot_shift_ns += (int64_t)in_ns;
	}
	check_loads(chain, 10);
	wall_s = WALL_S + 3600 - 1;
	get(chain, "first");
	wall_s = WALL_S + 3600;
	get(chain, NULL);
	write_keys("second", 3600);
	boot_shift_ns += 30 * (int64_t)NS_PER_S;
	wake(chain);
	for (unsigned i = 0; i < 1000 && chain->generation == 1; i++)
		usleep(5000);
	get(chain, "second");
	credentials_chain_free(chain);
}

/* The wall clock jumps, as when a host wakes up: the next call has others at once. */
static void test_expired(void)
{
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(60000);
	get(chain, "first");
	credentials_accepted(chain);
	wall_s += 3599;
	get(chain, "first");
	wall_s += 1;
	write_keys("second", 3600);
	get(chain, "second");
	CHECK_INT(loads(chain), 2);
	credentials_chain_free(chain);
}

/* Gets credentials that have expired, for a moment after a load has failed, and checks that the
 * call would go on waiting. */
static void check_waits(struct credentials_chain *chain)
{
	bool has_failed = false;
	for (unsigned i = 0; i < 100 && !has_failed; i++) {
		struct credentials got = {0};
		struct problem problem = {0};
		unsigned generation;
		uv_mutex_lock(&chain->mutex);
		has_failed = chain->locked.failures > 0;
		uv_mutex_unlock(&chain->mutex);
		const struct call_limits limits = {
			.deadline_ns = clock_boot_ns() + 100 * NS_PER_MS};
		if (!CHECK_INT(credentials_get(chain, &limits, &got, &generation, &problem),
			    -ECANCELED))
			fprintf(stderr, "\t%s\n", problem.text);
		credentials_wipe(&got);
	}
	CHECK(has_failed);
}

/* Each pause has all of the patience, however long earlier ones were. */
static void test_pauses(void)
{
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(300000);
	get(chain, "first");
	credentials_accepted(chain);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(unlink("keys.json"), 0);
		pass_s(3600);
		check_waits(chain);
		boot_shift_ns += 250 * (int64_t)NS_PER_S;
		check_waits(chain);
		write_keys("next", 3600);
		boot_shift_ns += 30 * (int64_t)NS_PER_S;
		wake(chain);
		get(chain, "next");
	}
	CHECK_INT(unlink("keys.json"), 0);
	pass_s(3600);
	check_waits(chain);
	boot_shift_ns += 300 * (int64_t)NS_PER_S;
	get(chain, NULL);
	credentials_chain_free(chain);
}

static void test_no_expiry(void)
{
	wall_s = WALL_S;
	write_keys("first", 0);
	struct credentials_chain *chain = chain_of(1);
	get(chain, "first");
	CHECK(next_ns(chain) == UINT64_MAX);
	pass_s(1000000);
	check_loads(chain, 1);
	get(chain, "first");
	credentials_chain_free(chain);
}

/* A refusal that may have another reason causes a load once in a minute at most. */
static void test_guesses(void)
{
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(1);
	const unsigned generation = get(chain, "first");
	credentials_accepted(chain);
	boot_shift_ns += 55 * (int64_t)NS_PER_S;
	CHECK(!credentials_refused(chain, generation, false, NULL));
	CHECK_INT(loads(chain), 1);
	boot_shift_ns += 5 * (int64_t)NS_PER_S;
	CHECK(!credentials_refused(chain, generation, false, NULL)); /* they are the same */
	CHECK_INT(loads(chain), 2);
	write_keys("second", 3600);
	CHECK(!credentials_refused(chain, generation, false, NULL));
	CHECK_INT(loads(chain), 2);
	boot_shift_ns += 60 * (int64_t)NS_PER_S;
	CHECK(credentials_refused(chain, generation, false, NULL));
	CHECK_INT(loads(chain), 3);
	CHECK_INT(get(chain, "second"), generation + 1);
	credentials_chain_free(chain);
}

/* The first words of the lines that were logged, and the last one of them. */
struct lines {
	char first[1000], last[1000];
};

static void note_line(void *arg, enum log_level level, const char *line)
{
	struct lines *lines = arg;
	const size_t n = strlen(lines->first);
	snprintf(lines->first + n, sizeof lines->first - n, "%.*s|", (int)strcspn(line, ":"), line);
	snprintf(lines->last, sizeof lines->last, "%s", line);
}

/* Each trouble is told once, and the next one again. */
static void test_lines(void)
{
	struct lines lines = {.first = ""};
	char until[21];
	wall_s = WALL_S;
	write_keys("first", 3600);
	struct credentials_chain *chain = chain_of(300000);
	log_set_level(LOG_INFO);
	log_set_sink(note_line, &lines);
	get(chain, "first");
	credentials_accepted(chain);
	for (unsigned i = 0; i < 2; i++) {
		clock_format_iso(wall_s + 3600, until);
		CHECK_INT(unlink("keys.json"), 0);
		CHECK_STRING(lines.first, "");
		for (unsigned failures = 0; failures < 3; failures++) {
			const unsigned before = loads(chain);
			pass_s(failures ? 31 : 2701);
			wake(chain);
			for (unsigned k = 0; k < 1000 && loads(chain) == before; k++)
				usleep(5000);
		}
		get(chain, i ? "next" : "first");
		CHECK_STRING(lines.first, "the credentials cannot be renewed|");
		CHECK(strstr(lines.last, until));
		wall_s += 3600;
		check_waits(chain);
		check_waits(chain);
		CHECK_STRING(lines.first, "the credentials cannot be renewed|paused|");
		CHECK(strstr(lines.last, "up to 300 s"));
		write_keys("next", 3600);
		boot_shift_ns += 31 * (int64_t)NS_PER_S;
		wake(chain);
		get(chain, "next");
		CHECK_STRING(lines.first, "the credentials cannot be renewed|paused|"
					  "there are valid credentials again|");
		lines.first[0] = '\0';
	}
	credentials_chain_free(chain);
	log_set_sink(NULL, NULL);
	log_set_level(LOG_WARNING);
}

/* Keys that a server has refused stay refused, however often they are loaded, until there are
 * others, which may be refused in turn. */
static void test_refused_keys(void)
{
	wall_s = WALL_S;
	write_keys("first", 0);
	struct credentials_chain *chain = chain_of(300000);
	unsigned generation = get(chain, "first");
	credentials_accepted(chain);
	for (unsigned i = 0; i < 2; i++) {
		const unsigned first = loads(chain);
		CHECK(credentials_refused(chain, generation, true, NULL));
		CHECK(loads(chain) > first);
		check_waits(chain);
		for (unsigned k = 0; k < 2; k++) {
			const unsigned before = loads(chain);
			boot_shift_ns += 31 * (int64_t)NS_PER_S;
			wake(chain);
			for (unsigned n = 0; n < 1000 && loads(chain) == before; n++)
				usleep(5000);
			CHECK(loads(chain) > before);
			check_waits(chain);
		}
		uv_mutex_lock(&chain->mutex);
		CHECK(chain->locked.failures >= 3); /* so that the next load is further away */
		uv_mutex_unlock(&chain->mutex);
		write_keys(i ? "third" : "second", 0);
		boot_shift_ns += 31 * (int64_t)NS_PER_S;
		wake(chain);
		CHECK_INT(get(chain, i ? "third" : "second"), ++generation);
		uv_mutex_lock(&chain->mutex);
		CHECK_INT(chain->locked.failures, 0);
		uv_mutex_unlock(&chain->mutex);
	}
	credentials_chain_free(chain);
}

static void write_file(const char *path, const char *text, int64_t mtime_s)
{
	const struct timespec times[] = {{mtime_s, 0}, {mtime_s, 0}};
	FILE *file = fopen(path, "w");
	CHECK(fputs(text, file) >= 0);
	fclose(file);
	CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

#define KEYS(key) "[f]\naws_access_key_id=" key "\naws_secret_access_key=s\n"

/* A file that was written looks other than before in one thing at least. */
static void test_files(void)
{
	static const struct {
		const char *written, *text;
		int64_t mtime_s;
		const char *renamed, *key;
	} writes[] = {{"shared", KEYS("k2") "#", 1000, NULL, "k2"},
		{"shared", KEYS("k3") "#", 1001, NULL, "k3"},
		{"other", KEYS("k4") "#", 1001, "shared", "k4"},
		{"own", "[profile f]\n# another\n", 1000, NULL, "k4"}};
	const struct credentials_options options = {
		.profile = "f", .config_path = "own", .credentials_path = "shared"};
	struct credentials_chain *chain;
	struct lines lines = {.first = ""};
	if (credentials_chain_new(&options, &chain))
		abort();
	write_file("own", "[profile f]\n", 1000);
	/* Before the first ones, only calls look for some. */
	get(chain, NULL);
	write_file("shared", KEYS("k1"), 1000);
	pass_s(3600);
	check_loads(chain, 1);
	get(chain, "k1");
	unsigned n = 2;
	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
		pass_s(3);
		check_loads(chain, n);
		write_file(writes[i].written, writes[i].text, writes[i].mtime_s);
		if (writes[i].renamed)
			CHECK_INT(rename(writes[i].written, writes[i].renamed), 0);
		pass_s(3);
		bool good = check_loads(chain, ++n);
		get(chain, writes[i].key);
		if (!good)
			fprintf(stderr, "	write %zu\n", i);
	}
	/* An unreadable source changes nothing for keys that never expire. */
	log_set_sink(note_line, &lines);
	CHECK_INT(unlink("shared"), 0);
	pass_s(3);
	check_loads(chain, ++n);
	get(chain, "k4");
	CHECK(strstr(lines.last, "those in use are good for now, trying on"));
	credentials_chain_free(chain);
	log_set_sink(NULL, NULL);
}

int main(void)
{
	static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	scratch_make();
	FILE *file = fopen("config", "w");
	fprintf(file, "[profile p]\ncredential_process = cat keys.json\n");
	fclose(file);
	test_when();
	test_renewal();
	test_failures();
	test_expired();
	test_pauses();
	test_no_expiry();
	test_guesses();
	test_lines();
	test_refused_keys();
	test_files();
	scratch_remove();
	return check_result();
}
