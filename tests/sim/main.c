/* The simulation's command line. See README.md. */
#include "shrink.h"
#include "story.h"
#include "tasks.h"
#include "trace.h"
#include "world.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What killed processes had allocated is nobody's any more. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static const char usage[] =
	"Usage: sim SEED [--requests] [NAME=VALUE ...]   one world, told as a story\n"
	"       sim --trace SEED [NAME=VALUE ...]        each change of a mark or an object, as JSON\n"
	"       sim --shrink SEED [NAME=VALUE ...]       the smallest world that is still broken\n"
	"       sim --fingerprints FROM TO [NAME=VALUE ...] of their stories, in one process\n"
	"       sim --seeds FROM TO [NAME=VALUE ...]     worlds FROM to TO; tells the broken ones\n";

#define SEEDS_OF_A_CHILD 100 /* so that what killed processes leave behind does not pile up */
#define LIMIT_S          60  /* of a processor's time, for a world that hangs in itself */

static bool apply_settings(struct scenario *scenario, char **settings, int n)
{
	for (int i = 0; i < n; i++)
		if (strncmp(settings[i], "--", 2) != 0 && !scenario_set(scenario, settings[i])) {
			fprintf(stderr, "sim: %s: there is no such setting\n%s", settings[i],
				usage);
			return false;
		}
	return true;
}

static void read_scenario(uint64_t seed, char **settings, int n, struct scenario *ret)
{
	scenario_choose(seed, ret);
	if (!apply_settings(ret, settings, n))
		exit(2);
}

/* SIGPROF ends the process after so much time of a processor. 0: never. */
static void limit_time(long s)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = s}}, NULL);
}

static bool play(uint64_t seed, char **settings, int n, bool shows)
{
	struct scenario scenario;
	read_scenario(seed, settings, n, &scenario);
	story_begin(shows);
	if (shows)
		scenario_print(&scenario, stdout);
	limit_time(LIMIT_S);
	const char *broken = world_play(seed, &scenario);
	limit_time(0);
	if (shows)
		printf("%s\nfingerprint %016" PRIx64 "\n", broken ? broken : "no promise is broken",
			story_fingerprint());
	else if (broken)
		printf("seed %" PRIu64 ": %s\n", seed, broken);
	fflush(stdout);
	return !broken;
}

/* In a child of its own: whether all went well. */
static bool play_some(uint64_t from, uint64_t to, char **settings, int n)
{
	int status;
	volatile uint64_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0); /* the child's seed, for when it crashes */
	if (at == MAP_FAILED) {
		perror("sim: mmap");
		exit(2);
	}
	const pid_t child = fork();
	if (child < 0) {
		perror("sim: fork");
		exit(2);
	}
	if (!child) {
		bool good = true;
		for (uint64_t seed = from; seed <= to; seed++) {
			*at = seed;
			good = play(seed, settings, n, false) && good;
		}
		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	const uint64_t last = *at;
	munmap((void *)(uintptr_t)at, sizeof *at);
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 0;
	printf("seed %" PRIu64 ": the program crashed or hung (signal %d)\n", last,
		WTERMSIG(status));
	if (last < to)
		play_some(last + 1, to, settings, n);
	return false;
}

int main(int argc, char **argv)
{
	vfs_set_up();
	if (argc >= 4 && strcmp(argv[1], "--seeds") == 0) {
		const uint64_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10);
		bool good = true;
		for (uint64_t at = from; at <= to; at += SEEDS_OF_A_CHILD) {
			const uint64_t end = at + SEEDS_OF_A_CHILD - 1;
			good = play_some(at, end < to ? end : to, argv + 4, argc - 4) && good;
		}
		return good ? 0 : 1;
	}
	if (argc >= 4 && strcmp(argv[1], "--fingerprints") == 0) {
		const uint64_t to = strtoull(argv[3], NULL, 10);
		for (uint64_t seed = strtoull(argv[2], NULL, 10); seed <= to; seed++) {
			play(seed, argv + 4, argc - 4, false);
			printf("%016" PRIx64 "\n", story_fingerprint());
		}
		return 0;
	}
	if (argc >= 3 && strcmp(argv[1], "--trace") == 0) {
		trace_to(stdout);
		return play(strtoull(argv[2], NULL, 10), argv + 3, argc - 3, false) ? 0 : 1;
	}
	if (argc >= 3 && strcmp(argv[1], "--shrink") == 0) {
		struct scenario scenario;
		const uint64_t seed = strtoull(argv[2], NULL, 10);
		read_scenario(seed, argv + 3, argc - 3, &scenario);
		if (!shrink(seed, &scenario)) {
			printf("no promise is broken\n");
			return 0;
		}
		printf("sim %s ", argv[2]);
		for (size_t i = 0; i < scenario_fields(); i++) /* what is 0 is told, too */
			printf("%s=%u ", scenario_name(i), *scenario_field(&scenario, i));
		printf("\n");
		return 1;
	}
	if (argc < 2 || *argv[1] < '0' || *argv[1] > '9') {
		fputs(usage, stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--requests") == 0)
			story_show_details(true);
	return play(strtoull(argv[1], NULL, 10), argv + 2, argc - 2, true) ? 0 : 1;
}
