/* The simulation's command line. See README.md. */
#include "shrink.h"
#include "story.h"
#include "tasks.h"
#include "trace.h"
#include "world.h"
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory of killed processes is not freed, and is no leak. */
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
	"       sim --seeds FROM TO [NAME=VALUE ...]     worlds FROM to TO; tells the broken ones\n"
	"       sim --bytes-of SEED FILE                 the first choices of a world, for --bytes and libFuzzer\n"
	"       sim --bytes FILE [--requests] [NAME=VALUE ...] one world whose chance begins with these bytes\n"
	"       sim --sums FROM TO [NAME=VALUE ...]      the same, and what they held, as JSON\n";

#define SEEDS_OF_A_CHILD 100 /* so that the memory of killed processes does not add up */
#define BYTES_OF         3000
#define LIMIT_S          60 /* of processor time, for a world in an endless loop */

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
	bool may_be_night = true;
	for (int i = 0; i < n; i++)
		may_be_night = may_be_night && strcmp(settings[i], "night_h=0") != 0;
	scenario_choose(seed, may_be_night, ret);
	if (!apply_settings(ret, settings, n))
		exit(2);
}

/* Lets SIGPROF end the process after this processor time. 0: never. */
static void limit_time(long s)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = s}}, NULL);
}

static bool play(uint64_t seed, char **settings, int n, enum story_use use)
{
	const bool shows = use == STORY_SHOWN;
	struct scenario scenario;
	read_scenario(seed, settings, n, &scenario);
	story_begin(use);
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

/* The sums over all worlds for --sums. Shared with the children. */
struct held {
	uint64_t seed; /* the seed being played, in case it crashes */
	uint64_t worlds, s, runs, last_runs, faults;
	uint64_t with_hosts, with_runs, with_faults, with_nights, with_all;
};
#define NIGHT_S (8 * 3600)

static void add_sums(const struct scenario *scenario, struct held *to)
{
	const struct world_sums played = world_sums();
	const bool hosts = scenario->hosts >= 2 && scenario->hosts <= 4;
	const bool runs = played.runs >= 3 && played.runs <= 12;
	const bool faults = played.faults >= 10, night = scenario->rotated && played.s >= NIGHT_S;
	to->worlds++;
	to->s += played.s;
	to->runs += played.runs;
	to->last_runs += played.last_runs;
	to->faults += played.faults;
	to->with_hosts += hosts;
	to->with_runs += runs;
	to->with_faults += faults;
	to->with_nights += night;
	to->with_all += hosts && runs && faults && night;
}

static void print_sums(const struct held *sums)
{
	struct rusage used;
	getrusage(RUSAGE_CHILDREN, &used);
	printf("{\"worlds\": %" PRIu64 ", \"runs\": %" PRIu64 ", \"last_runs\": %" PRIu64
	       ", \"faults\": %" PRIu64 ", \"virtual_s\": %" PRIu64
	       ", \"processor_s\": %.2f, \"with_2_to_4_hosts\": %" PRIu64
	       ", \"with_3_to_12_runs\": %" PRIu64 ", \"with_10_faults\": %" PRIu64
	       ", \"with_a_night\": %" PRIu64 ", \"with_all\": %" PRIu64 "}\n",
		sums->worlds, sums->runs, sums->last_runs, sums->faults, sums->s,
		(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
		sums->with_hosts, sums->with_runs, sums->with_faults, sums->with_nights,
		sums->with_all);
}

static struct held *new_sums(void)
{
	struct held *sums =
		mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED) {
		perror("sim: mmap");
		exit(2);
	}
	return sums;
}

/* Plays some seeds in a child process, and returns whether all held. */
static bool play_some(uint64_t from, uint64_t to, char **settings, int n, struct held *sums)
{
	int status;
	const pid_t child = fork();
	if (child < 0) {
		perror("sim: fork");
		exit(2);
	}
	if (!child) {
		bool good = true;
		for (uint64_t seed = from; seed <= to; seed++) {
			struct scenario scenario;
			sums->seed = seed;
			good = play(seed, settings, n, STORY_UNHEARD) && good;
			read_scenario(seed, settings, n, &scenario);
			add_sums(&scenario, sums);
		}
		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	const uint64_t last = sums->seed;
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 0;
	printf("seed %" PRIu64 ": the program crashed or hung (signal %d)\n", last,
		WTERMSIG(status));
	if (last < to)
		play_some(last + 1, to, settings, n, sums);
	return false;
}

/* fopen() of src opens files of a world, so this is the real one. */
FILE *__real_fopen64(const char *path, const char *mode);

static void read_bytes(const char *path)
{
	static unsigned char bytes[1 << 20];
	FILE *file = __real_fopen64(path, "rb");
	if (!file) {
		fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	chance_give(bytes, fread(bytes, 1, sizeof bytes, file));
	fclose(file);
}

static int write_bytes(uint64_t seed, const char *path)
{
	static unsigned char bytes[BYTES_OF];
	FILE *file = __real_fopen64(path, "wb");
	if (!file) {
		fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
		return 2;
	}
	chance_note(bytes, sizeof bytes);
	play(seed, NULL, 0, STORY_UNHEARD);
	chance_note(NULL, 0);
	const bool good = fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes;
	return fclose(file) == 0 && good ? 0 : 2;
}

int main(int argc, char **argv)
{
	/* Keep the memory of large bodies for the next ones. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	vfs_set_up();
	const bool adds = argc >= 4 && strcmp(argv[1], "--sums") == 0;
	if (adds || (argc >= 4 && strcmp(argv[1], "--seeds") == 0)) {
		struct held *sums = new_sums();
		const uint64_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10);
		bool good = true;
		for (uint64_t at = from; at <= to; at += SEEDS_OF_A_CHILD) {
			const uint64_t end = at + SEEDS_OF_A_CHILD - 1;
			good = play_some(at, end < to ? end : to, argv + 4, argc - 4, sums) && good;
		}
		if (adds)
			print_sums(sums);
		return good ? 0 : 1;
	}
	if (argc >= 4 && strcmp(argv[1], "--fingerprints") == 0) {
		const uint64_t to = strtoull(argv[3], NULL, 10);
		for (uint64_t seed = strtoull(argv[2], NULL, 10); seed <= to; seed++) {
			play(seed, argv + 4, argc - 4, STORY_FINGERPRINT);
			printf("%016" PRIx64 "\n", story_fingerprint());
		}
		return 0;
	}
	if (argc == 4 && strcmp(argv[1], "--bytes-of") == 0)
		return write_bytes(strtoull(argv[2], NULL, 10), argv[3]);
	if (argc >= 3 && strcmp(argv[1], "--trace") == 0) {
		trace_to(stdout);
		return play(strtoull(argv[2], NULL, 10), argv + 3, argc - 3, STORY_UNHEARD) ? 0 : 1;
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
		for (size_t i = 0; i < scenario_fields(); i++) /* including those that are 0 */
			printf("%s=%u ", scenario_name(i), *scenario_field(&scenario, i));
		printf("\n");
		return 1;
	}
	const bool has_bytes = argc >= 3 && strcmp(argv[1], "--bytes") == 0;
	if (has_bytes)
		read_bytes(argv[2]);
	else if (argc < 2 || *argv[1] < '0' || *argv[1] > '9') {
		fputs(usage, stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--requests") == 0)
			story_show_details(true);
	if (has_bytes)
		return play(0, argv + 3, argc - 3, STORY_SHOWN) ? 0 : 1;
	return play(strtoull(argv[1], NULL, 10), argv + 2, argc - 2, STORY_SHOWN) ? 0 : 1;
}
