/* The loop of `s3once watch` around its jobs: whose pass is next, what a SIGHUP and a SIGTERM do,
 * how the time of --drain is shared, and the exit code. The jobs and the server of metrics are
 * fakes that log what is asked of them. Each scenario has a process of its own, since signals are
 * counted for good. */
#include "../check.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/watch/metrics_server.h"
#include "cli/watch/watched_job.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS 3

/* A job as it is read for the first time, and as it is read again. */
struct reading {
	bool is_wrong;
	const char *metrics, *listen;
};

static const struct scenario {
	const char *name;
	size_t n; /* jobs, which are called a, b and c */
	/* The event in each pass: '-' nothing, T SIGTERM, I SIGINT, H SIGHUP, D two SIGTERM, '?' a
	 * check whether other jobs want their turn. */
	const char *passes;
	/* NAME VERSION of what was read, "!": it was wrong; "~": freed. A pass is NAME VERSION and
	 * the number of passes before. A drain is in brackets, with its seconds; a server in <>.
	 * '+' and '-': the answer to /-/ready has changed. */
	const char *log;
	int code;
	struct reading versions[JOBS][2];
	uint64_t drain_s;
	int codes[JOBS];  /* of the passes */
	bool waits;       /* the first job has files left */
	bool rests[JOBS]; /* the job is not due */
	bool wants[JOBS];
} rows[] = {
	{"turns", 2, "----T", "a0 b0 a0.0 b0.0 a0.1 b0.1 a0.2 ~a0 ~b0 ", 0},
	{"one is due", 2, "--T", "a0 b0 b0.0 b0.1 b0.2 ~a0 ~b0 ", 0, .rests = {true}},
	{"worst code", 2, "-T", "a0 b0 a0.0 b0.0 ~a0 ~b0 ", 5, .codes = {1, 5}},
	{"worst code first", 3, "--T", "a0 b0 c0 a0.0 b0.0 c0.0 ~a0 ~b0 ~c0 ", 3,
		.codes = {3, 4, 6}},
	{"files wait", 2, "-T", "a0 b0 a0.0 b0.0 ~a0 ~b0 ", 143, .codes = {1, 5}, .waits = true},
	{"files wait, by SIGINT", 1, "I", "a0 a0.0 ~a0 ", 130, .waits = true},
	{"drain", 1, "T", "a0 a0.0 (a0 60) ~a0 ", 0, .drain_s = 60},
	{"drain of three", 3, "T", "a0 b0 c0 a0.0 (a0 20) (b0 30) (c0 60) ~a0 ~b0 ~c0 ", 0,
		.drain_s = 60},
	{"no drain after SIGINT", 1, "I", "a0 a0.0 ~a0 ", 0, .drain_s = 60},
	{"no drain after two signals", 1, "D", "a0 a0.0 ~a0 ", 0, .drain_s = 60},
	{"reload", 2, "H-T", "a0 b0 a0.0 a1 b1 ~a0 ~b0 b1.0 a1.1 ~a1 ~b1 ", 0},
	{"reload once for each", 1, "HHT", "a0 a0.0 a1 ~a0 a1.1 a1 ~a1 a1.2 ~a1 ", 0},
	{"reload, of which one is wrong", 2, "H-T", "a0 b0 a0.0 a1 !b1 ~a0 b0.0 a1.1 ~a1 ~b0 ", 0,
		.versions = {[1] = {{0}, {true}}}},
	{"reload, two of which clash", 2, "H-T", "a0 b0 a0.0 a1 b1 ~a1 ~b0 b1.0 a0.1 ~a0 ~b1 ", 0,
		.versions = {{{.metrics = "X"}, {.metrics = "Y"}},
			{{.metrics = "Z"}, {.metrics = "Y"}}}},
	{"reload, where who keeps its options clashes with the one before", 3, "HT",
		"a0 b0 c0 a0.0 a1 b1 !c1 ~b1 ~a1 b0.0 ~a0 ~b0 ~c0 ", 0,
		.versions = {{{.metrics = "Z"}, {.metrics = "Y"}},
			{{.metrics = "Y"}, {.metrics = "X"}}, {{.metrics = "X"}, {true}}}},
	{"wrong at the start", 3, "", "a0 !b0 c0 ~a0 ~c0 ", 2, .versions = {[1] = {{true}}}},
	{"clash at the start", 2, "", "a0 b0 ~a0 ~b0 ", 2,
		.versions = {{{.metrics = "X"}}, {{.metrics = "X"}}}},
	{"clash of addresses", 2, "", "a0 b0 ~a0 ~b0 ", 2,
		.versions = {{{.listen = "1"}}, {{.listen = "2"}}}},
	{"server", 2, "H-T", "a0 b0 <1> a0.0 a1 b1 ~a0 ~b0 b1.0 a1.1 + ~a1 ~b1 <~1> ", 0,
		.versions = {{{0}, {0}}, {{.listen = "1"}, {.listen = "1"}}}},
	{"server elsewhere", 1, "HT", "a0 <1> a0.0 + a1 ~a0 <2> <~1> - a1.1 + ~a1 <~2> ", 0,
		.versions = {{{.listen = "1"}, {.listen = "2"}}}},
	{"no server any more", 1, "HT", "a0 <1> a0.0 + a1 ~a0 <~1> a1.1 ~a1 ", 0,
		.versions = {{{.listen = "1"}, {0}}}},
	{"server that cannot listen", 1, "", "a0 ~a0 ", 3, .versions = {{{.listen = "!"}}}},
	{"server that cannot listen elsewhere", 1, "HT", "a0 <1> a0.0 + a1 ~a0 a1.1 ~a1 <~1> ", 0,
		.versions = {{{.listen = "1"}, {.listen = "!"}}}},
	{"ready", 2, "---T", "a0 b0 <1> a0.0 b0.0 + a0.1 b0.1 ~a0 ~b0 <~1> ", 0,
		.versions = {{{.listen = "1"}}}},
	{"one is not ready", 2, "--T", "a0 b0 <1> a0.0 b0.0 a0.1 ~a0 ~b0 <~1> ", 3,
		.versions = {{{.listen = "1"}}}, .codes = {3}},
	{"the other is not ready", 2, "--T", "a0 b0 <1> a0.0 b0.0 a0.1 ~a0 ~b0 <~1> ", 3,
		.versions = {{{.listen = "1"}}}, .codes = {0, 3}},
	{"nobody else wants a turn", 3, "?T", "a0 b0 c0 a0.0 =0 b0.0 ~a0 ~b0 ~c0 ", 0,
		.wants = {true, false, false}},
	{"another wants a turn", 3, "?T", "a0 b0 c0 a0.0 =1 b0.0 ~a0 ~b0 ~c0 ", 0,
		.wants = {false, false, true}},
};
static const struct scenario *now;

struct shared {
	char log[1000];
	size_t passes;
};
static struct shared *shared;

/* A job, with what the fakes know of it. */
struct fake {
	struct watched watched;
	size_t index;
	unsigned version;
	const struct watched_service *service;
};
static unsigned reads[JOBS];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	const size_t n = strlen(shared->log);
	va_list ap;
	va_start(ap, format);
	vsnprintf(shared->log + n, sizeof shared->log - n, format, ap);
	va_end(ap);
}

static struct fake *fake_of(const struct watched *watched)
{
	return (struct fake *)(uintptr_t)watched; /* its first member */
}

int watched_new(const char *name, int argc, char *const *argv,
	const struct watched_service *service, struct watched **ret)
{
	const size_t i = (size_t)(*name - 'a');
	const unsigned version = reads[i]++ ? 1 : 0;
	const struct reading *as = &now->versions[i][version];
	(void)argc;
	(void)argv;
	note("%s%s%u ", as->is_wrong ? "!" : "", name, version);
	if (as->is_wrong)
		return -EINVAL;
	struct fake *fake = calloc(1, sizeof *fake);
	fake->index = i;
	fake->version = version;
	fake->service = service;
	fake->watched.job.name = strdup(name);
	fake->watched.job.options = (struct push_options){.metrics_file = as->metrics,
		.metrics_listen = as->listen,
		.drain_ms = now->drain_s * 1000,
		.run = {.bucket = "b", .prefix = name}};
	*ret = &fake->watched;
	return 0;
}

void watched_free(struct watched *watched)
{
	if (!watched)
		return;
	note("~%s%u ", watched->job.name, fake_of(watched)->version);
	metrics_clear(&watched->pass.metrics);
	free(watched->job.name);
	free(watched);
}

void watched_read(struct watched *watched)
{
	(void)watched;
}

uint64_t watched_due_ns(const struct watched *watched)
{
	return now->rests[fake_of(watched)->index] ? UINT64_MAX : 1;
}

bool watched_wants_turn(struct watched *watched)
{
	return now->wants[fake_of(watched)->index];
}

static const struct metric_kind of_pass = {"test_of_pass", "gauge", "Of a pass."};

void watched_pass(struct watched *watched)
{
	struct fake *fake = fake_of(watched);
	const char what = now->passes[shared->passes];
	note("%s%u.%u ", watched->job.name, fake->version, (unsigned)watched->sums.whole);
	watched->sums.whole++;
	watched->code = now->codes[fake->index];
	watched->is_ready = !watched->code;
	metrics_clear(&watched->pass.metrics);
	metrics_add(&watched->pass.metrics, &of_pass, "", "", "1");
	if (!what)
		_exit(99); /* it should have ended */
	shared->passes++;
	if (what == 'T' || what == 'D')
		raise(SIGTERM);
	if (what == 'D')
		raise(SIGTERM);
	if (what == 'I')
		raise(SIGINT);
	if (what == 'H')
		raise(SIGHUP);
	if (what == '?')
		note("=%d ", fake->service->others_want_turn(fake->service->arg));
}

void watched_drain(struct watched *watched, uint64_t until_ns)
{
	const uint64_t left_ms = (until_ns - clock_boot_ns()) / NS_PER_MS;
	note("(%s%u %u) ", watched->job.name, fake_of(watched)->version,
		(unsigned)((left_ms + 5000) / 10000 * 10));
}

bool watched_leaves_files(const struct watched *watched)
{
	return now->waits && fake_of(watched)->index == 0;
}

int watch_folders_fd(const struct watch_folders *folders)
{
	(void)folders;
	return -1;
}

size_t watch_folders_count(const struct watch_folders *folders)
{
	(void)folders;
	return 1;
}

struct metrics_server {
	const char *address;
};

int metrics_server_new(
	const char *address, struct metrics_server **ret, struct problem *ret_problem)
{
	if (*address == '!')
		return problem_error(ret_problem, -EADDRINUSE, "it is in use");
	note("<%s> ", address);
	*ret = calloc(1, sizeof **ret);
	(*ret)->address = address[0] == '1' ? "1" : "2";
	return 0;
}

void metrics_server_free(struct metrics_server *server)
{
	if (server)
		note("<~%s> ", server->address);
	free(server);
}

const char *metrics_server_address(const struct metrics_server *server)
{
	return server->address;
}

void metrics_server_set_probes(
	struct metrics_server *server, bool is_ready, uint64_t healthy_until_ns)
{
	static bool was_ready;
	(void)server;
	CHECK(healthy_until_ns > clock_monotonic_ns());
	if (is_ready != was_ready)
		note(is_ready ? "+ " : "- ");
	was_ready = is_ready;
}

void metrics_server_set(struct metrics_server *server, const char *text)
{
	(void)server;
	CHECK(strstr(text, "s3once_watch_passes_total") != NULL);
	/* The counts of a job's last pass stay, even if its file was read again. */
	CHECK_INT(strstr(text, of_pass.name) != NULL, shared->passes > 0);
}

int main(void)
{
	static char words[][8] = {"watch", "a", "b", "c"};
	shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!CHECK(shared != MAP_FAILED))
		return check_result();
	unsetenv("NOTIFY_SOCKET");
	/* Whatever started this test may ignore them, as nohup does. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2, SIGALRM};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], SIG_DFL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int status = 0;
		memset(shared, 0, sizeof *shared);
		now = &rows[i];
		const pid_t child = fork();
		if (child == 0) {
			char *argv[JOBS + 2] = {words[0]};
			alarm(20);
			check_failed = 0;
			if (!freopen("/dev/null", "w", stderr)) /* the refusals of jobs */
				_exit(98);
			for (size_t k = 0; k < now->n; k++)
				argv[k + 1] = words[k + 1];
			const int code = watch_main((int)now->n + 1, argv);
			_exit(check_failed ? 97 : code);
		}
		CHECK_INT(waitpid(child, &status, 0), child);
		bool good = CHECK(WIFEXITED(status)) && CHECK_INT(WEXITSTATUS(status), now->code);
		good = CHECK_STRING(shared->log, now->log) && good;
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, now->name);
	}
	return check_result();
}
